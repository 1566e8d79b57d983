"""Words: how people write durations, times and queues to us, and how figures are written back to them."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from windlass.core.errors import SettingsError
from windlass.core.wording import clock, duration, milliseconds, plural, span

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.stores.contract import Count

__all__ = [
    "clock",
    "count",
    "duration",
    "entity",
    "instant",
    "maybe_duration",
    "milliseconds",
    "plural",
    "queues",
    "rate",
    "size",
    "span",
    "value",
    "weights",
]
_A_SECOND = {"s": 1.0, "m": 60.0, "h": 3600.0}


def maybe_duration(text: str | None, of: str) -> timedelta | None:
    """The same for an option that may be left out."""
    return None if text is None else duration(text, of)


def instant(text: str, of: str) -> datetime:
    """An ISO 8601 date and time; without a zone it is read on this host's clock."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        raise SettingsError(
            f"{of} is {text[:40]!r}: expected a time such as 2026-11-30T09:00 or …T09:00+01:00"
        ) from None


def queues(given: Sequence[str], concurrency: int) -> dict[str, int] | None:
    """`mail:10`, or several as `mail:10,default`; one without a number may use every slot. None when none is named."""
    found: dict[str, int] = {}
    for text in (part for one in given for part in one.split(",")):
        name, colon, slots = text.strip().rpartition(":")
        if not colon:
            name, slots = slots, str(concurrency)
        if not name or not slots.isdecimal():
            raise SettingsError(f"--queue is {text!r}: expected NAME or NAME:SLOTS, such as mail:10")
        found[name] = int(slots)
    return found or None


def weights(given: Sequence[str]) -> dict[str, int] | None:
    """`mail=3`, or several as `mail=3,default=1`. None when none is given."""
    read: dict[str, int] = {}
    for text in (part for several in given for part in several.split(",")):
        name, _, weight = text.strip().rpartition("=")
        if not name or not weight.isdecimal():
            raise SettingsError(f"--weight is {text!r}: expected NAME=N, such as mail=3")
        read[name] = int(weight)
    return read or None


def entity(text: str | None) -> tuple[str, str] | None:
    """`order:42` is a name and an id."""
    if text is None:
        return None
    name, colon, entity_id = text.partition(":")
    if not colon or not name or not entity_id:
        raise SettingsError(f"--entity is {text!r}: expected NAME:ID, such as order:42")
    return name, entity_id


def value(text: str) -> Any:
    """JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def count(n: Count) -> str:
    """A number with thousands apart, and a plus where counting stopped."""
    return f"{n.n:,}" + ("" if n.exact else "+")


def rate(text: str, of: str) -> float:
    """`10/s`, `600/m`, `5/h`; a bare number is by the second. How many in a second."""
    number, slash, unit = text.partition("/")
    if not (found := re.fullmatch(r"\d+(?:\.\d+)?", number)) or (slash and unit not in _A_SECOND) or float(number) == 0:
        raise SettingsError(f"{of} is {text[:40]!r}: expected a rate such as 10/s, 600/m or 5/h")
    return float(found[0]) / _A_SECOND[unit or "s"]


def size(text: str) -> str:
    """How large a text is in the store."""
    n = len(text.encode("utf-8", "surrogatepass"))
    return f"{n} B" if n < 10_000 else f"{n / 1024:.1f} KiB"
