"""Records: what is true of a file, in the store's own database."""
