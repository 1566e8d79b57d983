"""Trials: faults made on purpose, on any store, and a count of what they did to the jobs."""
