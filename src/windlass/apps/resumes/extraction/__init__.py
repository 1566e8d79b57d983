"""From a document to its visible text with its layout; what came from outside is read in limited children."""
