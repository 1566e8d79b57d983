"""Pages of files in the dashboard."""
