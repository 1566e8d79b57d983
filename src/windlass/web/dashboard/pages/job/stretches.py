"""Stretches: how long a job waited and ran by turns, drawn to scale."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from markupsafe import Markup

from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.core.wording import span
from windlass.web.dashboard.pages.job.moves import RUN_ENDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from windlass.core.history import Entry

_WIDE, _HIGH = 1000.0, 26
_LEAST = 4.0
"""of the width: what is shorter is drawn so wide, that it can be seen"""
_GAP = 14.0
_WORDS = {
    Status.SCHEDULED: ("waited for its time", "calm"),
    Status.QUEUED: ("waited in its queue", "wait"),
    Status.BLOCKED: ("was blocked", "hold"),
    Status.RETRYING: ("waited for a retry", "warn"),
    Status.PROCESSING: ("ran", "run"),
}
_ENDS = {
    Happened.SUCCEEDED: ("and succeeded", "good"),
    Happened.RETRYING: ("and failed", "bad"),
    Happened.FAILED: ("and failed", "bad"),
    Happened.LOST: ("and was lost", "bad"),
    Happened.CRASHED: ("and crashed", "bad"),
    Happened.CANCELLED: ("and was cancelled", "run"),
    Happened.SNOOZED: ("and was snoozed", "run"),
    Happened.RELEASED: ("and was handed back", "run"),
    Happened.SUSPENDED: ("and was suspended", "run"),
    Happened.BLOCKED: ("and was parked", "run"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A time in which a job stood in one status."""

    began: datetime
    ended: datetime
    words: str
    tone: str
    ran: bool
    over: bool = True
    """false of the one that goes on"""
    rested: bool = False
    """it had ended, and was queued again later"""

    @property
    def lasted(self) -> timedelta:
        """How long."""
        return max(self.ended - self.began, timedelta(0))


def stretches(history: Sequence[Entry], now: datetime) -> list[Stretch]:
    """The times between the entries that changed its status; what goes on ends now."""
    marks = [
        entry
        for n, entry in enumerate(history)
        if n == 0 or entry.status is not history[n - 1].status or entry.happened is Happened.RETRIED
    ]
    found: list[Stretch] = []
    for entry, after in zip(marks, [*marks[1:], None], strict=True):
        if entry.status.finished:
            if after is not None:
                found.append(_rest(entry, after))
            continue
        words, tone = _WORDS[entry.status]
        ended = max(now, entry.at) if after is None else after.at
        ran = entry.status is Status.PROCESSING
        if ran and after is not None and after.happened in RUN_ENDS:
            told, tone = _ENDS[after.happened]
            words = f"{words} {told}"
        over = after is not None
        found.append(Stretch(began=entry.at, ended=ended, words=words, tone=tone, ran=ran, over=over))
    return found


def _rest(entry: Entry, after: Entry) -> Stretch:
    words = "had ended, and was queued again"
    return Stretch(began=entry.at, ended=after.at, words=words, tone="calm", ran=False, rested=True)


@dataclass(frozen=True, slots=True)
class Kind:
    """All stretches of one kind together."""

    words: str
    tone: str
    ran: bool
    lasted: timedelta
    times: int


def legend(found: Sequence[Stretch]) -> list[Kind]:
    """What the colours of the drawing stand for, and how long it was each in all; in the order in which they came."""
    kinds: dict[str, Kind] = {}
    for one in found:
        if not one.rested:
            known = kinds.get(one.words, Kind(one.words, one.tone, one.ran, timedelta(0), 0))
            kinds[one.words] = Kind(one.words, one.tone, one.ran, known.lasted + one.lasted, known.times + 1)
    return list(kinds.values())


def waited(found: Sequence[Stretch]) -> timedelta:
    """How long it waited in all."""
    return sum((one.lasted for one in found if not one.ran and not one.rested), timedelta(0))


def ran(found: Sequence[Stretch]) -> timedelta:
    """How long it ran in all."""
    return sum((one.lasted for one in found if one.ran), timedelta(0))


def strip(found: Sequence[Stretch]) -> Markup:
    """The drawing; the times in which it had ended are gaps, each as narrow as the others."""
    drawn: list[Markup] = []
    x = 0.0
    for one, wide in zip(found, _widths(found), strict=True):
        if one.rested:
            drawn.append(
                Markup('<path class="strip-gap" d="M{:.1f} 5V21M{:.1f} 5V21"/>').format(
                    x + wide * 0.35, x + wide * 0.65
                )
            )
        else:
            kind = "ran" if one.ran else "waited"
            high, y = (_HIGH, 0) if one.ran else (8, 9)
            drawn.append(
                Markup('<rect class="strip-{} tone-{}{}" x="{:.1f}" y="{}" width="{:.1f}" height="{}" rx="2"/>').format(
                    kind, one.tone, "" if one.over else " goes-on", x, y, max(wide - 1.5, 1.5), high
                )
            )
        x += wide
    told = ", ".join(f"{one.words} {span(one.lasted)}" for one in found[:12])
    more = f" and {len(found) - 12} more" if len(found) > 12 else ""
    return Markup(
        '<svg class="strip" viewBox="0 0 {:.0f} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(_WIDE, _HIGH, f"To scale: {told}{more}", Markup("").join(drawn))


def _widths(found: Sequence[Stretch]) -> list[float]:
    """To scale in what the gaps leave, but that none is too narrow to be seen."""
    room = max(_WIDE - _GAP * sum(one.rested for one in found), _WIDE / 2)
    seconds = [0.0 if one.rested else one.lasted.total_seconds() for one in found]
    total = sum(seconds) or 1.0
    wide = [_GAP if one.rested else max(part / total * room, _LEAST) for one, part in zip(found, seconds, strict=True)]
    scale = _WIDE / (sum(wide) or 1.0)
    return [one * scale for one in wide]
