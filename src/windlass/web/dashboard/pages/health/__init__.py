"""Health: what `windlass doctor` finds, live."""
