"""Tests of single jobs, for what no store searches by: text in an error, a value in a payload, how long a run took."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, cast

from windlass.core.errors import SettingsError
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from windlass.core.job import Job

_MILLISECOND = timedelta(milliseconds=1)


def _is(found: str | None, wanted: str) -> bool:
    return found == wanted


def _begins(found: str, wanted: str) -> bool:
    return found.startswith(wanted[:-1]) if wanted.endswith("*") else found == wanted


def _in_error(job: Job, text: str) -> bool:
    if job.error is None:
        return False
    return text.casefold() in f"{job.error.type}: {job.error.message}".casefold()


BY_TEXT: Mapping[str, Callable[[Job, str], bool]] = {
    "type": lambda job, text: _begins(job.type, text),
    "queue": lambda job, text: _is(job.queue, text),
    "user": lambda job, text: _is(job.user_id, text),
    "entity": lambda job, text: job.entity_name is not None and f"{job.entity_name}:{job.entity_id}" == text,
    "correlation": lambda job, text: _is(job.correlation_id, text),
    "schedule": lambda job, text: _is(job.schedule, text),
    "parent": lambda job, text: _is(job.parent_id, text.casefold()),
    "next": lambda job, text: _is(job.next_id, text.casefold()),
    "unique": lambda job, text: _is(job.unique_key, text),
    "worker": lambda job, text: _is(job.worker_id, text),
    "tag": lambda job, text: text in job.tags,
    "error": _in_error,
}
"""whether a job has this text there, by search word"""

BY_NUMBER: Mapping[str, Callable[[Job], int]] = {
    "attempts": lambda job: job.attempts,
    "crashes": lambda job: job.crashes,
    "priority": lambda job: job.priority,
}


def _waited(job: Job, at: datetime) -> timedelta | None:
    """In its queue, before its last claim; so far, where it still waits."""
    if job.status is Status.QUEUED and job.queued_at is not None:
        return at - job.queued_at
    return None if job.wait_ms is None else _MILLISECOND * job.wait_ms


def _ran(job: Job, at: datetime) -> timedelta | None:
    """Its last attempt; so far, where it runs."""
    if job.status is Status.PROCESSING and job.started_at is not None:
        return at - job.started_at
    return None if job.duration_ms is None else _MILLISECOND * job.duration_ms


BY_SPAN: Mapping[str, Callable[[Job, datetime], timedelta | None]] = {"wait": _waited, "ran": _ran}


def mentions(job: Job, text: str) -> bool:
    """Whether what a person knows a job by has this text in it."""
    wanted = text.casefold()
    told = (
        job.type,
        job.queue,
        job.id,
        job.user_id,
        job.correlation_id,
        job.unique_key,
        job.entity_id,
        job.schedule,
        *job.tags,
    )
    return any(wanted in one.casefold() for one in told if one is not None) or _in_error(job, text)


def payload_is(of: str, path: str, operator: str, values: Sequence[str]) -> Callable[[Job], bool]:
    """The test whether payload, result or metadata have one of these values at a path such as `user.id`.

    Text is compared as it is, or up to a star at its end; numbers exactly. Of a list, any member counts. A secret is
    its mask.
    """
    if not path:
        raise SettingsError(f"{of} of which part? Expected a path and a value, such as {of}.user.id:42")
    steps = path.split(".")
    if operator != "=" and (len(values) > 1 or _number(values[0]) is None):
        raise SettingsError(f"{operator} compares numbers: expected something such as {of}.{path}{operator}10")
    attribute = "metadata" if of == "meta" else of

    def test(job: Job) -> bool:
        found = list(_at(getattr(job, attribute), steps))
        return any(_fits(one, operator, value) for one in found for value in values)

    return test


def _at(value: Any, steps: Sequence[str]) -> Iterator[Any]:
    if isinstance(value, list):
        members = cast("Sequence[Any]", value)
        if steps and steps[0].isdecimal():
            index = int(steps[0])
            if index < len(members):
                yield from _at(members[index], steps[1:])
        else:
            for member in members:
                yield from _at(member, steps)
    elif not steps:
        yield value
    elif isinstance(value, dict) and steps[0] in value:
        yield from _at(value[steps[0]], steps[1:])


def _fits(found: Any, operator: str, wanted: str) -> bool:
    if found is None or isinstance(found, bool):
        return operator == "=" and wanted.casefold() == {None: "null", True: "true", False: "false"}[found]
    if isinstance(found, str):
        return operator == "=" and _begins(found, wanted)
    left, right = _number(str(found)), _number(wanted)
    if left is None or right is None:
        return False
    match operator:
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case _:
            return left == right


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
