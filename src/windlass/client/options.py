"""What a caller may ask for with `using()`, and how it is laid over a handler's own options."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict, cast

from windlass.core.draft import FAIR_WORDS, Options, Priority, as_priority
from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.core.signals import as_duration
from windlass.core.unique import OnConflict, Unique, idempotency_window
from windlass.core.values import canonical
from windlass.core.wording import span
from windlass.core.words import read_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from windlass.core.limit import Limit
    from windlass.core.rate import Rate

_PAIR = 2
_CONTEXT = frozenset({"user", "entity", "correlation"})
"""what a job takes over from the running job that enqueues it, unless decided"""


class _Words(TypedDict, total=False):
    """The words of all options."""

    delay: float | timedelta | None
    at: datetime | None
    expires: float | timedelta | None
    priority: Priority
    queue: str
    max_attempts: int
    max_crashes: int
    timeout: float | timedelta | None
    unique: str | Unique | None
    on_conflict: OnConflict
    longest_wait: float | timedelta | None
    idempotent: bool | float | timedelta
    limit: Limit | None
    rate: Rate | None
    fair_by: str | None
    user: str | None
    entity: tuple[str, str | int] | None
    correlation: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any] | None


class Asked(_Words, total=False):
    """The options of one enqueue; what is left out stays as the handler declared it.

    Those that fill a field of the job are accepted by the field's name as well.
    """

    run_at: datetime | None
    user_id: str | None
    entity_name: str | None
    entity_id: str | int | None
    correlation_id: str | None


OPTION_WORDS = tuple(_Words.__annotations__)
ALIASES = tuple(Asked.__annotations__.keys() - _Words.__annotations__.keys())


def lay_over(base: Options, asked: Asked) -> Options:
    """The handler's options with what the caller asked for in their place."""
    changed: dict[str, Any] = {}
    words = read_words(cast("Mapping[str, object]", asked), OPTION_WORDS, "option")
    for name, value in words.items():
        _read_one(name, value, changed)
    decided = _CONTEXT & words.keys()
    if decided:
        changed["decided"] = base.decided | decided
    return _checked(replace(base, **changed)) if changed else base


def _checked(options: Options) -> Options:
    """The options, unless the job could never run: its time to begin would be over before it may."""
    if options.expires is not None and options.delay is not None and options.delay >= options.expires:
        raise SettingsError(
            f"expires is {span(options.expires)} and delay {span(options.delay)}, both counted from now: the job would"
            " expire before it may begin; give a longer expires, or expires=None"
        )
    return options


def _read_one(name: str, value: Any, into: dict[str, Any]) -> None:
    match name:
        case "delay" | "expires" | "longest_wait" | "timeout":
            into[name] = None if value is None else as_duration(value, name)
        case "at":
            into["run_at"] = value
        case "priority":
            into[name] = as_priority(value)
        case "unique":
            into[name] = Unique.of(value)
        case "idempotent":
            into["idempotency_window"] = idempotency_window(value)
        case "user" | "correlation":
            into[f"{name}_id"] = None if value is None else str(value)
        case "entity":
            into["entity_name"], into["entity_id"] = as_entity(value)
        case "tags":
            into[name] = tuple(value)
        case "metadata":
            into["metadata_json"] = None if value is None else canonical(dict(value), "metadata")
        case "fair_by":
            into[name] = FAIR_WORDS.get(value, value) if isinstance(value, str) else value
        case _:
            into[name] = value


def as_entity(value: object) -> tuple[str | None, str | None]:
    """The name and id of the thing a job is about."""
    if value is None:
        return None, None
    pair = cast("Sequence[object]", value)
    if isinstance(value, tuple) and len(pair) == _PAIR and None not in pair:
        return str(pair[0]), str(pair[1])
    raise SettingsError(f'entity is {shown(pair)}: expected a pair such as ("order", 42)')
