"""The store contract: what worker, client and views may ask of any store, split by consumer.

Every operation is batched, every write on a processing job is fenced by its lease token, and every instant is stamped
and judged by the store's own clock. A store applies what the law decided; it never decides. Each promise below has a
test in `tests/contract/` that runs on every store and reads back record and history.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

from windlass.core.draft import Draft
from windlass.core.history import Entry
from windlass.core.job import Job, Progress
from windlass.core.schedule import Cron
from windlass.core.status import Status
from windlass.core.transition import Transition

COUNT_CAP = 100_000
"""Counts stop here and say that they did: a view must stay cheap at any size."""


# What an insert answers, one per draft, in order.


@dataclass(frozen=True, slots=True)
class Created:
    """The job is in the store. Also the answer to the same id inserted again."""

    id: str


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Another live job holds the unique key, or an earlier one the idempotency key; nothing was written."""

    id: str
    """the job already there"""
    key: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """A waiting job held the key and took over the draft's payload, priority and time (`on_conflict="replace"`)."""

    id: str


@dataclass(frozen=True, slots=True)
class Full:
    """The queue has reached its largest depth; nothing was written."""

    queue: str
    depth: int


Inserted: TypeAlias = Created | Duplicate | Replaced | Full


# Claiming and leases.


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """What a worker asks for in one claim."""

    worker_id: str
    n: int
    lease: timedelta
    queues: Mapping[str, int] | None = None
    """at most so many from each of these queues; None is every queue"""
    weights: Mapping[str, int] = field(default_factory=dict[str, int])
    """how many jobs of a queue one turn takes, where queues of equal priority take turns; 1 where it is not said"""
    types: frozenset[str]
    """only jobs of these types: others stay queued for a worker that has their handler"""


class Claimed(list[Job]):
    """The jobs of one claim, and whether another claim at once may bring more.

    Less than was asked for is all there is, unless `more` is set: the claim may have put aside as many jobs as one
    claim may, or have passed over jobs that other claims had locked.
    """

    __slots__ = ("more",)

    def __init__(self, jobs: Iterable[Job] = (), *, more: bool = False) -> None:
        super().__init__(jobs)
        self.more = more


class Pruned(int):
    """How many jobs one call has deleted, and whether another one at once may delete more.

    A call looks at a part of what there is, so it may delete less than it was asked for, or nothing, and still say so.
    """

    more: bool

    def __new__(cls, n: int = 0, *, more: bool = False) -> Self:
        """So many."""
        pruned = super().__new__(cls, n)
        pruned.more = more
        return pruned


@dataclass(frozen=True, slots=True)
class Lease:
    """What proves that a worker holds a job."""

    id: str
    token: int


@dataclass(frozen=True, slots=True)
class Extended:
    """What an extension found: leases that are no longer the worker's, and jobs someone asked to cancel."""

    lost: frozenset[str]
    cancels: frozenset[str]
    held: frozenset[str] = frozenset()
    """still the worker's, but NOT extended: somebody else held the record. Their leases end when they would have"""


@dataclass(frozen=True, slots=True)
class Report:
    """A running job's newest progress."""

    lease: Lease
    progress: Progress


class Verdict(StrEnum):
    """What became of one fenced write."""

    APPLIED = "applied"
    """written now, or earlier by the same token"""
    STALE = "stale"
    """the token is no longer the job's: nothing changed but a line in its history"""
    MISSING = "missing"
    """no such job"""
    HELD = "held"
    """somebody's open transaction holds the job, or the line of those who wait for its end: not written, try again"""


@dataclass(frozen=True, slots=True)
class Promoted:
    """What came due."""

    promoted: int
    unblocked: int
    next_due: timedelta | None
    """how long until the next scheduled or retrying job is due or a spent rate has room, by the store's clock"""


@dataclass(frozen=True, slots=True)
class Rescued:
    """One job whose lease had expired, and what the law made of it."""

    id: str
    worker_id: str | None
    to: Status


# Operators.


class Action(StrEnum):
    """What an operator may ask of a job."""

    CANCEL = "cancel"
    RETRY = "retry"
    DELETE = "delete"


