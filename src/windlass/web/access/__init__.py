"""Who may: from a request to its caller. What a caller may then do is theirs to say (`callers.py`)."""
