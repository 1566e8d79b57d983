"""The timeline: everything about one job, in the order it happened, by the store's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.cli.output import STYLES
from windlass.cli.words import clock, milliseconds, size, span
from windlass.core.blocked import Kind
from windlass.core.history import Happened
from windlass.core.kept import read_kept
from windlass.core.sealing import masked_text
from windlass.core.signals import FOR_EVER
from windlass.core.status import Status
from windlass.observability.plain import short

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windlass.cli.output import Screen
    from windlass.core.history import Entry
    from windlass.core.job import Job

_WORDS = {
    Happened.LOST: "lease lost",
    Happened.CANCEL_REQUESTED: "cancel?",
    Happened.REFUSED: "rejected",
}
_RUN_ENDS = {
    Happened.SUCCEEDED: "",
    Happened.RETRYING: " x",
    Happened.FAILED: " x",
    Happened.SNOOZED: " snoozed",
    Happened.RELEASED: " handed back",
    Happened.LOST: " lost",
    Happened.CRASHED: " crashed",
    Happened.CANCELLED: " cancelled",
    Happened.SUSPENDED: " suspended",
}
_WAIT_STARTS = frozenset(
    {Happened.ENQUEUED, Happened.RETRYING, Happened.RELEASED, Happened.LOST, Happened.RETRIED, Happened.SNOOZED}
    | {Happened.CRASHED, Happened.SUSPENDED}
)
_LONGEST = 300


def show_job(screen: Screen, job: Job, history: Sequence[Entry], *, traceback: bool, payload: bool) -> None:
    """The whole job: head, contents, the strip of waits and runs, the timeline, and what to do next."""
    screen.line(head(job), STYLES.get(job.status.value, "bold"))
    for name, text in contents(job, whole=payload):
        screen.line(f"{name:<9} {text}")
    strip = " | ".join(waits_and_runs(history))
    if strip:
        screen.line(strip)
    screen.line("TIMELINE (store clock, UTC)", "bold")
    for line in moves(history):
        screen.line(line)
    if traceback and job.error is not None and job.error.traceback:
        screen.block(job.error.traceback.rstrip())
    screen.say(_next(job, traceback=traceback))


def moves(history: Sequence[Entry]) -> Iterator[str]:
    """The timeline, a line for each move, oldest first."""
    before: Entry | None = None
    if history and history[0].number > 1:
        yield f"… {history[0].number - 1} earlier entries were dropped"
    for entry in history:
        passed = "" if before is None else f"+{span(entry.at - before.at)}"
        yield f"{_stamp(entry, before)}  {passed:<9} {describe_entry(entry)}"
        before = entry


def describe_entry(entry: Entry) -> str:
    """One move in words: what, by whom, under which lease, and why."""
    word = _WORDS.get(entry.happened, entry.happened.value)
    parts = [f"{word:<10}"]
    if entry.actor:
        parts.append(entry.actor)
    if entry.token is not None:
        parts.append(f"lease {entry.token}")
    if entry.happened is Happened.REFUSED:
        parts.append("late result, not applied")
    if entry.note:
        parts.append(short(entry.note, _LONGEST))
    return "  ".join(parts).rstrip()


def head(job: Job) -> str:
    """The job in one line."""
    parts = [f"{job.type}  {job.status.value.upper()}", f"queue={job.queue}", f"priority={job.priority}"]
    if job.user_id is not None:
        parts.append(f"user={job.user_id}")
    if job.entity_name is not None:
        parts.append(f"entity={job.entity_name}:{job.entity_id}")
    parts.append(f"attempts {job.attempts}/{job.max_attempts}")
    if job.crashes:
        parts.append(f"crashes {job.crashes}/{job.max_crashes}")
    return "  ".join(parts)


def contents(job: Job, *, whole: bool) -> Iterator[tuple[str, str]]:
    """What it holds and stands under, each by a name; values in full where `whole`."""
    yield "id", job.id
    yield "payload", _value(job.payload_json, whole=whole)
    if job.result_json is not None:
        yield "result", _value(job.result_json, whole=whole)
    if job.error is not None:
        yield "error", short(f"{job.error.type}: {job.error.message}", _LONGEST)
    if job.progress is not None:
        share = f" of {job.progress.of:g}" if job.progress.of is not None else ""
        yield "progress", f"{job.progress.done:g}{share}  {job.progress.note or ''}".rstrip()
    for name, value in (
        ("unique", job.unique_key),
        ("limit", None if job.limit_key is None else f"{job.limit_key} (at most {job.limit})"),
        ("blocked", _blocked(job)),
        ("schedule", None if job.schedule is None else f"{job.schedule} at {clock(job.tick)}"),
        ("parent", job.parent_id),
        ("replay of", job.replay_of),
        ("origin", None if job.origin == job.replay_of else job.origin),
        ("belongs to", job.correlation_id),
        ("trace", job.trace_id),
        ("tags", ", ".join(job.tags) or None),
        ("metadata", job.metadata_json),
        ("runs at", clock(job.run_at) if job.status in (Status.SCHEDULED, Status.RETRYING) else None),
        ("expires", _expires(job)),
        ("lease", f"{job.worker_id} until {clock(job.lease_expires_at)}" if job.status is Status.PROCESSING else None),
    ):
        if value is not None:
            yield name, value
    for name, text in read_kept(job.kept_json).items():
        yield "keeps", f"{name}  {f'{text}  ' if whole else ''}{size(text)}"


def _value(text: str, *, whole: bool) -> str:
    shown = masked_text(text)
    return f"{shown if whole else short(shown, 200)}  {size(text)}"


def _blocked(job: Job) -> str | None:
    if not Kind.SIGNAL.blocks(job.blocked_by):
        return job.blocked_by
    for_ever = job.run_at - job.updated_at > FOR_EVER
    return job.blocked_by if for_ever else f"{job.blocked_by} until {clock(job.run_at)} UTC"


def _expires(job: Job) -> str | None:
    if job.expires_at is None or job.lease_token:
        return None
    return f"{clock(job.expires_at)} if no worker has taken it by then"


def waits_and_runs(history: Sequence[Entry]) -> Iterator[str]:
    """How long it waited and ran by turns, and how each run ended."""
    since: Entry | None = None
    running = False
    for entry in history:
        if entry.happened is Happened.CLAIMED and since is not None:
            yield f"waited {span(entry.at - since.at)}"
            since, running = entry, True
        elif running and since is not None and entry.happened in _RUN_ENDS:
            yield f"ran {span(entry.at - since.at)}{_RUN_ENDS[entry.happened]}"
            since, running = entry, False
        elif not running and entry.happened in _WAIT_STARTS:
            since = entry


def _stamp(entry: Entry, before: Entry | None) -> str:
    at = f"{entry.at:%H:%M:%S}.{entry.at.microsecond // 1000:03d}"
    if before is None or before.at.date() != entry.at.date():
        return f"{entry.at:%Y-%m-%d} {at}"
    return f"{'':<10} {at}"


def _next(job: Job, *, traceback: bool) -> str:
    tries = {
        Status.FAILED: f"windlass retry {job.id}",
        Status.CANCELLED: f"windlass retry {job.id}",
        Status.PROCESSING: f"windlass wait {job.id} --follow | windlass cancel {job.id}",
        Status.SUCCEEDED: f"ran {milliseconds(job.duration_ms)}, waited {milliseconds(job.wait_ms)}",
    }
    told = tries.get(job.status, f"windlass explain {job.id} | windlass cancel {job.id}")
    if job.error is not None and job.error.traceback and not traceback:
        told += f" | windlass job {job.id} --traceback"
    return told if job.status is Status.SUCCEEDED else f"next: {told}"