class Operated(StrEnum):
    """What became of an operator's order."""

    DONE = "done"
    REQUESTED = "requested"
    """the job is processing: its worker was asked to stop it"""
    REFUSED = "refused"
    """its status does not allow it"""
    DUPLICATE = "duplicate"
    """its unique key is held by another job now"""
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An operator's word on one job; actor and reason go into its history."""

    id: str
    action: Action
    actor: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one order: the verdict, the status the job was found in, and the holder of its key if another."""

    verdict: Operated
    status: Status | None = None
    holder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long finished jobs are kept; a queue may have its own."""

    succeeded: timedelta = timedelta(days=7)
    failed: timedelta = timedelta(days=30)
    cancelled: timedelta = timedelta(days=30)
    most: int | None = None
    """at most so many of each ending, the newest, even before their time; of all queues without their own together"""
    queues: Mapping[str, Retention] = field(default_factory=dict[str, "Retention"])

    def of(self, status: Status) -> timedelta:
        """How long a job that ended so is kept."""
        kept: timedelta = getattr(self, status.value)
        return kept


class Jobs(Protocol):
    """The life of jobs."""

    async def insert(self, drafts: Sequence[Draft], tx: object | None = None) -> list[Inserted]:
        """Write each draft or say why not, one verdict each, all in one durable step.

        Idempotent on the id. With `tx` everything happens inside the caller's transaction: visible on commit, gone on
        rollback, never aborted by a duplicate. A draft with a delay or a later `run_at` becomes scheduled, one that
        awaits others is blocked by "flow:" and its own id, else it is queued.

        A queued draft with a `fair_key` takes its turn: its `run_at` is that of the first queued job with a fair key of
        its queue and priority, or now, but at least a millisecond after the last queued one of its own key there. It
        never comes before a job without a fair key that was waiting there already, of whatever type; and a fair job
        that comes back to its old place leaves those that come later where they would have stood without it.
        """
        ...

    def insert_now(self, drafts: Sequence[Draft], tx: object) -> list[Inserted]:
        """The same inside a synchronous driver's transaction, on the calling thread."""
        ...

    async def claim(self, want: Want) -> Claimed:
        """Lease at most `n` jobs in one atomic step, first by priority; in one queue then by `run_at`, then id.

        Queues whose first jobs have the same priority take turns, `want.weights` jobs a turn, beginning with any of
        them. What comes of one claim is in the order in which it was taken.

        A claim that raised may have leased jobs all the same. The next claim of the same worker through the same store
        hands these over, their leases renewed, before it takes others, and raises if it cannot find out: a worker
        never has more in doubt than it asked for at once.

        Never the same (id, token) twice. Skips paused queues and other types. Each claimed job has token + 1,
        attempts + 1, a lease from the store's clock and holds its running key. A job whose limit is reached, whose
        running key is held or whose rate is spent becomes blocked instead, by "limit:", "unique:" or "rate:" and the
        key. Where jobs are already blocked by a rate, another job of that rate goes behind them, unless the rate has
        room for all of them and for it. A job that `promote` called from that line (its `blocked_by` still names the
        rate) needs room for itself alone. Every claim of a job with a rate is booked in the same step.
        """
        ...

    async def extend(self, worker_id: str, leases: Sequence[Lease], lease: timedelta) -> Extended:
        """Renew the leases that still are the worker's; changes nothing else, touches no history.

        It also confirms them: only of a confirmed lease is it known that its worker had the job in hand, and only such
        a one counts as a crash when it is lost.
        """
        ...

    async def cancels(self, worker_id: str) -> frozenset[str]:
        """The jobs this worker is processing and should stop. Only reads."""
        ...

    async def report(self, reports: Sequence[Report]) -> list[Verdict]:
        """Write progress, fenced; leaves no history."""
        ...

    async def apply(self, transitions: Sequence[Transition]) -> list[Verdict]:
        """Write each transition if its job is still processing under its token: fenced, idempotent, one verdict each.

        In the same step the history is written, and the unique key of a finished job is freed. In that step, or on
        MongoDB right after it, the minute is counted and blocked jobs that can go on are queued, oldest first; if the
        caller dies in between, `promote` queues them. Where cancel was requested and the transition would let the job
        run again, it is cancelled instead. A stale one is refused and leaves a line in the job's history; if the loss
        of its lease was counted as a crash, it is counted no longer: the worker lives. A value that the store cannot
        keep raises ValueRefused, and nothing of the batch is written. What a stranger's transaction holds is told as
        held within about a second, and the others of the batch are written.

        A job that awaits others is queued when the last that names it as its next has ended; but if it awaits their
        success and one failed, was cancelled or was deleted unfinished, it is cancelled then, and what awaits it in
        turn is treated alike. Operators' orders and rescues count as ends, too.
        """
        ...

    async def promote(self, n: int) -> Promoted:
        """Queue at most `n` due scheduled and retrying jobs, and blocked ones whose way is free.

        Of a rate's line as many are called as have room now, oldest first, counting those already called. The work
        does not grow with lines whose holders go on.
        """
        ...

    async def age(self, after: timedelta, to: int, n: int) -> int:
        """Raise at most `n` queued jobs of a later priority to `to`, that were due, and there, so long ago.

        What counts is the later of `run_at` and `created_at`: who took a turn beside those who have stood there for
        long has not stood there itself. One call passes over no more than a thousand such newcomers of a queue.
        """
        ...

    async def rescue(self, n: int) -> list[Rescued]:
        """Hand back at most `n` jobs whose lease has expired, or fail them after too many crashes, as the law decides.

        Status, token and expiry are tested in the write itself. The token grows, so the late worker is refused. A lease
        that was never confirmed by an extension counts no crash: nothing shows that its job began.
        """
        ...

    async def prune(self, retention: Retention, n: int) -> Pruned:
        """Delete at most `n` finished jobs past their retention, and what else has expired.

        Never a live job, nor one that a live job awaits. The work does not grow with what is kept. Whoever calls until
        no more is said has had every queue looked at, and all deleted that was past its retention, but what stands
        behind thousands that live jobs await: that may take some rounds.
        """
        ...

    async def operate(self, orders: Sequence[Order]) -> list[Answer]:
        """Carry out operators' orders, each recorded in the job's history.

        Cancel: a waiting job is cancelled, a processing one asked to stop. Retry: a finished, scheduled or retrying job
        is queued now; a finished one with fresh attempts and crashes. Delete: any job that is not processing.
        """
        ...


