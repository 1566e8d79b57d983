"""The strip of a schedule's last ticks: what became of each, told by colour, by form and in words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from windlass.core.status import Status
from windlass.stores.contract import Fired

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from windlass.core.job import Job
    from windlass.stores.contract import Tick

_WIDE, _HIGH, _STEP = 8, 24, 11
_ENDS = {Status.SUCCEEDED: "succeeded", Status.FAILED: "failed", Status.CANCELLED: "cancelled"}
TONES = {"succeeded": "good", "failed": "bad", "skipped": "warn", "missed": "calm", "running": "run", "waiting": "wait"}
ICONS = {"skipped": "M4 4l6 6-6 6M11 4l6 6-6 6", "missed": "M4 10h.1M10 10h.1M16 10h.1", "running": "processing"}


class Mark(NamedTuple):
    """One tick, or several in a row that were missed."""

    at: datetime
    word: str
    """succeeded, failed, cancelled, running, waiting, skipped, missed, or fired where its job is no longer kept"""
    n: int = 1
    job: Job | None = None


def marks_of(ticks: Sequence[Tick], jobs: Mapping[str, Job]) -> list[Mark]:
    """The ticks with what became of them, as they come."""
    return [Mark(one.tick, _word(one, found := jobs.get(one.job_id or "")), one.ticks, found) for one in ticks]


def _word(tick: Tick, job: Job | None) -> str:
    if tick.fired is not Fired.FIRED:
        return tick.fired.value
    if job is None:
        return "fired"
    return _ENDS.get(job.status, "running" if job.status is Status.PROCESSING else "waiting")


def told(marks: Sequence[Mark]) -> str:
    """`18 succeeded, 1 failed, 2 skipped`."""
    sums: Counter[str] = Counter()
    for one in marks:
        sums[one.word] += one.n
    return ", ".join(f"{n:,} {word}" for word, n in sums.most_common()) or "none yet"


def strip(marks: Sequence[Mark]) -> Markup:
    """The drawing, the newest at the right."""
    drawn = Markup("").join(_drawn(one, place * _STEP) for place, one in enumerate(reversed(marks)))
    wide = max(len(marks) * _STEP - (_STEP - _WIDE), 1)
    return Markup(
        '<svg class="ticks" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="Last ticks: {}">{}</svg>'
    ).format(wide, _HIGH, wide, _HIGH, told(marks), drawn)


def _drawn(mark: Mark, x: int) -> Markup:
    """Whole where it went well, crossed out where it failed, half where it was skipped, hollow where it was missed."""
    match mark.word:
        case "failed":
            form = Markup('<rect x="{0}" width="8" height="24" rx="2"/><path d="M{1} 9l4 6M{2} 9l-4 6"/>').format(
                x, x + 2, x + 6
            )
        case "skipped" | "cancelled":
            form = Markup('<rect x="{}" y="12" width="8" height="12" rx="2"/>').format(x)
        case "missed":
            form = Markup('<rect x="{}" y="1" width="6" height="22" rx="2"/>').format(x + 1)
        case "running" | "waiting":
            form = Markup(
                '<rect x="{}" width="8" height="24" rx="2"/><rect class="gap" x="{}" y="6" width="4" height="12"/>'
            ).format(x, x + 2)
        case _:
            form = Markup('<rect x="{}" width="8" height="24" rx="2"/>').format(x)
    several = f" ×{mark.n}" if mark.n > 1 else ""
    return Markup('<g class="tick tick-{}"><title>{:%Y-%m-%d %H:%M:%S} UTC: {}{}</title>{}</g>').format(
        mark.word, mark.at, mark.word, several, form
    )
