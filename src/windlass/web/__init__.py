"""HTTP: every job a resource, closed by default. Needs the extra `web`; see `app.asgi()` and `windlass serve`."""