@runtime_checkable
class Completes(Protocol):
    """What the jobs of a store can do besides, where it can: end an attempt inside the caller's own transaction."""

    async def complete(self, transition: Transition, tx: object) -> Verdict:
        """Apply one transition inside `tx`, fenced as ever: it counts on commit and is gone on rollback."""
        ...

    def complete_now(self, transition: Transition, tx: object) -> Verdict:
        """The same inside a synchronous driver's transaction, on the calling thread."""
        ...


# Views.


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which jobs; every field given must match."""

    status: Status | None = None
    type: str | None = None
    queue: str | None = None
    user_id: str | None = None
    entity_name: str | None = None
    entity_id: str | None = None
    correlation_id: str | None = None
    schedule: str | None = None
    parent_id: str | None = None
    next_id: str | None = None
    """the jobs that one awaits"""


@dataclass(frozen=True, slots=True)
class Page:
    """Jobs, and where the next page starts; None after the last."""

    jobs: tuple[Job, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class Count:
    """How many; not exact when the count stopped at its cap."""

    n: int
    exact: bool


@dataclass(frozen=True, slots=True)
class StatusCount:
    """How many jobs of one queue stand in one status."""

    queue: str
    status: Status
    count: Count


@dataclass(frozen=True, slots=True)
class Minute:
    """What ended in one minute: attempts of one queue and type that ended so, by length of run.

    Written with the endings it counts; see `Jobs.apply`. `bucket` b holds runs of less than 2^b milliseconds.
    """

    minute: datetime
    queue: str
    type: str
    status: Status
    bucket: int
    n: int
    duration_ms: int
    wait_ms: int


@dataclass(frozen=True, slots=True)
class Stats:
    """The store at one moment, and the minutes since."""

    at: datetime
    counts: tuple[StatusCount, ...]
    minutes: tuple[Minute, ...]


class Views(Protocol):
    """Looking, without changing anything."""

    async def get(self, ids: Sequence[str]) -> list[Job | None]:
        """The jobs of these ids, in order."""
        ...

    async def find(self, filter_: Filter, limit: int, after: str | None = None) -> Page:
        """Jobs that match, newest first, after the cursor. Cost does not grow with the page's place."""
        ...

    async def count(self, filter_: Filter, cap: int = COUNT_CAP) -> Count:
        """How many match, counted up to the cap."""
        ...

    async def history(self, job_id: str) -> list[Entry]:
        """The job's moves, oldest first; empty for a job that is not there."""
        ...

    async def stats(self, since: timedelta) -> Stats:
        """Live counts by queue and status, and the minutes of the time asked for."""
        ...


