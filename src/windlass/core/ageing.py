"""Ageing: a job that has waited long enough is raised, so that a stream of more urgent ones cannot starve it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from windlass.core.draft import Priority, as_priority
from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.core.signals import LONGEST, read_duration

_LEAST = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, init=False)
class Ageing:
    """A queued job of a later priority than `to` is raised to it once it has waited for `after`.

    There it stands before younger ones. Priorities that come before `to` still go first: with the default `high` only
    critical jobs do.
    """

    after: timedelta
    to: Priority

    def __init__(self, after: float | timedelta, to: Priority = "high") -> None:
        """Take seconds or a timedelta; refuse what would raise everything at once, or nothing ever."""
        wait = read_duration(after)
        if wait is None or not _LEAST <= wait <= LONGEST:
            raise SettingsError(
                f"Ageing has after={shown(after)}: expected seconds or a timedelta, of at least a second"
            )
        level = cast("object", as_priority(to))
        if isinstance(level, bool) or not isinstance(level, int):
            raise SettingsError(f"Ageing has to={shown(to)}: expected a priority, by name or number")
        object.__setattr__(self, "after", wait)
        object.__setattr__(self, "to", to)

    @property
    def level(self) -> int:
        """The priority it raises to, as a number."""
        return as_priority(self.to)
