"""Columns: what a row can tell, and which of it the viewer has chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.web.dashboard.visit import Visit

COOKIE = "windlass_jobs"


class Column(NamedTuple):
    """One column; the type, which leads to the job, is always there and is none of them."""

    name: str
    word: str
    usual: bool = False
    figures: bool = False


COLUMNS = (
    Column("id", "Id"),
    Column("queue", "Queue", usual=True),
    Column("progress", "Progress"),
    Column("created", "Created", usual=True),
    Column("due", "Due"),
    Column("finished", "Finished"),
    Column("wait", "Waited", usual=True, figures=True),
    Column("ran", "Ran", usual=True, figures=True),
    Column("attempts", "Attempts", usual=True, figures=True),
    Column("priority", "Priority", figures=True),
    Column("detail", "Detail", usual=True),
    Column("tags", "Tags"),
    Column("user", "User"),
    Column("entity", "Entity"),
    Column("correlation", "Correlation"),
    Column("schedule", "Schedule"),
    Column("worker", "Worker"),
)
"""all of them, in the order in which they stand"""
_FOR_ALL = frozenset({"worker"})
"""the business of who sees the jobs of all"""


def known(visit: Visit) -> list[Column]:
    """Those that this viewer may choose from."""
    return [column for column in COLUMNS if visit.sees_all or column.name not in _FOR_ALL]


def chosen(visit: Visit) -> list[Column]:
    """Those that are shown: as the address says, else as the browser has kept it, else the usual ones."""
    given = visit.asked_all("shows") or visit.asked_all("columns")
    if not given and COOKIE in visit.request.cookies:
        given = [visit.request.cookies[COOKIE]]
    if not given:
        return [column for column in known(visit) if column.usual]
    names = set(_split(given))
    return [column for column in known(visit) if column.name in names]


def _split(given: Iterable[str]) -> list[str]:
    return [name for one in given for name in one.split(".")]
