"""What a handler declares, as text that others can read without its code: the catalogue is made of these."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from windlass.core.draft import FAIR_FIELDS, Options
from windlass.core.keys import template
from windlass.core.limit import Limit
from windlass.core.rate import Rate
from windlass.core.unique import Unique
from windlass.core.values import encode, is_clear

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.core.payload import Codec
    from windlass.core.retry import Retry

LARGEST_SCHEMA = 256 * 1024
"""bytes of a schema; a larger one is left out, and payloads of that type are checked by its worker alone"""
_MILLISECOND = timedelta(milliseconds=1)
_DURATIONS = ("timeout", "delay", "expires", "longest_wait", "idempotency_window")
_PLAIN = (
    *("priority", "max_attempts", "max_crashes", "on_conflict", "fair_by", "metadata_json"),
    *("correlation_id", "user_id", "entity_name", "entity_id"),
)


@dataclass(frozen=True)
class Declared:
    """One version of a type: its queue and options, and the JSON Schemas of its payload and its result.

    Two that declare the same have the same fingerprint, whichever process made them.
    """

    type: str
    text: str
    """all of it as canonical JSON"""
    version: str | None = None
    """of the application, where it gives one; the fingerprint does not depend on it"""
    fingerprint: str = field(init=False)
    """SHA-256 of the type and the text"""

    def __post_init__(self) -> None:
        """Take the fingerprint."""
        made = hashlib.sha256(f"{self.type}\n{self.text}".encode()).hexdigest()
        object.__setattr__(self, "fingerprint", made)

    @cached_property
    def parts(self) -> Mapping[str, Any]:
        """The text as values."""
        found: dict[str, Any] = json.loads(self.text)
        return found

    @property
    def queue(self) -> str:
        """Where its jobs wait unless they are told otherwise."""
        return str(self.parts["queue"])

    @property
    def options(self) -> Mapping[str, Any]:
        """What else is declared, as plain values: durations are milliseconds under a name that ends in `_ms`."""
        return cast("Mapping[str, Any]", self.parts["options"])

    @property
    def payload_schema(self) -> Mapping[str, Any] | None:
        """What its payloads look like; None where that cannot be said."""
        return cast("Mapping[str, Any] | None", self.parts["payload"])

    @property
    def result_schema(self) -> Mapping[str, Any] | None:
        """The same of its results."""
        return cast("Mapping[str, Any] | None", self.parts["result"])

    @property
    def defaults(self) -> Mapping[str, Any]:
        """What stands in for arguments that a payload leaves out, where key templates name them."""
        return cast("Mapping[str, Any]", self.parts["defaults"])

    @property
    def takes_secrets(self) -> bool:
        """Whether something in its payload is a secret; its schema says what."""
        return bool(self.parts.get("secrets"))

    @property
    def takes_arguments(self) -> bool:
        """Whether its payload is an object of arguments by name, and not one value as a whole."""
        return bool(self.parts["arguments"])

    @cached_property
    def enqueued_with(self) -> Options:
        """The options of its jobs, unless they are told otherwise."""
        return _read_options(self.queue, self.options)


def describe(
    name: str, codec: Codec, options: Options, policy: Retry, version: str | None = None, batch: int | None = None
) -> Declared:
    """What a handler of this name declares."""
    written = _written_options(options) | {"retry": _written_retry(policy)}
    parts: dict[str, Any] = {
        "arguments": codec.by_name,
        "queue": options.queue,
        "options": written if batch is None else written | {"batch": batch},
        "defaults": _fillers(codec.defaults, options),
        "payload": _bounded(codec.payload_schema()),
        "result": _bounded(codec.result_schema()),
    }
    if codec.holds_secrets:
        parts["secrets"] = True
    return Declared(name, encode(parts), version)


def _bounded(schema: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return schema if schema is not None and len(encode(schema).encode()) <= LARGEST_SCHEMA else None


def _written_options(options: Options) -> dict[str, Any]:
    """Only what differs from what any job has, so that a default added later changes no fingerprint."""
    plain = _defaults()
    written = {name: getattr(options, name) for name in _PLAIN if getattr(options, name) != plain[name]}
    for name in _DURATIONS:
        duration = getattr(options, name)
        if duration != plain[name]:
            written[f"{name}_ms"] = None if duration is None else duration // _MILLISECOND
    if options.run_at is not None:
        written["run_at"] = options.run_at.astimezone(UTC).isoformat()
    if options.tags:
        written["tags"] = list(options.tags)
    if options.decided:
        written["decided"] = sorted(options.decided)
    unique, limit, rate = options.unique, options.limit, options.rate
    if unique is not None:
        written["unique"] = {"queued": unique.queued, "running": unique.running}
    if limit is not None:
        written["limit"] = {"key": limit.key, "n": limit.n}
    if rate is not None:
        written["rate"] = {"key": rate.key, "n": rate.n, "per_ms": rate.per_ms}
    return written


def _defaults() -> dict[str, Any]:
    return {one.name: one.default for one in fields(Options)}


def _read_options(queue: str, written: Mapping[str, Any]) -> Options:
    """The options that were written; of what this windlass does not know, nothing."""
    given: dict[str, Any] = {name: written[name] for name in _PLAIN if name in written}
    for name in _DURATIONS:
        if f"{name}_ms" in written:
            ms = written[f"{name}_ms"]
            given[name] = None if ms is None else timedelta(milliseconds=ms)
    if "run_at" in written:
        given["run_at"] = datetime.fromisoformat(written["run_at"])
    if "unique" in written:
        given["unique"] = Unique(written["unique"]["queued"], written["unique"]["running"])
    if "limit" in written:
        given["limit"] = Limit(written["limit"]["key"], written["limit"]["n"])
    if "rate" in written:
        rate = written["rate"]
        given["rate"] = Rate(rate["n"], timedelta(milliseconds=rate["per_ms"]), rate["key"])
    given["tags"] = tuple(written.get("tags", ()))
    given["decided"] = frozenset(written.get("decided", ()))
    return Options(queue=queue, **given)


def _written_retry(policy: Retry) -> dict[str, Any]:
    written: dict[str, Any] = {"attempts": policy.attempts, "jitter": policy.jitter}
    if policy.delay is None:
        written |= {"base": policy.base, "factor": policy.factor, "cap": policy.cap}
    else:
        written["delay"] = "its own"
    for word in ("on", "never"):
        written[word] = [error.__qualname__ for error in getattr(policy, word)]
    return written


def _fillers(defaults: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """Of the arguments' defaults those that a key may need, as far as they can be written."""
    unique, limit, rate = options.unique, options.limit, options.rate
    keys = [limit.key if limit else None, unique.queued if unique else None, unique.running if unique else None]
    keys += [rate.key if rate else None, None if options.fair_by in FAIR_FIELDS else options.fair_by]
    names = {name for key in keys if key is not None for name in template(key).names}
    return {name: defaults[name] for name in sorted(names & defaults.keys()) if is_clear(defaults[name], 0)}
