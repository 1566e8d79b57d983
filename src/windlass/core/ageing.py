"""Ageing: a job that has waited long enough is raised, so that a stream of more urgent ones cannot starve it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from windlass.core.draft import Priority, as_priority
from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.core.signals import LONGEST

_LEAST = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Ageing:
    """A queued job of a later priority than `to` is raised to it once it has waited for `after`.

    There it stands before younger ones. Priorities that come before `to` still go first: with the default `high` only
    critical jobs do.
    """

    after: timedelta
    to: Priority = "high"

    def __post_init__(self) -> None:
        """Refuse what would raise everything at once, or nothing ever."""
        after = cast("object", self.after)
        if not isinstance(after, timedelta) or not _LEAST <= after <= LONGEST:
            raise SettingsError(f"Ageing has after={shown(after)}: expected a timedelta of at least a second")
        level = cast("object", as_priority(self.to))
        if isinstance(level, bool) or not isinstance(level, int):
            raise SettingsError(f"Ageing has to={shown(self.to)}: expected a priority, by name or number")

    @property
    def level(self) -> int:
        """The priority it raises to, as a number."""
        return as_priority(self.to)
