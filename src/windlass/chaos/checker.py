"""The checker: from the history, the effects and what the store shows to a report. Pure."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise

from windlass import Entry, Happened, Job, Status
from windlass.chaos import invariants
from windlass.chaos.history import Line, What, as_told
from windlass.chaos.invariants import CLOCKS, crowded
from windlass.chaos.place import Pace
from windlass.chaos.report import Report
from windlass.core.transition import ACQUITTED, UNCOUNTED

FOR_EVER = float("inf")
_BEFORE = 1.0  # seconds before a lease in which a stall may have kept it from being extended
_AWAKE = 0.1  # seconds of work that a process cannot have done without looking at its leases
_UNSTOPPABLE = frozenset({"block", "hold_gil"})  # types whose handlers no worker can stop once they run


@dataclass(slots=True)
class Run:
    """One run of a job by a process."""

    job: str
    token: int
    pid: int
    begun: float
    begun_wall: float
    left: float = FOR_EVER
    acted: float | None = None
    """when it was last seen at work, if it tells of that: one that is gone without a word was there until then"""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that is known of a trial after its end."""

    lines: Sequence[Line]
    effects: Mapping[str, int]
    jobs: Sequence[Job]
    histories: Mapping[str, Sequence[Entry]]
    shown: Mapping[tuple[str, Status], int] | None = None
    pace: Pace = field(default_factory=Pace)
    clocks: float = CLOCKS
    """seconds by which stamps may lie in each other where keys and limits are recounted over time"""
    operators: bool = False
    """whether somebody retried jobs by hand: else nobody may"""
    one_file: bool = False
    """whether a process that stands still while it writes keeps all others from writing: one file, one writer"""

    @cached_property
    def by_id(self) -> dict[str, Job]:
        """The jobs the store shows."""
        return {job.id: job for job in self.jobs}

    @cached_property
    def by_name(self) -> dict[str, list[Job]]:
        """The same by the name they were enqueued under."""
        found: dict[str, list[Job]] = defaultdict(list)
        for job in self.jobs:
            found[str(job.payload.get("name"))].append(job)
        return found

    @cached_property
    def runs(self) -> dict[str, list[Run]]:
        """The runs of each job, in the order of their beginning."""
        found = Runs(self.lines).of
        for run in (run for runs in found.values() for run in runs):
            if run.left == FOR_EVER and run.acted is not None:
                run.left = run.acted
        return found

    @cached_property
    def written(self) -> list[float]:
        """When the store wrote of a move, in order, by the wall clock."""
        return sorted(one.at.timestamp() for history in self.histories.values() for one in history)

    def of(self, *what: What) -> list[Line]:
        """The lines of these kinds."""
        return [line for line in self.lines if line.what in what]

    def acknowledged(self) -> dict[str, str]:
        """From name to id."""
        return {line.name or "": line.job or "" for line in self.of(What.ACKNOWLEDGED)}


def check(evidence: Evidence) -> Report:
    """Recount everything."""
    acknowledged = evidence.acknowledged()
    unknown = {line.name or "" for line in evidence.of(What.UNKNOWN)} - acknowledged.keys()
    ids = list(dict.fromkeys(acknowledged.values()))
    there = [evidence.by_id[one] for one in ids if one in evidence.by_id]
    expected = {line.name: line.expect for line in evidence.of(What.INVOKED)}
    ended = [job for job in there if job.status.finished]
    return Report(
        acknowledged=len(ids),
        unknown=len(unknown),
        unknown_there=sum(name in evidence.by_name for name in unknown),
        faults=len(evidence.of(What.FAULT)),
        deaths=sum(line.note not in (None, "0") for line in evidence.of(What.EXITED)),
        runs=sum(map(len, evidence.runs.values())),
        lost=tuple(one for one in ids if one not in evidence.by_id),
        unexpected=tuple(_unexpected(evidence, acknowledged)),
        unfinished=tuple(f"{job.id} is {job.status}" for job in there if not job.status.finished),
        misjudged=tuple(
            f"{job.id} {name} is {job.status}, not {expect}: {job.error}"
            for job in ended
            if (expect := expected.get(name := str(job.payload.get("name")))) not in (None, job.status.value)
        ),
        dup_in_lease=tuple(_doubled(evidence)),
        begun_late=tuple(_begun_late(evidence)),
        late_accepted=tuple(_late(evidence)),
        spent=tuple(_spent(evidence)),
        failed_unbegun=tuple(_failed_unbegun(evidence)),
        crashes_of_the_living=tuple(_crashes_of_the_living(evidence)),
        violations=tuple(_violations(evidence)),
        dup_total=sum(_again(evidence.histories.get(job, ()), runs) for job, runs in evidence.runs.items()),
        late_refused=sum(one.happened is Happened.REFUSED for some in evidence.histories.values() for one in some),
        effects_twice=sum(n > 1 for n in evidence.effects.values()),
        recovery=tuple(_recoveries(evidence)),
        resume=tuple(_resumed(evidence)),
        stalled=max(_stalls(evidence).values(), default=0.0),
        handback=tuple(_handed_back(evidence)),
    )


