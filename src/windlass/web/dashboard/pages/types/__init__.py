"""Types: what each handler takes and gives, and a form made of that."""
