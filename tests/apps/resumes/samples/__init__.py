"""Resumes made by a script: people that do not exist, in layouts that do."""
