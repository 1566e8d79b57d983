"""Drafts: what a client wants enqueued, before a store has stamped it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from windlass.core.errors import SettingsError
from windlass.core.job import MAX_ATTEMPTS, MAX_CRASHES, PRIORITIES
from windlass.core.keys import check_key, check_name

if TYPE_CHECKING:
    from windlass.core.limit import Limit
    from windlass.core.unique import OnConflict, Unique

Priority: TypeAlias = int | str
DEFAULT_QUEUE = "default"
DEFAULT_TIMEOUT = timedelta(hours=1)
_INT32 = 2**31 - 1
_TAGS = 32
_ID_LENGTH = 36


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All of a job but its identity and arguments. Shared by every draft that was asked for alike."""

    queue: str = DEFAULT_QUEUE
    priority: int = PRIORITIES["normal"]
    max_attempts: int = MAX_ATTEMPTS
    max_crashes: int = MAX_CRASHES
    timeout: timedelta | None = DEFAULT_TIMEOUT
    delay: timedelta | None = None
    run_at: datetime | None = None
    unique: Unique | None = None
    on_conflict: OnConflict = "existing"
    longest_wait: timedelta | None = None
    """with on_conflict="replace": a debounced job is not put off beyond this, counted from its creation"""
    idempotency_window: timedelta | None = None
    limit: Limit | None = None
    schedule: str | None = None
    tick: datetime | None = None
    parent_id: str | None = None
    replay_of: str | None = None
    correlation_id: str | None = None
    user_id: str | None = None
    entity_name: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata_json: str | None = None
    trace: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no store could keep, before anything is sent."""
        check_name(self.queue, "the queue")
        _whole(self.priority, "priority", -_INT32, _INT32)
        _whole(self.max_attempts, "max_attempts", 1, _INT32)
        _whole(self.max_crashes, "max_crashes", 1, _INT32)
        if self.timeout is not None and self.timeout <= timedelta(0):
            raise SettingsError(f"timeout is {self.timeout}: expected more than 0 seconds, or None for no timeout")
        if self.delay is not None and self.run_at is not None:
            raise SettingsError("both delay and at were given: choose one")
        if self.run_at is not None and self.run_at.tzinfo is None:
            raise SettingsError(f"at is {self.run_at.isoformat()}, without a zone: give an aware datetime")
        if self.on_conflict not in ("existing", "raise", "replace"):
            raise SettingsError(f"on_conflict is {self.on_conflict!r}: expected 'existing', 'raise' or 'replace'")
        for of in ("correlation_id", "user_id", "entity_name", "entity_id", "schedule"):
            value = getattr(self, of)
            if value is not None:
                check_key(value, of)
        if len(self.tags) > _TAGS:
            raise SettingsError(f"{len(self.tags)} tags were given: expected at most {_TAGS}")
        for tag in self.tags:
            check_name(tag, "a tag")


class Draft(NamedTuple):
    """A job about to be inserted. Its id is made by the client, so an insert tried again is the same job."""

    id: str
    type: str
    payload_json: str
    options: Options
    unique_queued: str | None = None
    unique_running: str | None = None
    idempotency_key: str | None = None
    limit_key: str | None = None
    limit: int | None = None


def as_priority(value: Priority) -> int:
    """A number, or one of the names critical, high, normal, low."""
    if isinstance(value, str):
        if value not in PRIORITIES:
            raise SettingsError(f"priority is {value!r}: expected a whole number or one of {', '.join(PRIORITIES)}")
        return PRIORITIES[value]
    return value


def make_id(milliseconds: int, entropy: int) -> str:
    """A UUIDv7 of this millisecond; ids of a larger (milliseconds, entropy) sort later. Takes 74 bits of entropy."""
    value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | (entropy >> 62 & 0xFFF) << 64
    text = f"{value | 0b10 << 62 | entropy & 0x3FFF_FFFF_FFFF_FFFF:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def check_id(value: object) -> str:
    """A job id as windlass writes it; anything else cannot name a job."""
    if isinstance(value, str) and len(value) == _ID_LENGTH and value.replace("-", "").isalnum() and value.isascii():
        return value.lower()
    raise SettingsError(f"{str(value)[:80]!r} is not a job id: expected a UUID like 0190a3c4-5d6e-7f80-9123-456789abcdef")


def _whole(value: object, of: str, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise SettingsError(f"{of} is {value!r}: expected a whole number from {least} to {most}")
