"""Reading hostile files: all of this runs in a child process with limits, and loads nothing of windlass."""
