"""Live: what happens to jobs, told as it happens, over Server-Sent Events and WebSockets."""
