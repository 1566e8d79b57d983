"""Files of many projects, written by many clients: one at a time each, in order, whole, and verified."""
