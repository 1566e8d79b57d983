"""Kept values: what a job remembers from one attempt to the next, each under a name, as JSON text.

A step's result, the place a loop has come to, a signal that has come, the children it gathers: one map on the job,
handed over with it when it is claimed. The holder of its lease adds to it; so does a signal.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.blocked import Kind
from windlass.core.errors import PayloadInvalid, SettingsError
from windlass.core.keys import check_key, check_name, shown
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST = 256 * 1024
"""bytes of one value"""
MOST_BYTES = 1024 * 1024
"""of all names and values of one job"""
MOST = 256
"""names of one job"""
SAVED = "saved"
"""where a loop has come to: `ctx.saved`"""
NULL = "null"
GATHER = "gather"
"""what the names of gathered children begin with"""


class Signal(NamedTuple):
    """A value that somebody sends to a job."""

    name: str
    json: str


def step_name(name: str, key: str | None = None) -> str:
    """What the result of a step is kept under; `key` tells the rounds of a loop apart."""
    if ":" in check_name(name, "the step's name"):
        raise SettingsError(
            f"the step's name is {shown(name)}: expected one without a colon, which sets off the key; give key= instead"
        )
    return f"step:{name}" if key is None else f"step:{name}:{check_key(key, 'the key of the step')}"


def signal_name(name: str) -> str:
    """What a signal is kept under."""
    return f"signal:{check_name(name, 'the name of the signal')}"


def gather_name(name: str) -> str:
    """What is known of gathered children is kept under."""
    return f"{GATHER}:{check_name(name, 'the name of what is gathered')}"


def read_kept(kept_json: str | None) -> dict[str, str]:
    """What a job has kept: JSON text by name."""
    found: dict[str, str] = {} if kept_json is None else json.loads(kept_json)
    return found


def size_of(name: str, text: str) -> int:
    """The bytes that a value counts for."""
    return len(name.encode()) + len(text.encode())


def fits(kept: Mapping[str, str], name: str, text: str) -> bool:
    """Whether there is room for a value beside the others, or in place of the one it had."""
    others = {of: value for of, value in kept.items() if of != name}
    size = size_of(name, text) + sum(size_of(of, value) for of, value in others.items())
    return len(text.encode()) <= LARGEST and len(others) < MOST and size <= MOST_BYTES


def check_fits(kept: Mapping[str, str], name: str, text: str, job_id: str) -> None:
    """Refuse a value that is too large, or too much beside the others, and say which."""
    size = len(text.encode())
    if size > LARGEST:
        raise PayloadInvalid(
            f"job {job_id} would keep {size:,} bytes as {name}, at most {LARGEST:,} are allowed:"
            " store large data elsewhere and keep a reference to it"
        )
    if not fits(kept, name, text):
        raise PayloadInvalid(
            f"job {job_id} keeps {len(kept)} values and has no room for {name}: expected at most {MOST} names and"
            f" {MOST_BYTES:,} bytes in all; keep less, or enqueue a job of its own for a part of the work"
        )


class Received(StrEnum):
    """What becomes of a signal."""

    DONE = "done"
    """the job waited for it, and is queued"""
    KEPT = "kept"
    """the job has not asked for it yet: it is kept until then"""
    DUPLICATE = "duplicate"
    """one of that name has come before, or its time was up: the first counts"""
    REFUSED = "refused"
    """the job has ended"""
    FULL = "full"
    """the job keeps as much as it may"""


def receive(status: Status, blocked_by: str | None, kept: Mapping[str, str], signal: Signal) -> Received:
    """What becomes of a signal to a job that stands so. A store that decides in a script mirrors this."""
    name = signal_name(signal.name)
    if status.finished:
        return Received.REFUSED
    if name in kept:
        return Received.DUPLICATE
    if not fits(kept, name, signal.json):
        return Received.FULL
    waits = status is Status.BLOCKED and blocked_by == Kind.SIGNAL.prefix + signal.name
    return Received.DONE if waits else Received.KEPT