class Runs:
    """The runs of each job, in the order of their beginning; lines are read as they come."""

    def __init__(self, lines: Sequence[Line] = ()) -> None:
        self.of: dict[str, list[Run]] = defaultdict(list)
        self._open: dict[tuple[str, int, int], Run] = {}
        self._read = 0
        self.read(lines)

    def read(self, lines: Sequence[Line]) -> None:
        """Take in what is new of all lines so far."""
        for line in lines[self._read :]:
            self._take(line)
        self._read = len(lines)

    def _take(self, line: Line) -> None:
        if is_death(line):
            # What died with its process was left then.
            for key in [key for key in self._open if key[2] == line.pid]:
                self._open.pop(key).left = line.at
        if line.job is None or line.token is None or line.pid is None:
            return
        key = (line.job, line.token, line.pid)
        if line.what is What.BEGUN:
            self._open[key] = Run(*key, line.at, line.wall)
            self.of[line.job].append(self._open[key])
        elif line.what is What.ACTED and key in self._open:
            self._open[key].acted = line.at
        elif line.what in (What.ENDED, What.STOPPED) and key in self._open:
            self._open.pop(key).left = line.at

    def now(self, pid: int) -> list[Run]:
        """What a process runs."""
        return [run for run in self._open.values() if run.pid == pid]


def is_death(line: Line) -> bool:
    """Whether a process was no more from this line on."""
    return line.what is What.EXITED or (line.what is What.FAULT and line.name == "kill")


def _unexpected(evidence: Evidence, acknowledged: Mapping[str, str]) -> Iterator[str]:
    invoked = Counter(line.name for line in evidence.of(What.INVOKED))
    for name, jobs in evidence.by_name.items():
        for job in jobs:
            if not invoked[name]:
                yield f"{job.id}: nobody enqueued {name!r}"
            elif name in acknowledged and acknowledged[name] != job.id:
                yield f"{job.id}: the enqueue of {name!r} returned {acknowledged[name]}"
        if name not in acknowledged and len(jobs) > invoked[name] > 0:
            yield f"{len(jobs)} jobs of {name!r}, which was enqueued {invoked[name]} times"


def _doubled(evidence: Evidence) -> Iterator[str]:
    """Runs that no rule allows: one token twice, or begun while an earlier run went on whose lease was not over.

    It was over only if the store recorded it as lost, a whole lease had passed since its claim, and its process or its
    store had been kept from work: a worker that can work gives a job up before its lease ends. Where all write to one
    file, another process that stood still while it wrote will do, too, for a run that its worker had no way to stop.
    """
    for job, runs in evidence.runs.items():
        for earlier, later in combinations(sorted(runs, key=lambda run: (run.token, run.begun)), 2):
            if earlier.token == later.token:
                yield f"{job}: token {later.token} ran twice, in {earlier.pid} and {later.pid}"
            elif _overlap(earlier, later) and not _was_over(evidence, earlier, later):
                held = later.begun - earlier.begun
                yield f"{job}: token {later.token} began {held:.3f} s after token {earlier.token}, which still ran"


def _overlap(one: Run, other: Run) -> bool:
    return max(one.begun, other.begun) < min(one.left, other.left)


