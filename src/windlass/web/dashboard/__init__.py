"""The dashboard: pages for people over the same answers as the HTTP API, served under the same prefix."""
