"""Targets: the databases that rows go to."""
