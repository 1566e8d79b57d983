"""Moves: the history of a job in words, one sentence for each entry, with who did it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.admission import EXPIRED
from windlass.core.blocked import BlockedBy, Kind
from windlass.core.errors import StoreError
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.core.transition import ACQUITTED, UNCOUNTED
from windlass.core.wording import span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from windlass.core.history import Entry
    from windlass.core.job import Job

UPKEEP = "upkeep"
_CRASH = re.compile(r"\(crash \d+ of \d+\)")
_LEASE_EXPIRED = re.compile(r"lease (\d+) expired")
_TONES = {
    Happened.ENQUEUED: ("wait", "queued"),
    Happened.REPLACED: ("wait", "retrying"),
    Happened.PROMOTED: ("wait", "queued"),
    Happened.CLAIMED: ("run", "processing"),
    Happened.BLOCKED: ("hold", "blocked"),
    Happened.UNBLOCKED: ("wait", "queued"),
    Happened.SUCCEEDED: ("good", "succeeded"),
    Happened.RETRYING: ("warn", "failed"),
    Happened.FAILED: ("bad", "failed"),
    Happened.SNOOZED: ("calm", "scheduled"),
    Happened.RELEASED: ("calm", "stopping"),
    Happened.LOST: ("bad", "silent"),
    Happened.CRASHED: ("bad", "failed"),
    Happened.SUSPENDED: ("hold", "paused"),
    Happened.SIGNALLED: ("run", "alive"),
    Happened.CANCEL_REQUESTED: ("warn", "stopping"),
    Happened.CANCELLED: ("calm", "cancelled"),
    Happened.RETRIED: ("run", "retrying"),
    Happened.AGED: ("calm", "scheduled"),
    Happened.REFUSED: ("warn", "blocked"),
}
RUN_ENDS = frozenset(
    {Happened.SUCCEEDED, Happened.RETRYING, Happened.FAILED, Happened.SNOOZED, Happened.RELEASED, Happened.LOST}
    | {Happened.CRASHED, Happened.CANCELLED, Happened.SUSPENDED, Happened.BLOCKED}
)
"""what ends a run, where the job ran"""
_GIVEN_BACK = frozenset({Happened.SNOOZED, Happened.RELEASED, Happened.LOST, Happened.CRASHED, Happened.SUSPENDED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One entry of the history as the page shows it."""

    entry: Entry
    passed: timedelta | None
    """since the entry before"""
    words: str
    detail: str = ""
    """what was said: an error, a reason"""
    actor: str
    tone: str
    icon: str


def moves(job: Job, history: Sequence[Entry], *, inside: bool) -> list[Move]:
    """The history in words, oldest first. Who did it, and what was said, is told inside only."""
    workers = {entry.token: entry.actor for entry in history if entry.happened is Happened.CLAIMED}
    numbers = attempt_numbers(job, history)
    told: list[Move] = []
    before: Entry | None = None
    for entry in history:
        words, detail, actor = _Telling(job, entry, before, workers, numbers.get(entry.number), inside=inside).tell()
        tone, icon = _TONES[entry.happened]
        if entry.happened is Happened.UNBLOCKED and entry.note:
            tone = "calm"
        told.append(
            Move(
                entry=entry,
                passed=None if before is None else entry.at - before.at,
                words=words,
                detail=detail if inside else "",
                actor=actor,
                tone=tone,
                icon=icon,
            )
        )
        before = entry
    return told


def attempt_numbers(job: Job, history: Sequence[Entry]) -> Mapping[int, int]:
    """Which attempt each claim began, by the number of its entry; none where the history no longer tells."""
    if not history or history[0].number != 1:
        return {}
    found: dict[int, int] = {}
    attempts, before = 0, history[0].status
    for entry in history:
        if entry.happened is Happened.CLAIMED:
            attempts += 1
            found[entry.number] = attempts
        elif entry.happened is Happened.RETRIED and before.finished:
            attempts = 0
        elif before is Status.PROCESSING and _gives_back(entry):
            attempts -= 1
        before = entry.status
    return found if attempts == job.attempts else {}


