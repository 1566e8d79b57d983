"""`top`: a live view over a store, read through the same answers as every other command."""
