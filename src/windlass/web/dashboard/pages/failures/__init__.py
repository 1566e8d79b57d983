"""Failures: what goes wrong and why, and what to do about it."""