def _begun_late(evidence: Evidence) -> Iterator[str]:
    """Runs that began after the store had recorded the loss of their lease: a worker looks before it begins.

    Between that look and the first line of a handler nobody can keep a process from being stopped. It is in one place
    then, so one run may begin when it goes on, and only one.
    """
    excused: dict[int, float] = {}
    for job, runs in evidence.runs.items():
        lost = {one.token: one.at.timestamp() for one in evidence.histories.get(job, ()) if _is_loss(one)}
        for run in runs:
            late = run.begun_wall - lost.get(run.token, FOR_EVER)
            if late <= CLOCKS:
                continue
            stopped = hindered(evidence.lines, run.pid, run.begun - late, run.begun, alone=True) >= late - _AWAKE
            if stopped and abs(excused.get(run.pid, -FOR_EVER) - run.begun) > _AWAKE:
                excused[run.pid] = run.begun
            else:
                yield f"{job}: token {run.token} began {late:.3f} s after it was lost"


def _is_loss(entry: Entry) -> bool:
    return entry.happened is Happened.LOST and entry.token is not None


def _was_over(evidence: Evidence, earlier: Run, later: Run) -> bool:
    history = evidence.histories.get(earlier.job, ())
    claims = {entry.token: entry for entry in history if entry.happened is Happened.CLAIMED}
    first, second = claims.get(earlier.token), claims.get(later.token)
    if second is None:
        return False
    low = first.number if first is not None else 0
    lost = any(one.happened is Happened.LOST and low < one.number < second.number for one in history)
    if not lost or (first is not None and later.begun_wall - first.at.timestamp() < evidence.pace.lease - CLOCKS):
        return False
    since = later.begun - evidence.pace.lease - _BEFORE
    if hindered(evidence.lines, earlier.pid, since, later.begun) >= evidence.pace.lease / 10:
        return True
    job = evidence.by_id.get(earlier.job)
    unstoppable = job is not None and job.type in _UNSTOPPABLE
    return unstoppable and file_held(evidence, since, later.begun) >= evidence.pace.lease / 2


def file_held(evidence: Evidence, since: float, until: float) -> float:
    """The longest part of this time in which some process stood still and nothing at all was written to the one file.

    Nobody can tell from outside who held the file; but one that others wrote to meanwhile was not held.
    """
    longest = 0.0
    for line in evidence.of(What.STALLED) if evidence.one_file else ():
        offset = line.wall - line.at
        low, high = max(since, line.at - (line.seconds or 0)), min(until, line.at)
        first = bisect_right(evidence.written, low + offset)
        inside = evidence.written[first : bisect_left(evidence.written, high + offset)]
        marks = [low, *(at - offset for at in inside), high]
        longest = max(longest, *(after - before for before, after in pairwise(marks)))
    return longest


def hindered(lines: Sequence[Line], pid: int, since: float, until: float, *, alone: bool = False) -> float:
    """For how long of this time a process was kept from work; a fault without a pid hits all, and is not `alone`."""
    spans: list[tuple[float, float]] = []
    open_: dict[tuple[str | None, int | None], float] = {}
    for line in lines:
        if line.what is What.STALLED and line.pid == pid:
            spans.append((line.at - (line.seconds or 0), line.at))
        elif line.what is What.FAULT and (line.pid == pid or (line.pid is None and not alone)):
            open_.setdefault((line.name, line.pid), line.at)
        elif line.what is What.HEALED and (line.name, line.pid) in open_:
            spans.append((open_.pop((line.name, line.pid)), line.at))
    spans += [(begun, FOR_EVER) for begun in open_.values()]
    covered, reached = 0.0, since
    for begun, ended in sorted(spans):
        low, high = max(begun, reached), min(ended, until)
        if high > low:
            covered, reached = covered + high - low, high
    return covered


def _late(evidence: Evidence) -> Iterator[str]:
    """Results whose own token is not the one they were accepted under, and ends accepted of a lost attempt."""
    for job in evidence.jobs:
        ends = [one for one in evidence.histories.get(job.id, ()) if one.happened is Happened.SUCCEEDED]
        told = None if job.result_json is None else json.loads(job.result_json)
        if ends and isinstance(told, int) and ends[-1].token is not None and told != ends[-1].token:
            yield f"{job.id}: the result of token {told} was accepted under token {ends[-1].token}"
        lost = {one.token for one in evidence.histories.get(job.id, ()) if one.happened is Happened.LOST}
        yield from (
            f"{job.id}: token {one.token} ended after it was lost" for one in ends if one.token in lost - {None}
        )


