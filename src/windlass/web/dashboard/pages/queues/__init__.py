"""Queues: what waits where, and whether it moves."""