# Queues.


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInfo:
    """One queue as an operator sees it."""

    name: str
    paused_at: datetime | None
    max_depth: int | None
    depth: Count
    """queued jobs"""
    processing: Count
    oldest: timedelta | None
    """how long the longest-waiting queued job has waited"""


class Queues(Protocol):
    """Queues exist from the first job or setting that names them."""

    async def list(self) -> Sequence[QueueInfo]:
        """Every queue, by name."""
        ...

    async def pause(self, names: Sequence[str]) -> None:
        """Let nothing more be claimed from these; what runs goes on."""
        ...

    async def resume(self, names: Sequence[str]) -> None:
        """Let them be claimed again."""
        ...

    async def limit_depth(self, name: str, max_depth: int | None) -> None:
        """Refuse inserts while so many jobs wait: queued, scheduled, retrying or blocked. None is no limit."""
        ...


# Schedules.


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A cron rule as stored: which job each of its ticks makes, and where it stands."""

    name: str
    cron: Cron
    type: str
    payload_json: str
    queue: str
    options_json: str = "{}"
    """what else its jobs are enqueued with; opaque to the store"""
    next_tick: datetime
    last_tick: datetime | None = None
    paused_at: datetime | None = None
    declared: bool = False
    """it came from code: one that no running worker declares any more is an orphan"""
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """One tick to account for: compare-and-set on the schedule's next tick."""

    name: str
    expected: datetime
    """the schedule's next tick as the caller read it; also the tick this firing accounts for"""
    next_tick: datetime
    draft: Draft | None
    """the job to enqueue; None records the tick as missed"""
    unless_live: bool = False
    """overlap="skip": make no job while an earlier one of this schedule is live"""
    ticks: int = 1
    """how many ticks it accounts for: missed ones are recorded together, from the oldest of them"""


class Fired(StrEnum):
    """What became of a firing."""

    FIRED = "fired"
    SKIPPED = "skipped"
    """an earlier job of the schedule is still live"""
    MISSED = "missed"
    """accounted without a job"""
    STALE = "stale"
    """somebody else fired this tick, or the schedule changed, is paused or is gone"""
    EARLY = "early"
    """by the store's clock the tick has not come yet"""


@dataclass(frozen=True, slots=True)
class Tick:
    """One accounted tick of a schedule."""

    tick: datetime
    fired: Fired
    job_id: str | None
    ticks: int = 1
    """how many, if several were missed in a row from this one on"""


@dataclass(frozen=True, slots=True)
class Due:
    """The schedules whose tick has come, and when the next tick of the others is."""

    schedules: tuple[Schedule, ...]
    """at most as many as were asked for, longest due first; none that is paused"""
    now: datetime
    """the store's clock"""
    next_in: timedelta | None
    """how long until the next tick of a schedule that is not due yet; None if there is no other"""


class Schedules(Protocol):
    """Cron rules; exactly one job per tick with any number of workers."""

    async def put(self, schedules: Sequence[Schedule]) -> None:
        """Write each by name. A changed rule takes the new next tick; an unchanged one keeps the tick it stands at."""
        ...

    async def remove(self, names: Sequence[str]) -> int:
        """Forget these; jobs already made stay."""
        ...

    async def list(self) -> Sequence[Schedule]:
        """Every schedule, by name."""
        ...

    async def due(self, n: int) -> Due:
        """What is to be fired now, at most `n`, in one step. The work does not grow with schedules that are not due."""
        ...

    async def pause(self, names: Sequence[str], *, paused: bool) -> None:
        """Stop or restart firing."""
        ...

    async def fire(self, firings: Sequence[Firing]) -> Sequence[Fired]:
        """Move each schedule on if it still stands at `expected` and that tick has come by the store's clock.

        In the same step: the job is inserted with its schedule and tick, and the tick recorded.
        """
        ...

    async def ticks(self, name: str) -> Sequence[Tick]:
        """The newest accounted ticks of a schedule, newest first, at most 50."""
        ...


