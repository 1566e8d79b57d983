"""Faults on purpose: worker processes are killed, frozen and stopped in the middle of jobs, and nothing may be lost."""
