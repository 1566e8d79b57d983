"""Jobs: which there are, by a search that explains itself, and orders for many of them."""
