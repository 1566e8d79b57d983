"""Files that are sent: checked by name, kind and beginning, counted while they come, kept under names of ours.

A room that the applications share: `names.py` says what may be sent, `kept.py` keeps it, `receiving.py` takes it from
a form.
"""
