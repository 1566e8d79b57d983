"""The application that runs where none is named: all that ship, as far as their extras are installed."""

from __future__ import annotations

from importlib import import_module

from windlass import Windlass
from windlass.apps.installed import shipped

app = Windlass()
for _name in shipped():
    import_module(f"windlass.apps.{_name}.{_name}").install(app)
