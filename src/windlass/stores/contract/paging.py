"""Pages: cursors, which way a page is walked, and the page that comes of a walk. Pure, and the same for every store."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from windlass.core.draft import check_id
from windlass.core.errors import SettingsError
from windlass.core.job import Job
from windlass.core.keys import shown

_ID_LENGTH = 36
_ORDERS = {"n": "newest first", "o": "oldest first"}


@dataclass(frozen=True, slots=True)
class Page:
    """Jobs in the order asked for, and the cursors of the pages beside this one; None where there is none.

    `complete` is false where the search stopped at its bound before the page was full: there may be more jobs that
    match, and the cursor goes on from where it stopped.
    """

    jobs: tuple[Job, ...]
    next: str | None = None
    previous: str | None = None
    complete: bool = True


class Walk(NamedTuple):
    """How a store goes through ids for one page: which way, from where, and whether that id itself takes part."""

    descending: bool
    start: str | None
    inclusive: bool
    oldest_first: bool

    @property
    def back(self) -> bool:
        """Whether it goes against the order of the page."""
        return self.descending is self.oldest_first


ANY_WAY = Walk(True, None, False, False)
"""over all pages, for callers that count them"""


def walk_of(cursor: str | None, *, oldest_first: bool) -> Walk:
    """The walk that a cursor stands for, or a job's id: then it goes on behind that job, whichever the order.

    What is neither, and a cursor of the other order, are refused.
    """
    if cursor is None:
        return Walk(not oldest_first, None, False, oldest_first)
    if len(cursor) == _ID_LENGTH:
        return Walk(not oldest_first, check_id(cursor), False, oldest_first)
    order, way, gap, start = _read(cursor)
    wanted = "o" if oldest_first else "n"
    if order != wanted:
        raise SettingsError(
            f"the cursor {shown(cursor)} is of a list that goes {_ORDERS[order]}, and this one goes {_ORDERS[wanted]}:"
            " use it with the order it was made for, or begin without a cursor"
        )
    return Walk((way == "b") is oldest_first, start, gap == "i", oldest_first)


def page_of(jobs: Sequence[Job], limit: int, walk: Walk, stopped: str | None = None) -> Page:
    """The page of what a walk found, one job more than the limit if there are so many.

    `stopped` is the id that the walk looked at last if it gave up there.
    """
    full = len(jobs) > limit
    taken = tuple(jobs[:limit])
    last = taken[-1].id if full else stopped
    far = None if last is None else _cursor(walk, last, back=walk.back)
    near = _before(walk, taken)
    complete = full or stopped is None
    if walk.back:
        return Page(taken[::-1], near, far, complete)
    return Page(taken, far, near, complete)


def _before(walk: Walk, taken: Sequence[Job]) -> str | None:
    """The cursor that leads back over where a walk began."""
    if walk.start is None:
        return None
    if taken:
        return _cursor(walk, taken[0].id, back=not walk.back)
    return _cursor(walk, walk.start, back=not walk.back, inclusive=not walk.inclusive)


def cut(jobs: Sequence[Job], walk: Walk, stopped: str | None) -> list[Job]:
    """Jobs in the order of the walk, without those beyond where a part of it stopped."""
    ordered = sorted(jobs, key=lambda job: job.id, reverse=walk.descending)
    if stopped is None:
        return ordered
    return [job for job in ordered if (job.id >= stopped if walk.descending else job.id <= stopped)]


def nearest(stops: Sequence[str], walk: Walk) -> str | None:
    """Where a walk in several parts knows no further: at the stop that comes first on its way."""
    return (max if walk.descending else min)(stops, default=None)


def cursor_after(job_id: str, *, oldest_first: bool) -> str:
    """The cursor of the page that begins after this job."""
    return _cursor(Walk(not oldest_first, None, False, oldest_first), job_id, back=False)


def _cursor(walk: Walk, job_id: str, *, back: bool, inclusive: bool = False) -> str:
    text = f"{'o' if walk.oldest_first else 'n'}{'b' if back else 'f'}{'i' if inclusive else 'e'}{job_id}"
    return urlsafe_b64encode(text.encode()).decode()


def _read(cursor: str) -> tuple[str, str, str, str]:
    try:
        text = urlsafe_b64decode(cursor.encode()).decode()
        order, way, gap, start = text[0], text[1], text[2], check_id(text[3:])
    except (NotBase64, UnicodeError, IndexError, AttributeError, SettingsError):
        order, way, gap, start = "", "", "", ""
    if order not in _ORDERS or way not in {"f", "b"} or gap not in {"i", "e"}:
        raise SettingsError(f"the cursor is {shown(cursor)}: expected the next or the previous of a page, unchanged")
    return order, way, gap, start
