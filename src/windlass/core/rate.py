"""Rates: at most N starts of one key in any window of time, across all workers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from windlass.core.errors import SettingsError
from windlass.core.keys import Template, shown, template
from windlass.core.signals import read_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST = 1_000_000
LONGEST = timedelta(days=31)
GRAINS = 20
"""into how many parts a window is cut: what started is booked by part, so that a store keeps few figures per key"""
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, init=False)
class Rate:
    """At most `n` jobs whose key fills in alike start in any window of `per`; the others wait as blocked, in turn.

    Without a `key` all jobs of the type share one. Every attempt is a start: one that is tried again counts again. Jobs
    that share a key are to have the same rate: starts are forgotten when the window of the last of them has passed.
    """

    n: int
    per: timedelta
    key: str | None

    def __init__(self, n: int, per: float | timedelta = 1.0, key: str | None = None) -> None:
        """Take a window in seconds or as a timedelta; refuse what would let nothing through or cannot be counted."""
        if isinstance(n, bool) or not isinstance(cast("object", n), int) or not 1 <= n <= MOST:
            raise SettingsError(f"Rate allows {shown(n)} starts: expected 1 to {MOST}")
        window = read_duration(per)
        if window is None or not GRAINS * _MILLISECOND <= window <= LONGEST:
            raise SettingsError(
                f"Rate has per={shown(per)}: expected seconds or a timedelta from {GRAINS} ms to 31 days"
            )
        if key is not None:
            Template(key)
        object.__setattr__(self, "n", n)
        object.__setattr__(self, "per", window)
        object.__setattr__(self, "key", key)

    def key_for(self, type_: str, arguments: Mapping[str, object]) -> str:
        """The key of one job, from its own arguments or else its type."""
        return f"type:{type_}" if self.key is None else template(self.key).fill(arguments)

    @property
    def per_ms(self) -> int:
        """The window in whole milliseconds, rounded up: never shorter than asked."""
        return -(-self.per // _MILLISECOND)


def booked_at(now_ms: int, per_ms: int) -> int:
    """The millisecond that starts of now are booked under: the end of the part of the window that now lies in.

    Starts count for a whole window from there. As that is never before they happened, no window ever holds more than
    its number; as it is at most a part later, at most a twentieth of the window is given away.
    """
    part = per_ms // GRAINS
    return -(-now_ms // part) * part