def _gives_back(entry: Entry) -> bool:
    if entry.happened in _GIVEN_BACK or entry.happened is Happened.BLOCKED:
        return True
    return entry.happened is Happened.FAILED and _CRASH.search(entry.note or "") is not None


class _Telling:
    """One entry, and what it is told by."""

    def __init__(
        self,
        job: Job,
        entry: Entry,
        before: Entry | None,
        workers: Mapping[int | None, str | None],
        number: int | None,
        *,
        inside: bool,
    ) -> None:
        self._job, self._entry, self._before, self._number, self._inside = job, entry, before, number, inside
        self._worker = workers.get(entry.token) or ""
        self._note = entry.note or ""

    def tell(self) -> tuple[str, str, str]:
        """What happened, what was said, and who did it."""
        match self._entry.happened:
            case Happened.ENQUEUED:
                return self._enqueued()
            case Happened.REPLACED:
                return "A newer enqueue replaced its payload, priority and time", self._note, "client"
            case Happened.PROMOTED:
                return "Due: queued", self._note, UPKEEP
            case Happened.CLAIMED:
                return self._claimed()
            case Happened.BLOCKED:
                return self._blocked()
            case Happened.UNBLOCKED:
                words = "Wait ended: queued" if self._note else "No longer blocked: queued"
                return words, self._note, UPKEEP
            case Happened.SIGNALLED:
                name = f"The signal {self._note}" if self._inside else "A signal"
                goes_on = self._entry.status is Status.QUEUED
                then = "came: queued" if goes_on else "came before it was asked for, and is kept"
                return f"{name} {then}", "", self._person()
            case Happened.CANCEL_REQUESTED:
                return "Its worker was asked to stop", self._note, self._person()
            case Happened.CANCELLED:
                return self._cancelled()
            case Happened.RETRIED:
                return self._retried()
            case Happened.AGED:
                return f"It had waited long: {self._note or 'its priority was raised'}", "", UPKEEP
            case _:
                return self._run_ended()

    def _enqueued(self) -> tuple[str, str, str]:
        job, status = self._job, self._entry.status
        how = {Status.SCHEDULED: "Enqueued for later", Status.BLOCKED: "Enqueued, blocked at first"}
        words, actor = how.get(status, "Enqueued"), "client"
        if job.schedule is not None:
            tick = "" if job.tick is None else f" for its tick of {job.tick:%Y-%m-%d %H:%M:%S} UTC"
            words, actor = f"{words} by the schedule {job.schedule}{tick}", "schedule"
        elif job.replay_of is not None:
            words, actor = f"{words} to do the work of job {job.replay_of} again", "operator"
        elif job.awaits is not None and job.parent_id is not None:
            words = f"Enqueued in a flow, to run after job {job.parent_id}"
        elif job.parent_id is not None:
            words, actor = f"{words} by job {job.parent_id}", "job"
        note = "" if job.replay_of is not None else self._waits(self._note)
        return words, note, actor

    def _claimed(self) -> tuple[str, str, str]:
        words = "Claimed" if self._number is None else f"Attempt {self._number} of {self._job.max_attempts} started"
        return words, "", self._by()

    def _blocked(self) -> tuple[str, str, str]:
        if self._before is not None and self._before.status is Status.PROCESSING:
            return "Parked: the handler that met it could not read its payload", self._note, self._by()
        told = self._waits(self._note)
        return f"Blocked: {told}" if told and self._inside else "Blocked until something is free", "", UPKEEP

    def _waits(self, note: str) -> str:
        """What a note that names what blocks it says."""
        try:
            by = BlockedBy.of(note)
        except StoreError:
            return note
        match by.kind:
            case Kind.LIMIT:
                return f"no slot of the limit {by.key} was free"
            case Kind.UNIQUE:
                return f"the running key {by.key} was held by another job"
            case Kind.RATE:
                return f"the rate {by.key} had no room"
            case Kind.FLOW:
                return "it waits for earlier jobs of its flow"
            case Kind.PAYLOAD:
                return f"no worker could read a payload of {by.key} yet"
            case Kind.SIGNAL:
                return f"it waits for the signal {by.key}"

    def _cancelled(self) -> tuple[str, str, str]:
        if self._note == EXPIRED:
            return "Expired: no worker had taken it in time, so it was cancelled", "", UPKEEP
        if self._before is not None and self._before.status is Status.PROCESSING:
            return "Its run ended as cancelled", self._note, self._by()
        return "Cancelled before it ran again", self._note, self._person() if self._entry.actor else UPKEEP

    def _retried(self) -> tuple[str, str, str]:
        fresh = self._before is not None and self._before.status.finished
        words = "Queued again, with fresh attempts" if fresh else "Queued now, before its time"
        return words, self._note, self._person()

    def _run_ended(self) -> tuple[str, str, str]:
        entry, job = self._entry, self._job
        match entry.happened:
            case Happened.SUCCEEDED:
                return f"Succeeded{self._after()}", self._note, self._by()
            case Happened.RETRYING:
                return f"Failed{self._after()}; will be retried", self._note, self._by()
            case Happened.FAILED if _CRASH.search(self._note):
                return f"{self._expired()}; failed {self._crash()}", "", "rescuer"
            case Happened.FAILED:
                return f"Failed for good{self._after()}", self._note, self._by()
            case Happened.SNOOZED:
                return f"Snoozed{self._after()}: the attempt is given back", self._note, self._by()
            case Happened.RELEASED:
                return f"Handed back{self._after()}: the attempt is given back", self._note, self._by()
            case Happened.LOST:
                uncounted = (
                    " (not counted as a crash: the worker never confirmed it)" if UNCOUNTED in self._note else ""
                )
                return f"{self._expired()}; handed back {self._crash()}{uncounted}".rstrip(), "", "rescuer"
            case Happened.CRASHED:
                return (
                    f"Its process died{self._after()}; will be retried {self._crash()}".rstrip(),
                    self._note,
                    self._by(),
                )
            case Happened.SUSPENDED:
                return f"Suspended{self._after()}; it occupies no worker", self._note, self._by()
            case Happened.REFUSED:
                words = f"A late result of lease {entry.token} was refused: not applied"
                excused = "; its worker lives, so the crash is not counted" if ACQUITTED in self._note else ""
                return f"{words}{excused}" if self._inside else "A late result was refused", "", self._by()
            case _:
                return f"{entry.happened.value} ({job.status.value})", self._note, entry.actor or ""

    def _after(self) -> str:
        """How long the run was that this entry ended."""
        if self._before is None or self._before.happened is not Happened.CLAIMED:
            return ""
        return f" after {span(self._entry.at - self._before.at)}"

    def _expired(self) -> str:
        found = _LEASE_EXPIRED.search(self._note)
        if not self._inside:
            return "Its worker is presumed dead"
        if found is None:
            return self._note.partition(" (crash")[0] or "Its process died"
        worker = f"worker {self._worker} presumed dead" if self._worker else "its worker presumed dead"
        return f"Lease {found[1]} expired by {self._entry.at:%H:%M:%S}; {worker}"

    def _crash(self) -> str:
        found = _CRASH.search(self._note)
        return "" if found is None else found[0]

    def _by(self) -> str:
        if not self._inside:
            return "worker"
        lease = "" if self._entry.token is None else f" · lease {self._entry.token}"
        return f"{self._worker or 'worker'}{lease}"

    def _person(self) -> str:
        return (self._entry.actor or "operator") if self._inside else "operator"
