"""Upkeep that any worker may do safely at any time: promote, rescue, schedule, prune."""
