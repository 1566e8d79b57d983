"""Rendering: templates with everything escaped, and of a page either all or only its live regions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jinja2 import Environment, FileSystemLoader, PrefixLoader, StrictUndefined

from windlass.core.status import Status
from windlass.web.dashboard import charts, words
from windlass.web.dashboard.json_tree import json_tree, shown_json
from windlass.web.dashboard.room import FRAME
from windlass.web.dashboard.visit import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windlass.web.dashboard.room import Room

FOLDER = Path(__file__).parent / FRAME
LIVE = "live_"
"""what the names of a template's blocks begin with that are sent anew while somebody looks"""


class Templates:
    """Those of the frame and of every room, by `room/file`."""

    def __init__(self, rooms: Iterable[Room]) -> None:
        folders = {FRAME: FOLDER, **{room.name: room.folder for room in rooms}}
        self._environment = Environment(
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            loader=PrefixLoader({name: FileSystemLoader(folder) for name, folder in folders.items()}),
        )
        self._environment.filters |= words.FILTERS | {"quoted": quoted}
        known = cast("dict[str, Any]", self._environment.globals)  # jinja2 says only what is in it at first
        known |= {
            "charts": charts,
            "json_tree": json_tree,
            "shown_json": shown_json,
            "Status": Status,
            "quoted_word": words.quoted_word,
        }
        # Macros are the same for all, so they are made once, and every block knows them.
        known["ui"] = self._environment.get_template(f"{FRAME}/parts.html").module

    def page(self, name: str, context: Mapping[str, Any]) -> str:
        """All of a page."""
        return self._environment.get_template(name).render(context)

    def regions(self, name: str, context: Mapping[str, Any]) -> str:
        """The live regions of a page, one after the other."""
        template = self._environment.get_template(name)
        known = template.new_context(dict(context))
        return "".join("".join(render(known)) for block, render in template.blocks.items() if block.startswith(LIVE))
