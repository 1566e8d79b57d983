"""Routes: thin; each asks the application one thing and gives the answer a shape."""
