"""Ids as people type them: whole, or as much of the beginning as no other job shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.cli.output import USAGE, Stop
from windlass.core.draft import check_id
from windlass.core.errors import JobNotFound, SettingsError
from windlass.core.keys import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.cli.desk import Desk

SHORTEST = 8
"""so many characters are the time of an id to a minute or so: fewer name nobody"""
_NAMED = 5
_LOWEST, _HIGHEST = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"


def check_beginning(text: str) -> str:
    """An id or the beginning of one; anything else is refused before a store is asked."""
    beginning = text.lower()
    try:
        # Filled up, a beginning is an id.
        check_id(beginning + _LOWEST[len(beginning) :])
    except SettingsError:
        fits = False
    else:
        fits = len(beginning) >= SHORTEST
    if not fits:
        raise SettingsError(f"{shown(text)}: expected a job's id, or at least its first {SHORTEST} characters")
    return beginning


async def whole_id(desk: Desk, text: str) -> str:
    """The id that begins so. JobNotFound when none does; where several do, they are named."""
    beginning = check_beginning(text)
    if len(beginning) == len(_HIGHEST):
        return beginning
    # Jobs are listed by id, newest first: those that begin so stand together, right below the highest such id.
    page = await desk.app.jobs.find(limit=_NAMED + 1, after=beginning + _HIGHEST[len(beginning) :])
    ids = [job.id for job in page.jobs if job.id.startswith(beginning)]
    if not ids:
        raise JobNotFound(beginning)
    if len(ids) > 1:
        more = " and more" if len(ids) > _NAMED else ""
        raise Stop(
            USAGE, f"{beginning} is the beginning of several ids: {', '.join(ids[:_NAMED])}{more}; give more of it"
        )
    return ids[0]


async def whole_ids(desk: Desk, texts: Sequence[str]) -> list[str]:
    """The same for several: nothing is done to any of them while one is in doubt."""
    return [await whole_id(desk, text) for text in texts]
