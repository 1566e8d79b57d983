"""Files: projects, the files of one, and one file with its versions and what waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from windlass import Status
from windlass.apps.files.files import PROJECT, TYPE
from windlass.apps.files.names import Name, Space
from windlass.apps.files.receiving import file_of, project_of, told
from windlass.web import Page, Rail, Room, Visit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass import Job
    from windlass.apps.files.files import Files
    from windlass.apps.files.state import State

_A_PAGE = 50
_WAITING = 50
"""writes that wait and are shown"""
_ICON = "M2.5 5h5l1.5 2h8.5v9h-15zM2.5 9.5h15"
_OPEN = (Status.QUEUED, Status.BLOCKED, Status.PROCESSING, Status.SCHEDULED, Status.RETRYING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One file in the list of its project, or one that waits."""

    name: Name
    state: State

    @property
    def at(self) -> datetime | None:
        """When it was last written."""
        return None if self.state.current is None else instant(self.state.current.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """A write that has not ended."""

    job: Job
    space: Space
    file: str
    seq: int
    size: int


def room(files: Files) -> Room:
    """The room of one application's files."""
    listed = Page(
        path="/files",
        title="Files",
        template="projects.html",
        show=partial(_projects, files),
        rail=Rail(word="Files", icon=_ICON, order=110, key="l"),
    )
    project = Page(
        path="/files/{project}",
        title="A project",
        template="project.html",
        show=partial(_project, files),
        under="/files",
    )
    one = Page(
        path="/files/{project}/{file}", title="A file", template="file.html", show=partial(_file, files), under="/files"
    )
    return Room(name="files", folder=Path(__file__).parent, pages=(listed, project, one))


async def _projects(files: Files, visit: Visit) -> Mapping[str, Any]:
    owner, after = None if visit.sees_all else visit.caller.owner, visit.asked("after").partition("/")
    last = Space(after[0], after[2]) if after[2] else None
    rows = await (await files.records()).projects(owner, last, _A_PAGE + 1)
    shown = rows[:_A_PAGE]
    return {
        "rows": shown,
        "next": "/".join(shown[-1].space) if len(rows) > _A_PAGE else None,
        "waits": await _waits(visit),
        "most": _WAITING,
    }


async def _project(files: Files, visit: Visit) -> Mapping[str, Any]:
    space = project_of(visit.caller, visit.part("project"), visit.asked("owner") or None)
    records = await files.records()
    found = await records.files(space, visit.asked("after"), _A_PAGE + 1)
    shown = found[:_A_PAGE]
    return {
        "title": space.project,
        "space": space,
        "usage": await records.usage(space),
        "quota": files.settings,
        "largest": large(files.settings.project_bytes),
        "stats": await files.stats(space),
        "rows": [Row(name=one.name, state=one.state) for one in shown if one.state.is_there],
        "next": shown[-1].name.file if len(found) > _A_PAGE else None,
        "waits": await _waits(visit, space),
        "most": _WAITING,
    }


async def _file(files: Files, visit: Visit) -> Mapping[str, Any]:
    name = file_of(visit.caller, visit.part("project"), visit.part("file"), visit.asked("owner") or None)
    with told():
        state = await files.state(name)
    waits = await _waits(visit, name.space)
    current = state.current
    address = f"projects/{quote(name.space.project, safe='')}/files/{quote(name.file, safe='')}"
    return {
        "title": name.file,
        "name": name,
        "state": state,
        "current": current,
        "at": None if current is None else instant(current.at),
        "versions": [{"version": one, "at": instant(one.at)} for one in reversed(state.versions)],
        "waits": [one for one in waits if one.file == name.file],
        "space": name.space,
        # From the API's own address: the routes of files stand beside it.
        "routes": f"../../{address}",
        "content": f"{visit.base}/{address}",
        "owner": f"?owner={quote(name.space.owner, safe='')}" if visit.sees_all and name.space.owner else "",
        "may_write": visit.may("enqueue"),
        "largest": large(files.settings.largest),
        "most_bytes": files.settings.largest,
        "keeps": files.settings.versions,
        "most": _WAITING,
    }


async def _waits(visit: Visit, space: Space | None = None) -> Sequence[Waits]:
    """Writes that have not ended, the oldest first."""
    about: dict[str, Any] = {} if space is None else {"entity": (PROJECT, space.text)}
    page = await visit.jobs.find(type=TYPE, status=_OPEN, limit=_WAITING, oldest_first=True, max_age=visit.age, **about)
    return [_waiting(job) for job in page.jobs]


def _waiting(job: Job) -> Waits:
    owner, _, project = str(job.payload["space"]).rpartition("/")
    order = job.payload["order"]
    return Waits(
        job=job,
        space=Space(owner, project),
        file=str(job.payload["file"]),
        seq=int(order["seq"]),
        size=int(order["size"]),
    )


def large(n: int) -> str:
    """A bound as people read it: 10 MiB, 1 GiB."""
    for word, unit in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if n >= unit:
            return f"{n / unit:,.4g} {word}"
    return f"{n} bytes"


def instant(at: int) -> datetime:
    """From milliseconds since 1970."""
    return datetime.fromtimestamp(at / 1000, UTC)