# Workers.


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """A worker as it last described itself."""

    id: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    types: tuple[str, ...]
    slots: int
    running: int
    stuck: int = 0
    memory_mb: float | None = None
    loop_lag_ms: float | None = None
    stopping: bool = False
    started_at: datetime | None = None
    beat_at: datetime | None = None


SILENT = timedelta(seconds=45)
"""a worker that has not beaten for so long is presumed dead: four of its default heartbeats and some"""


@dataclass(frozen=True, slots=True)
class Peer:
    """A worker that has beaten lately, as far as another needs to know it."""

    id: str
    queues: tuple[str, ...]
    """the queues it consumes; empty is every queue"""
    handles: str = ""
    """the same for workers that handle the same types"""


class Workers(Protocol):
    """Who is there. A job's fate hangs on its lease, never on a worker's row."""

    async def beat(self, worker: WorkerInfo) -> Sequence[Peer]:
        """Write how the worker is, stamped by the store; answers all that have beaten lately, by id, itself among them.

        Left out are those that are stopping and those that have been silent for `SILENT`.
        """
        ...

    async def list(self) -> Sequence[WorkerInfo]:
        """Every worker that has not been forgotten, by id."""
        ...

    async def forget(self, ids: Sequence[str]) -> None:
        """Remove workers that have stopped."""
        ...


# Locks.


@dataclass(frozen=True, slots=True)
class Granted:
    """The lock is the caller's; its token is larger than any before of this name: a resource can refuse older ones."""

    token: int
    until: datetime


@dataclass(frozen=True, slots=True)
class Held:
    """Somebody else has it."""

    until: datetime


class Locks(Protocol):
    """Named locks with fencing tokens. Each acquisition has an owner's name of its own."""

    async def acquire(self, name: str, owner: str, ttl: timedelta) -> Granted | Held:
        """Take the lock if it is free or has expired.

        Asked again by the owner who has it, as after a lost answer, it grants the same token anew.
        """
        ...

    async def extend(self, name: str, token: int, ttl: timedelta) -> bool:
        """Keep it longer, if the token is the current one and has not expired."""
        ...

    async def release(self, name: str, token: int) -> bool:
        """Give it back, if the token is the current one. The same answer again, until somebody else acquires it."""
        ...


# Notices, schema, the whole.


class About(StrEnum):
    """What a notice is about, so that only those look who have something to do."""

    CLAIMABLE = "c"
    """jobs were queued"""
    DUE = "d"
    """something is to happen at a time: a job was scheduled or is retrying, a schedule was put or resumed"""
    CHANGED = "e"
    """a job ended, or changed otherwise"""
    CANCEL = "x"
    """a processing job was asked to stop: its worker should look which"""
    ANYTHING = "a"
    """something may have been missed: everyone should look at everything"""


LANES = 64
"""so many workers can each be told of single jobs without the others hearing of it"""
ENDS = LANES
"""one lane more, for what no worker has to do anything about: a job ended, or changed otherwise"""


@dataclass(frozen=True, slots=True)
class Notice:
    """A hint. Which of many idle workers follow it is drawn by whoever gives it.

    One that tells of a single job travels in one of a few lanes, and the end of a job in another, so that a store can
    spare those who would not follow it.
    """

    about: About
    queue: str | None = None
    """where jobs were queued; None is any queue, or several"""
    n: int = 1
    """how many were"""
    draw: int = 0
    """a number by chance, the same for everyone who hears of it"""
    hop: int = 0
    """how often it was passed on by one who was chosen and had no room"""

    @property
    def lane(self) -> int | None:
        """The lane that it travels in; None reaches everybody."""
        if self.about is About.CHANGED:
            return ENDS
        alone = self.about is About.CLAIMABLE and self.n == 1 and not self.hop
        return self.draw % LANES if alone else None

    def text(self) -> str:
        """As it travels: short, and never anything of a job but its queue."""
        return f"{self.about.value}{self.n}.{self.draw}.{self.hop}.{self.queue or ''}"

    @staticmethod
    def of(text: str) -> Notice:
        """From its text; whatever else is found is a hint of anything."""
        try:
            n, draw, hop, queue = text[1:].split(".", 3)
            return Notice(About(text[:1]), queue or None, int(n), int(draw), int(hop))
        except ValueError:
            return ANYTHING

    @staticmethod
    def claimable(n: int, queue: str | None = None, hop: int = 0) -> Notice:
        """Jobs were queued; drawn anew."""
        return Notice(About.CLAIMABLE, queue, n, random.getrandbits(24), hop)


