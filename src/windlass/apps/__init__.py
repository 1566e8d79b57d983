"""Applications that ship with windlass, built from public names only, as a stranger would build one."""
