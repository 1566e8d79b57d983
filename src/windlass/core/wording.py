"""Wording: figures and instants as people read them, alike in messages, explanations and on screens."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from windlass.core.errors import SettingsError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?")
_LONGEST = timedelta(days=36_500)


def span(seconds: float | timedelta | None) -> str:
    """A duration for people: `12 ms`, `0.8 s`, `4 m 3 s`, `2 h 5 m`, `3 d 4 h`."""
    if seconds is None:
        return "–"
    total = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
    if total < 0:
        return f"-{span(-total)}"
    if total < 0.1:
        return f"{total * 1000:.0f} ms"
    if total < 60:
        return f"{total:.1f} s"
    whole = int(total)
    if whole < 3600:
        return f"{whole // 60} m {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} m"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def milliseconds(ms: float | None) -> str:
    """The same from milliseconds."""
    return "–" if ms is None else span(ms / 1000)


def clock(at: datetime | None) -> str:
    """An instant in UTC, to the second."""
    return "–" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def plural(n: int, word: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def duration(text: str, of: str) -> timedelta:
    """`30s`, `500ms`, `5m`, `1h30m`, `2d`; a bare number is seconds."""
    place, seconds = 0, 0.0
    while place < len(text) and (found := _DURATION.match(text, place)):
        if found[2] is None and found[0] != text:  # a bare number beside others: of what unit?
            break
        seconds += float(found[1]) * _UNITS[found[2] or "s"]
        place = found.end()
    if not text or place != len(text) or seconds > _LONGEST.total_seconds():
        raise SettingsError(f"{of} is {text[:40]!r}: expected a duration such as 30s, 500ms, 5m or 1h30m")
    return timedelta(seconds=seconds)