ANYTHING = Notice(About.ANYTHING)


class Notices(Protocol):
    """Wake-ups: hints, lossy by nature. Polling is the floor under them."""

    async def publish(self, notice: Notice = ANYTHING) -> None:
        """Tell whoever listens. What a store's own operations change they tell by themselves."""
        ...

    def subscribe(self, wake: Callable[[Notice], None]) -> AbstractAsyncContextManager[None]:
        """Call `wake` in the running loop after changes, until left; re-opens for ever after faults.

        Several changes of a moment may be told as one. After a fault, and where a store cannot tell what was changed,
        the notice is about ANYTHING. An insert of queued jobs, a promotion and an unblocking are about CLAIMABLE.
        """
        ...

    def heed(self, wake: Callable[[Notice], None], lanes: frozenset[int] | None) -> None:
        """Say which lanes a subscriber follows; None, as at first, is all of them. Others may be told all the same."""
        ...

    @property
    def healthy(self) -> bool:
        """Whether changes made by others arrive by push now; if not, only polling finds them."""
        ...


class Schema(Protocol):
    """The store's own tables, collections or keys."""

    async def version(self) -> int:
        """The installed version; 0 when there is none."""
        ...

    async def pending(self) -> list[str]:
        """The names of the steps that `migrate` would take now."""
        ...

    async def migrate(self) -> list[str]:
        """Bring the schema to this windlass's version, safely by many at once; returns the names of the steps taken."""
        ...

    async def verify(self) -> list[str]:
        """What differs from what windlass made, in words; empty when all is well."""
        ...

    def statements(self, installed: int = 0) -> str:
        """The migrations as text for people who run them by hand; those that this version lacks, where they differ."""
        ...

    async def remove(self) -> None:
        """Take away what windlass made in this namespace, with every job in it, and nothing else.

        For places that were made for a while: nobody may work there any more.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What this store can do and what it risks, said plainly; `doctor` shows it."""

    store: str
    transactions: bool
    """enqueue inside the caller's own transaction"""
    push: bool
    """changes by other processes arrive without polling"""
    durability: str
    warnings: tuple[str, ...] = ()
    claims_at_once: int = 1
    """how many claims of one worker it carries out beside each other without one getting in another's way"""
    rescue_waits: timedelta = timedelta(0)
    """how long a rescue may wait, so that the living extend their leases first"""


class Store(Protocol):
    """One place where jobs live."""

    @property
    def jobs(self) -> Jobs: ...
    @property
    def views(self) -> Views: ...
    @property
    def queues(self) -> Queues: ...
    @property
    def schedules(self) -> Schedules: ...
    @property
    def workers(self) -> Workers: ...
    @property
    def locks(self) -> Locks: ...
    @property
    def notices(self) -> Notices: ...
    @property
    def schema(self) -> Schema: ...

    @property
    def address(self) -> str:
        """Where it is, without secrets: fit for logs and screens."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can do; complete once open."""
        ...

    async def open(self, *, migrate: bool = True) -> None:
        """Connect, and bring the schema up to date unless told not to. A newer schema is refused."""
        ...

    async def close(self) -> None:
        """Let go of every connection, thread and task."""
        ...

    def sibling(self) -> Store:
        """Another store on the same place, not yet open, for a thread or loop of its own."""
        ...

    async def now(self) -> datetime:
        """The store's clock."""
        ...

    async def health(self) -> Mapping[str, Any]:
        """Figures about the server or file for `doctor`: version, size, settings that matter."""
        ...
