"""Schedules: when each fires, what became of its ticks, and changing them."""
