"""One job: what happened to it, why it is where it is, and what would help."""
