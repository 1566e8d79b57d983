"""The SQLite store: the embedded default, one file on one host."""
