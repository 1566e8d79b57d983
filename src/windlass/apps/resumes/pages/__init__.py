"""Pages of resumes in the dashboard."""
