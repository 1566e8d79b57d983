"""Drafts: what a client wants enqueued, before a store has stamped it."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from windlass.core.errors import SettingsError
from windlass.core.job import MAX_ATTEMPTS, MAX_CRASHES, PRIORITIES
from windlass.core.keys import Template, check_key, check_name, shown, template
from windlass.core.limit import Limit  # these are read at run time where drafts are sent between processes
from windlass.core.rate import Rate
from windlass.core.signals import LONGEST
from windlass.core.unique import OnConflict, Unique

if TYPE_CHECKING:
    from collections.abc import Mapping

Priority: TypeAlias = int | str
Awaits: TypeAlias = Literal["success", "end"]
"""what a job waits for in the jobs that name it as their next: that all succeed, or that all end, however"""
DEFAULT_QUEUE = "default"
DEFAULT_TIMEOUT = timedelta(hours=1)
_INT32 = 2**31 - 1
_TAGS = 32
_MILLISECOND = timedelta(milliseconds=1)  # what the stores count time in
LONGEST_TRACE = 1024
"""characters of where a job came from: a W3C trace parent, baggage and trace state"""
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CONTEXT = ("correlation_id", "user_id", "entity_name", "entity_id", "schedule", "parent_id", "replay_of", "origin")


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
    expires: timedelta | None = None
    """a job that no worker has taken by then, counted from its creation, is cancelled"""
    unique: Unique | None = None
    on_conflict: OnConflict = "existing"
    longest_wait: timedelta | None = None
    """with on_conflict="replace": a debounced job is not put off beyond this, counted from its creation"""
    idempotency_window: timedelta | None = None
    limit: Limit | None = None
    rate: Rate | None = None
    fair_by: str | None = None
    """whose turn it is: user_id, entity_id, correlation_id, or a template of arguments; see `fair_key`"""
    awaits: Awaits | None = None
    """it is inserted as blocked, and goes on when the jobs that name it as their next have ended"""
    takes: str | None = None
    """the parameter that results of the jobs before it fill in; see `Taken`"""
    schedule: str | None = None
    tick: datetime | None = None
    parent_id: str | None = None
    replay_of: str | None = None
    origin: str | None = None
    correlation_id: str | None = None
    user_id: str | None = None
    entity_name: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata_json: str | None = None
    trace: str | None = None
    decided: frozenset[str] = frozenset()
    """which of user, entity and correlation the caller gave, even as None: these are not taken over from a parent"""

    def __post_init__(self) -> None:
        """Refuse what no store could keep, before anything is sent."""
        check_name(self.queue, "the queue")
        _whole(self.priority, "priority", -_INT32, _INT32)
        _whole(self.max_attempts, "max_attempts", 1, _INT32)
        _whole(self.max_crashes, "max_crashes", 1, _INT32)
        for of in ("timeout", "delay", "expires", "longest_wait", "idempotency_window"):
            _span(getattr(self, of), of)
        if self.timeout is not None and self.timeout < _MILLISECOND:
            raise SettingsError(f"timeout is {self.timeout}: expected at least a millisecond, or None for no timeout")
        if self.expires is not None and self.expires < _MILLISECOND:
            raise SettingsError(f"expires is {self.expires}: expected at least a millisecond, or None for no expiry")
        if self.delay is not None and self.run_at is not None:
            raise SettingsError("both delay and at were given: choose one")
        _instant(self.run_at, "at")
        _instant(self.tick, "tick")
        if self.on_conflict not in ("existing", "raise", "replace"):
            raise SettingsError(f"on_conflict is {shown(self.on_conflict)}: expected 'existing', 'raise' or 'replace'")
        if self.awaits is not None and self.awaits not in get_args(Awaits):
            raise SettingsError(f"awaits is {shown(self.awaits)}: expected 'success' or 'end'")
        if self.awaits is not None and (self.delay is not None or self.run_at is not None):
            raise SettingsError("a job that waits for others has no time of its own: leave out delay and at")
        if self.fair_by is not None:
            check_fair_by(self.fair_by)
        for of in _CONTEXT:
            value = getattr(self, of)
            if value is not None:
                check_key(value, of)
        if len(self.tags) > _TAGS:
            raise SettingsError(f"{len(self.tags)} tags were given: expected at most {_TAGS}")
        for tag in self.tags:
            check_name(tag, "a tag")
        if self.trace is not None and not (len(self.trace) <= LONGEST_TRACE and self.trace.isprintable()):
            raise SettingsError(f"trace is {shown(self.trace)}: expected at most {LONGEST_TRACE} printable characters")

    @property
    def rate_n(self) -> int | None:
        """How many jobs of its rate may start within the window."""
        return None if self.rate is None else self.rate.n

    @property
    def rate_ms(self) -> int | None:
        """The window of its rate in milliseconds."""
        return None if self.rate is None else self.rate.per_ms


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
    rate_key: str | None = None
    fair_key: str | None = None
    next_id: str | None = None
    """the job that waits for this one's end"""


