"""Linking: sentences in which ids of jobs are links, and commands are set apart. All else is text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from windlass.web.dashboard.words import visible

if TYPE_CHECKING:
    from collections.abc import Callable

_PARTS = re.compile(
    r'"(?P<command>windlass [^"\n]{1,300})"|(?P<id>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)'
)


def linked(text: str, where: Callable[[str], str], own: str) -> Markup:
    """The text, with a link for every id of another job and every command as one."""
    told: list[Markup] = []
    at = 0
    for found in _PARTS.finditer(text):
        told += [escape(visible(text[at : found.start()])), _part(found, where, own)]
        at = found.end()
    return Markup("").join([*told, escape(visible(text[at:]))])


def short_id(id_: str) -> str:
    """An id where there is no room: when it was made, and what tells it from others."""
    # Those of one flow differ in the fourth part alone.
    return f"{id_[:8]}…{id_[19:23]}-{id_[-4:]}"


def _part(found: re.Match[str], where: Callable[[str], str], own: str) -> Markup:
    if found["command"] is not None:
        return Markup("<code>{}</code>").format(visible(found["command"]))
    if found["id"] == own:
        return escape(short_id(own))
    return Markup('<a class="mono" href="{}" title="{}">{}</a>').format(
        where(found["id"]), found["id"], short_id(found["id"])
    )
