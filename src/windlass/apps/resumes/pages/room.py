"""Resumes: send one, watch it, read what was found in it, generate a tailored one and see its score explained."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windlass.apps.resumes.resume import Resume
from windlass.apps.resumes.resumes import Resumes, Seen
from windlass.apps.resumes.routes import found_for
from windlass.apps.resumes.shapes import ADVICE
from windlass.apps.resumes.standing import ENDED, Standing, reason_of
from windlass.web import Page, Rail, Room, Visit

if TYPE_CHECKING:
    from collections.abc import Mapping

_A_PAGE = 50
_ICON = "M5 2.5h7l3.5 3.5v11.5H5zM12 2.5V6h3.5M7.5 15c.3-1.8 1.2-2.7 2.7-2.7s2.4.9 2.7 2.7M10.2 10.8a1.4 1.4 0 1 0 0-2.8 1.4 1.4 0 0 0 0 2.8z"  # noqa: E501  # one path
TONES = {
    Standing.QUEUED: ("wait", "queued"),
    Standing.PROCESSING: ("run", "processing"),
    Standing.RETRYING: ("warn", "retrying"),
    Standing.COMPLETED: ("good", "succeeded"),
    Standing.FAILED: ("bad", "failed"),
}
"""colour and icon of a standing"""


def room(resumes: Resumes) -> Room:
    """The room of one application's resumes."""
    listed = Page(
        path="/resumes",
        title="Resumes",
        template="list.html",
        show=partial(_list, resumes),
        rail=Rail(word="Resumes", icon=_ICON, order=120, key="r"),
    )
    one = Page(
        path="/resumes/{id}", title="A resume", template="one.html", show=partial(_one, resumes), under="/resumes"
    )
    return Room(name="resumes", folder=Path(__file__).parent, pages=(listed, one))


async def _list(resumes: Resumes, visit: Visit) -> Mapping[str, Any]:
    user = None if visit.sees_all else visit.caller.owner
    found = await resumes.find(user, _A_PAGE + 1, visit.asked("after") or None)
    rows = found[:_A_PAGE]
    return {
        "rows": rows,
        "tones": TONES,
        "next": rows[-1].record.id if len(found) > _A_PAGE else None,
        "reasons": [reason_of(one.record, one.job) for one in rows],
        "shares": [_share(one) for one in rows],
        "largest": resumes.settings.largest,
        "may_send": visit.may("enqueue"),
    }


async def _one(resumes: Resumes, visit: Visit) -> Mapping[str, Any]:
    seen = await found_for(resumes, visit.part("id"), visit.caller)
    record, job = seen.record, seen.job
    content = record.structured_content
    facts = record.business_metadata.get("facts", {})
    usual: dict[str, Any] = {
        "title": record.original_file_name,
        "record": record,
        "seen": seen,
        "tone": TONES[seen.standing],
        "reason": reason_of(record, job),
        "share": _share(seen),
        "note": job.progress.note if job is not None and job.progress is not None else None,
        "resume": None if content is None else Resume.of(content),
        "facts": facts,
        "hidden": record.business_metadata.get("hidden", []),
        "structuring": record.business_metadata.get("structuring", {}),
        "ended": seen.standing in ENDED,
        "completed": seen.standing is Standing.COMPLETED,
        "may_send": visit.may("enqueue"),
        "advice": ADVICE,
    }
    return usual if record.job_id is None else {**usual, "stream": f"queue/{record.job_id}/events"}


def _share(seen: Seen) -> float | None:
    """How much of it is done, of one that goes on."""
    progress = None if seen.job is None else seen.job.progress
    if progress is None or not progress.of:
        return None
    return min(progress.done / progress.of, 1.0)