class Taken(NamedTuple):
    """What a job takes of those before it: the result of one, or a list of so many, and in which parameter."""

    name: str
    n: int | None = None
    """how many results the list must have; None where it is no list"""

    def text(self) -> str:
        """As a job has it: `rows`, or `rows[3]`."""
        return self.name if self.n is None else f"{self.name}[{self.n}]"

    @staticmethod
    def of(text: str) -> Taken:
        """From its text. Of a list without a number, as it was once written, any number of results is taken: 0."""
        name, bracket, rest = text.partition("[")
        return Taken(name, int(rest.removesuffix("]") or 0) if bracket else None)


FAIR_WORDS = {"user": "user_id", "entity": "entity_id", "correlation": "correlation_id"}
"""what turns can be shared by, as options call it, and the field of the job that has it: either is accepted"""
FAIR_FIELDS = tuple(FAIR_WORDS.values())


def check_fair_by(value: object) -> str:
    """What turns are shared by: one of a job's own fields, or a key template with at least one of its arguments."""
    if value in FAIR_FIELDS or (isinstance(value, str) and "{" in value and Template(value).names):
        return str(value)
    raise SettingsError(
        f"fair_by is {shown(value)}: expected one of {', '.join(FAIR_FIELDS)}, or a template such as 'team:{{team}}'"
    )


def fair_key(options: Options, arguments: Mapping[str, object]) -> str | None:
    """Who a job's turn is counted for; nobody where the field is empty."""
    match options.fair_by:
        case None:
            return None
        case "user_id":
            return options.user_id
        case "entity_id":
            return None if options.entity_id is None else f"{options.entity_name}:{options.entity_id}"
        case "correlation_id":
            return options.correlation_id
        case key:
            return template(key).fill(arguments)


_KEPT = (
    "priority",
    "max_attempts",
    "max_crashes",
    "correlation_id",
    "user_id",
    "entity_name",
    "entity_id",
    "metadata_json",
)
_KEPT_DURATIONS = ("timeout", "expires")


def kept_options(options: Options) -> str:
    """The options a schedule keeps for its jobs, as JSON text; its queue it keeps apart, keys and times it has none."""
    kept: dict[str, object] = {name: getattr(options, name) for name in _KEPT}
    for name in _KEPT_DURATIONS:
        duration: timedelta | None = getattr(options, name)
        kept[f"{name}_ms"] = None if duration is None else duration // _MILLISECOND
    kept["tags"] = list(options.tags)
    return json.dumps(kept, sort_keys=True)


def with_kept(base: Options, text: str) -> Options:
    """The options of a schedule's next job: what it kept, over those its handler declares now."""
    kept: dict[str, Any] = json.loads(text)
    changed = {name: kept[name] for name in _KEPT if name in kept}
    for name in _KEPT_DURATIONS:
        if f"{name}_ms" in kept:
            ms = kept[f"{name}_ms"]
            changed[name] = None if ms is None else timedelta(milliseconds=ms)
    if "tags" in kept:
        changed["tags"] = tuple(kept["tags"])
    return replace(base, **changed)


def as_priority(value: Priority) -> int:
    """A number, or one of the names critical, high, normal, low."""
    if isinstance(value, str):
        if value not in PRIORITIES:
            raise SettingsError(
                f"priority is {shown(value)}: expected a whole number or one of {', '.join(PRIORITIES)}"
            )
        return PRIORITIES[value]
    return value


def make_id(milliseconds: int, entropy: int) -> str:
    """A UUIDv7 of this millisecond; ids of a larger (milliseconds, entropy) sort later. Takes 74 bits of entropy."""
    return "%08x-%04x-7%03x-%04x-%012x" % (  # noqa: UP031  # once per job, and a third faster than an f-string
        milliseconds >> 16 & 0xFFFF_FFFF,
        milliseconds & 0xFFFF,
        entropy >> 62 & 0xFFF,
        entropy >> 48 & 0x3FFF | 0x8000,
        entropy & 0xFFFF_FFFF_FFFF,
    )


_INDEX_BITS = 20


def ids_after(first: str, n: int) -> list[str]:
    """The ids of `n` jobs that belong together, in order: always the same ones for the same first id."""
    milliseconds = int(first[:8] + first[9:13], 16)
    random = int.from_bytes(hashlib.sha256(first.encode()).digest()[:8]) >> (64 - (74 - _INDEX_BITS))
    return [make_id(milliseconds, random << _INDEX_BITS | number) for number in range(n)]


def check_id(value: object) -> str:
    """A job id as windlass writes it; anything else cannot name a job."""
    if isinstance(value, str) and _ID.fullmatch(lowered := value.lower()):
        return lowered
    raise SettingsError(f"{shown(value)} is not a job id: expected a UUID like 0190a3c4-5d6e-7f80-9123-456789abcdef")


def _whole(value: object, of: str, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise SettingsError(f"{of} is {shown(value)}: expected a whole number from {least} to {most}")


def _span(value: object, of: str) -> None:
    if value is not None and not (isinstance(value, timedelta) and timedelta(0) <= value <= LONGEST):
        raise SettingsError(f"{of} is {shown(value)}: expected a timedelta from 0 to 100 years")


def _instant(value: object, of: str) -> None:
    if value is None:
        return
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise SettingsError(f"{of} is {shown(value)}, without a zone: give an aware datetime")
    try:
        value.astimezone(UTC)
    except OverflowError:
        raise SettingsError(f"{of} is {value.isoformat()}: in UTC that is outside the calendar") from None