def _spent(evidence: Evidence) -> Iterator[str]:
    """A crash, a hand-back and a snooze give the attempt back: only what a handler did itself is counted."""
    own = (Happened.SUCCEEDED, Happened.RETRYING, Happened.FAILED, Happened.CANCELLED)
    for job in evidence.jobs:
        history = evidence.histories.get(job.id, ())
        if history and history[0].number == 1:
            counted = sum(one.happened in own for one in history) + (job.status is Status.PROCESSING)
            if job.attempts > counted:
                yield f"{job.id}: {job.attempts} attempts, {counted} of them its own"


def _failed_unbegun(evidence: Evidence) -> Iterator[str]:
    """No job may fail for what its handler or its process did where neither ever began."""
    for job in evidence.jobs:
        if job.status is Status.FAILED and not evidence.runs.get(job.id):
            yield f"{job.id}: failed after {job.crashes} crashes, and never began: {job.error}"


def _crashes_of_the_living(evidence: Evidence) -> Iterator[str]:
    """Crashes that are counted in the end, beyond those of workers that died and of processes that jobs had alone.

    One that stood still and goes on is alive: the late end of its attempt clears the job of the crash.
    """
    dead = {line.pid for line in evidence.lines if is_death(line) and line.note != "0"}
    for job in evidence.jobs:
        history = evidence.histories.get(job.id, ())
        if not job.crashes or not history or history[0].number != 1:
            continue
        holders = {one.token: _pid(one.actor) for one in history if one.happened is Happened.CLAIMED}
        own = sum(one.happened is Happened.CRASHED for one in history)
        # Each loss for itself: one that was not counted, or was taken back, makes up for no other.
        cleared = {one.token for one in history if one.happened is Happened.REFUSED and ACQUITTED in (one.note or "")}
        losses = [one for one in history if _counted(one) and one.token not in cleared]
        died = sum(holders.get(one.token) in dead for one in losses)
        if job.crashes > own + died:
            yield f"{job.id}: {job.crashes} crashes are counted, {own + died} were: {job.error}"


def _counted(entry: Entry) -> bool:
    """Whether this is a lost lease that was counted as a crash."""
    if entry.happened not in (Happened.LOST, Happened.FAILED):
        return False
    return entry.note is None or ("(crash " in entry.note and UNCOUNTED not in entry.note)


def _again(history: Sequence[Entry], runs: Sequence[Run]) -> int:
    asked = sum(one.happened in (Happened.RETRYING, Happened.SNOOZED) for one in history)
    return max(0, len(runs) - 1 - asked)


def _violations(evidence: Evidence) -> Iterator[str]:
    yield from invariants.of_store(evidence.jobs, evidence.histories, evidence.shown)
    yield from (f"I11 {job} is blocked though its way is free" for job in invariants.orphans(evidence.jobs))
    for job, history in evidence.histories.items():
        happened = [one.happened for one in history]
        if Happened.RETRIED in happened and not evidence.operators:
            yield f"I1 {job} was revived, and by no operator"
        whole = bool(history) and history[0].number == 1
        if whole and Happened.CANCELLED in happened and Happened.CLAIMED not in happened and evidence.runs.get(job):
            yield f"I10 {job} was cancelled before any claim, and ran"
    told = Counter(line.job for line in evidence.of(What.EFFECT))
    yield from (
        f"witness: {job} has {n} effects by the lines, {evidence.effects.get(str(job), 0)} by the files"
        for job, n in told.items()
        if n > evidence.effects.get(str(job), 0)
    )
    yield from _over_time(evidence)


def _over_time(evidence: Evidence) -> Iterator[str]:
    """I6 and I7 at every moment of the trial, not only at its end.

    By the lines alone, and only for as long as it is certain: a store may stamp a whole batch with the moment it began.
    """
    since: dict[str, float] = {}
    for line in evidence.of(What.ACKNOWLEDGED, What.BEGUN):
        since.setdefault(line.job or "", line.at)
    lives: dict[str, list[tuple[float, float]]] = defaultdict(list)
    held: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for line in evidence.of(What.INVOKED):
        for job in evidence.by_name.get(line.name or "", ()) if line.key else ():
            if line.limit is not None:
                held[line.key or "", line.limit] += _holding(evidence, job)
            elif job.id in since:
                lives[line.key or ""].append((since[job.id], _last(evidence, job)))
    clocks = evidence.clocks
    yield from (f"I6 {n} live jobs of {key} at once" for key, some in lives.items() if (n := crowded(some, 1, clocks)))
    for (key, most), spans in held.items():
        if n := crowded(spans, most, clocks):
            yield f"I7 {n} of {key} were processing at once, limit {most}"


