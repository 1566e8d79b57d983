"""Uniqueness in two phases, and idempotency by content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias, cast

from windlass.core.errors import SettingsError
from windlass.core.keys import check_key, shown
from windlass.core.signals import as_duration

OnConflict: TypeAlias = Literal["existing", "raise", "replace"]
IDEMPOTENCY_WINDOW = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Unique:
    """At most one live job holds a key at a time.

    A job holds `queued` from its enqueue to its first start and `running` from there to its end. Without a `queued` key
    any number may wait; without a `running` key the next may be enqueued as soon as this one starts. A job whose
    `running` key is held when it is about to start waits as blocked and starts when the holder has ended.
    """

    queued: str | None = None
    running: str | None = None

    def __post_init__(self) -> None:
        """Refuse keys that no store could hold."""
        if self.queued is None and self.running is None:
            raise SettingsError("Unique() has neither a queued nor a running key: give at least one")
        if self.queued is not None:
            check_key(self.queued, "the unique key")
        if self.running is not None:
            check_key(self.running, "the unique running key")

    @staticmethod
    def of(value: str | Unique | None) -> Unique | None:
        """One text is the key of both phases."""
        given = cast("object", value)
        if given is None or isinstance(given, Unique):
            return given
        if isinstance(given, str):
            return Unique(given, given)
        raise SettingsError(f"unique is {shown(given)}: expected text or Unique(queued=, running=)")


def idempotency_key(type_: str, payload_json: str) -> str:
    """The same type and the same canonical payload give the same key, whatever the order of its members."""
    return hashlib.sha256(f"{type_}\n{payload_json}".encode()).hexdigest()


def idempotency_window(value: bool | float | timedelta | None) -> timedelta | None:  # noqa: FBT001  # the option's own value
    """True is the default window of a day; a number of seconds or a timedelta is its own."""
    if value is None or value is False:
        return None
    if value is True:
        return IDEMPOTENCY_WINDOW
    return as_duration(value, "idempotent")
