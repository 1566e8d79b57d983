"""Children that read what came from outside: under limits of memory and time, killed rather than trusted.

A room that the applications share. `LimitedChild` of `child.py` starts `start.py` with the name of one of our own
modules, whose `serve(file, out, asked)` does the work.
"""