def _last(evidence: Evidence, job: Job) -> float:
    """Until when a job was live for certain: the end of a run that kept its lease comes before the job's own."""
    if not job.status.finished:
        return FOR_EVER
    return max((left for _, left in _holding(evidence, job) if left < FOR_EVER), default=0.0)


def _holding(evidence: Evidence, job: Job) -> list[tuple[float, float]]:
    """When a job ran for certain: under leases that were kept, so without what a frozen process goes on with later."""
    lost = {one.token for one in evidence.histories.get(job.id, ()) if _is_loss(one)}
    return [(run.begun, run.left) for run in evidence.runs.get(job.id, ()) if run.token not in lost]


def _recoveries(evidence: Evidence) -> Iterator[float]:
    # Jobs with a key or a limit may have to wait for their turn besides.
    bound = {job.id for job in evidence.jobs if job.limit_key is not None or job.unique_running is not None}
    free = [runs for job, runs in evidence.runs.items() if job not in bound]
    hits: dict[int, float] = {}
    for line in evidence.lines:
        killed = line.what is What.FAULT and line.name in ("kill", "freeze")
        died = line.what is What.EXITED and line.note not in (None, "0")
        if (killed or died) and line.pid is not None and (line.pid not in hits or line.name == "freeze"):
            hits[line.pid] = line.at
            for runs in free:
                hit = any(run.pid == line.pid and run.begun < line.at <= run.left for run in runs)
                later = [run.begun for run in runs if run.begun > line.at]
                if hit and later:
                    yield min(later) - line.at


def _stalls(evidence: Evidence) -> Counter[int | None]:
    found: Counter[int | None] = Counter()
    for line in evidence.of(What.STALLED):
        found[line.pid] += line.seconds or 0  # type: ignore[assignment]  # seconds add up as numbers do
    return found


def _resumed(evidence: Evidence) -> Iterator[float]:
    """Of those that worked before a fault was over: one that was started later has nothing to resume."""
    begins = sorted((run.begun, run.pid) for runs in evidence.runs.values() for run in runs)
    for line in evidence.of(What.HEALED):
        worked: set[int] = set()
        first: dict[int, float] = {}
        for begun, pid in begins:
            if begun <= line.at:
                worked.add(pid)
            elif pid in worked and line.pid in (pid, None):
                first.setdefault(pid, begun - line.at)
        yield from first.values()


def _handed_back(evidence: Evidence) -> Iterator[float]:
    """From the end of the grace period, or from the second signal that cut it short, until others may have the job."""
    due: dict[int | None, float] = {}
    for line in evidence.of(What.FAULT):
        if line.name == "term":
            due[line.pid] = min(due[line.pid], line.wall) if line.pid in due else line.wall + evidence.pace.grace
    for history in evidence.histories.values():
        holders = {one.token: _pid(one.actor) for one in history if one.happened is Happened.CLAIMED}
        for one in history:
            pid = holders.get(one.token)
            if one.happened in (Happened.RELEASED, Happened.LOST) and pid in due:
                yield max(0.0, one.at.timestamp() - due[pid])


def _pid(worker_id: str | None) -> int | None:
    """The process of a worker: it is named host/pid/random."""
    parts = (worker_id or "").rsplit("/", 2)
    return int(parts[1]) if len(parts) == 3 and parts[1].isdigit() else None


def shown(evidence: Evidence, job: str) -> str:
    """All that is known of one job, for people."""
    lines = [as_told(line) for line in evidence.lines if line.job == job]
    entries = [
        f"{one.at.timestamp():.3f} {one.happened} {one.token} {one.actor}" for one in evidence.histories.get(job, ())
    ]
    return "\n".join([*lines, *entries])
