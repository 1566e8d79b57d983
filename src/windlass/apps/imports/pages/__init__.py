"""Pages of imports in the dashboard."""
