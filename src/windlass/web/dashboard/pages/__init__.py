"""The pages: a folder each, which holds `room.py` with its `ROOM`, its templates, and its scripts and sheets if any.

A folder that is put here is there: nothing else names it.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from windlass.web.dashboard.room import Room


def own_rooms() -> list[Room]:
    """The room of every folder here, by name."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__) if found.ispkg)
    return [import_module(f"{__name__}.{name}.room").ROOM for name in names]
