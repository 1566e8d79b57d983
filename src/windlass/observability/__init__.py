"""The eyes: listeners that turn what the code announces into logs, figures and traces. Nothing here steers the work."""
