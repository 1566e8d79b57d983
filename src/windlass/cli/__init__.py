"""The switches: the command line. Everything it does, an application can do through the same public names."""
