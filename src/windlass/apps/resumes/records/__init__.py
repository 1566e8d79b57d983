"""Business records: what is known of each resume, in the user's own database."""
