"""The fault matrix: every trial under its number in the reliability contract, short for tests, long for the table.

To add one, add an entry: its number, what is done, the stores it applies to, a function from a place and a seed to a
finding, and the controls that must not pass it, each with words by one of which it must be found.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from tests.faults import held, held_snapshot, herds, network, promoted, store_gone, unanswered, unique_race
from tests.faults.crowds import crowds
from tests.faults.disk import full_disk
from tests.faults.filed import filed
from tests.faults.judging import spec_of
from tests.faults.one_file import crowded_file
from tests.faults.proof import ProvenBy
from tests.faults.remembered import remembered
from tests.faults.soak import soak
from tests.faults.ticks import ticks
from tests.faults.versions import rolling
from tests.faults.wrong_clocks import clocks
from windlass.chaos import faults
from windlass.chaos.faults import Finding, Plan
from windlass.chaos.place import Pace, Place

EVERY = ("sqlite", "mongo", "postgres", "redis")
SERVERS = ("mongo", "postgres", "redis")


class Run(Protocol):
    """One trial; `long` is for the table, and `place.control` names a mistake to catch."""

    def __call__(self, place: Place, seed: int, *, long: bool) -> Awaitable[Finding]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the matrix."""

    number: str
    what: str
    expect: str
    run: Run
    stores: tuple[str, ...] = EVERY
    controls: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """the mistakes that must be caught, most by the name they have in `broken.py`, and what finds them"""
    control_stores: tuple[str, ...] = ()
    """where they can be made, if not on all of the row's stores"""
    long_only: bool = False
    """takes too long for a test: `script/faults` alone runs it"""
    seeds: int | None = None
    """how many of a long run's seeds it is tried with, if a trial takes minutes"""
    alone: bool = False
    """keeps the machine busy, or measures how fast something is: nothing may run beside it"""

    @property
    def mistaken_stores(self) -> tuple[str, ...]:
        """Where its mistakes are made."""
        return self.control_stores or self.stores

    @property
    def proof(self) -> ProvenBy | None:
        """The tests that prove it, if others do."""
        return self.run if isinstance(self.run, ProvenBy) else None


def planned(fault: str, short: Plan, long: Plan, change: Callable[[Plan, int], Plan] | None = None) -> Run:
    """A fault that comes with windlass, in two sizes."""

    async def run(place: Place, seed: int, *, long: bool) -> Finding:
        plan = sizes[long] if change is None else change(sizes[long], seed)
        if place.control:
            # A mistake need not be waited out: what it leaves undone is part of what is found.
            plan = replace(plan, spec=spec_of(place), within=20 if fault == "poison" else 4)
        return await faults.run(fault, place, plan, seed)

    sizes = {False: short, True: long}
    return run


def one_poison(plan: Plan, seed: int) -> Plan:
    return replace(plan, kinds=(plan.kinds[seed % len(plan.kinds)],))


LONG = Plan(jobs=110, workers=3, job=0.05, within=90)
"""twenty seeds make two thousand jobs on each store"""

ROWS = {
    row.number: row
    for row in (
        Row(
            number="M1",
            what="kill -9 of a worker with jobs in flight",
            expect="lost 0; begun again within lease + rescue + poll",
            run=planned("kill", Plan(jobs=24, workers=3), LONG),
            controls={
                "rescue_from_snapshot": ("dup_in_lease", "late_accepted", "I1"),
                "notify_only": ("unfinished",),
                "look_then_insert": ("I6",),
                "count_then_claim": ("I7",),
            },
        ),
        Row(
            number="M2",
            what="SIGSTOP beyond the lease, then SIGCONT; also between a handler's return and its commit",
            expect="late results accepted 0, refused > 0",
            run=planned("freeze", Plan(jobs=8), LONG),
            controls={"complete_by_id": ("dup_in_lease", "late_accepted")},
        ),
        Row(
            number="M3",
            what="SIGTERM at random points",
            expect="lost 0; attempts spent 0; handed back within 1 s",
            run=planned("term", Plan(jobs=16, pace=Pace(lease=2.0)), replace(LONG, pace=Pace(lease=2.0))),
            controls={"forget_hand_backs": ("handed back after",)},
        ),
        Row(
            number="M4",
            what="kill -9 of the store's server under load, and a start on the same data (Redis: appendfsync always)",
            expect="lost 0; every worker resumes within 5 s of its first answer",
            run=store_gone.killed,
            stores=SERVERS,
            controls={"acknowledged_too_early": ("lost",)},
            control_stores=("postgres", "redis"),
        ),
        Row(
            number="M5",
            what="SIGSTOP of the store's server beyond the lease, 30 s at length",
            expect="lost 0; every worker resumes within 5 s of SIGCONT",
            run=store_gone.frozen,
            stores=SERVERS,
            controls={"give_up": ("unfinished", "did not resume")},
            seeds=2,
        ),
        Row(
            number="M6",
            what="a worker cut off from the store without a word, while others go on",
            expect="it gives its jobs up before their leases end; lost 0",
            run=network.cut_off,
            stores=SERVERS,
            controls={"never_fence": ("dup_in_lease",)},
        ),
        Row(
            number="M7",
            what="requests carried out whose answers are lost, for workers and producers",
            expect="lost 0; no job twice, for producers that ask again idempotently",
            run=network.answers_lost,
            stores=SERVERS,
            controls={"ask_anew": ("unexpected",)},
        ),
        Row(
            number="M8",
            what="a listener's connection falls silent; or its notices alone are lost",
            expect="jobs begin within poll + 1 s; flagged within 15 s",
            run=network.deaf,
            stores=SERVERS,
            controls={"notify_only": ("a job was not begun within",)},
        ),
        Row(
            number="M16",
            what="a job that kills its worker: kill, segmentation fault, memory",
            expect="at most 4 deaths, of which 3 count (the first comes before the lease is confirmed); the 9 innocents"
            " beside it succeed",
            run=planned("poison", Plan(), Plan(within=120), one_poison),
            controls={"count_no_crashes": ("workers died",)},
        ),
        Row(
            number="M17",
            what="an event loop blocked for five leases; the GIL held for two",
            expect="no job run twice under a valid lease",
            run=planned("block", Plan(jobs=8, pace=Pace(lease=0.8)), replace(LONG, jobs=100, pace=Pace(lease=0.8))),
            controls={"client_clock": ("dup_in_lease",)},
        ),
        Row(
            number="M18",
            what="64 clients on one unique key, a third rolling back where there are transactions, answers lost",
            expect="one live holder at every moment; nothing said to be made that is not there",
            run=unique_race.raced,
            stores=SERVERS,
            controls={"look_then_insert": ("I6", "held the key at one moment")},
        ),
    )
}
"""by number"""

# What happens on one host: clocks, disks, files, schedules, herds, versions.
LOCAL = (
    Row(
        number="M9",
        what="MongoDB whose primary steps down, is killed, frozen or cut off",
        expect="lost 0 with majority; a write that one member alone has seen is never acknowledged",
        run=ProvenBy("tests/stores/mongo/test_failover.py"),
        stores=("mongo",),
        seeds=1,
    ),
    Row(
        number="M10",
        what="a Redis replica promoted under load: one that has all that was answered, that follows, that is behind",
        expect="lost 0 of what the replica has received, else printed; every worker resumes within 5 s",
        run=promoted.redis_replica,
        stores=("redis",),
        long_only=True,
        seeds=3,
    ),
    Row(
        number="M11",
        what="a PostgreSQL standby promoted under load: one that is waited for, that follows, that is behind",
        expect="lost 0 where the standby is synchronous, else printed; every worker resumes within 5 s",
        run=promoted.postgres_standby_of,
        stores=("postgres",),
        long_only=True,
        seeds=3,
        alone=True,
    ),
    Row(
        number="M12",
        what="workers' clocks an hour off; the store's clock set ten minutes forward and back under load",
        expect="early 0; run twice under a valid lease 0, but once more where a clock set forward ended the lease",
        run=clocks,
        controls={"client_clock": ("dup_in_lease",)},
    ),
    Row(
        number="M13",
        what="the store's disk full under load, then freed",
        expect="typed errors; lost 0; nothing corrupt; goes on once there is room",
        run=full_disk,
        controls={"acknowledge_anyway": ("lost",)},
    ),
    Row(
        number="M14",
        what="Redis that would evict jobs, or whose memory is full",
        expect="refused when opened; a typed error, nothing lost",
        run=ProvenBy("tests/stores/redis/test_refusals.py", "evict or memory"),
        stores=("redis",),
        seeds=1,
    ),
    Row(
        number="M15",
        what="eight processes that write one SQLite file, a reader that holds a snapshot, kill -9 again and again",
        expect="'database is locked' told to anybody 0; integrity_check ok; lost 0",
        run=crowded_file,
        stores=("sqlite",),
        controls={"no_patience": ("told that the file is locked",)},
    ),
    Row(
        number="M19",
        what="five workers fire the ticks of many schedules at once, frozen and killed in between, clocks 30 s off",
        expect="jobs per tick 1.000; ticks not accounted for 0",
        run=ticks,
        controls={"look_then_fire": ("jobs more than its ticks",)},
    ),
    Row(
        number="M20",
        what="thousands of jobs fail at once",
        expect="the fullest part of the time they come back in holds at most twice the mean",
        run=herds.failing,
        controls={"no_jitter": ("peak/mean of retries",)},
        seeds=1,
        alone=True,
    ),
    Row(
        number="M20b",
        what="tens of workers lose their server at once",
        expect="the fullest part of the time they try again in holds at most twice the mean",
        run=herds.losing,
        stores=("postgres", "redis"),
        controls={"wait_alike": ("peak/mean of reconnects",)},
        seeds=2,
        alone=True,
    ),
    Row(
        number="M21",
        what="a fleet of two versions, each with a handler that the other lacks",
        expect="discarded 0: they wait, explain and doctor say why, and run when the other version comes",
        run=rolling,
        controls={"discard_unknown": ("misjudged",)},
    ),
    Row(
        number="M22",
        what="a snapshot held open under steady load, 60 s at length",
        expect="lost 0; everything ends; throughput and claim time printed against those without it",
        run=held_snapshot.held,
        stores=("postgres", "sqlite"),
        long_only=True,
        seeds=1,
        alone=True,
    ),
)
ROWS.update({row.number: row for row in LOCAL})

# A store that did it and did not say so, or was held by others, for longer than a lease.
UNSAID = {"forget_claims": ("leases at one moment",), "charge_the_unbegun": ("failed_unbegun",)}
SILENT = (
    Row(
        number="M25",
        what="MongoDB whose primary stays while no majority acknowledges: both followers locked for several leases",
        expect="failed without having begun 0; crashes counted 0; every worker resumes within 5 s",
        run=unanswered.majority_silent,
        stores=("mongo",),
        controls=UNSAID,
        seeds=3,
    ),
    Row(
        number="M26",
        what="a server frozen for longer than any timeout, with claims in its buffers; jobs that one crash fails",
        expect="failed without having begun 0; crashes counted 0; every worker resumes within 5 s",
        run=unanswered.frozen_with_claims,
        stores=SERVERS,
        controls=UNSAID,
        seeds=3,
    ),
    Row(
        number="M27",
        what="a user's transaction holds the record of a running job until long after its lease",
        expect="run twice under a valid lease 0; the jobs beside it are not lost with it, and their ends are written"
        " meanwhile; no crash counted",
        run=held.row,
        stores=("postgres", "mongo"),
        controls={
            "held_is_renewed": ("still at a job whose lease was over",),
            "stop_at_a_held_end": ("were not written while it was held",),
        },
    ),
    Row(
        number="M27b",
        what="an open transaction holds the line of a limit that hundreds (at length thousands) wait for",
        expect="a job without that limit begins within poll + 1 s",
        run=held.line,
        stores=("postgres",),
        controls={"stop_at_a_held_line": ("a plain job was begun after",)},
        seeds=3,
    ),
    Row(
        number="M28",
        what="SIGSTOP beyond the lease of a worker whose job runs in a process of its own",
        expect="that process does nothing after the lease; the late end is refused, and no crash counted",
        run=planned("child", Plan(jobs=4, pace=Pace(lease=1.2)), replace(LONG, jobs=60, pace=Pace(lease=1.2))),
        controls={"lease_for_less": ("dup_in_lease",), "withhold_the_deadline": ("dup_in_lease",)},
    ),
    Row(
        number="M29",
        what="the store away for two leases while handlers end (a silent network; SQLite: the file held by a writer)",
        expect="results that were ready are written, not made again; no crash is counted to who lived",
        run=planned("away", Plan(jobs=4), replace(LONG, jobs=60)),
        controls={"drop_results": ("ran again", "crashes_of_the_living")},
    ),
    Row(
        number="M30",
        what="kill -9 between every two steps of jobs that remember, save, wait for signals and gather; late words of"
        " leases that were lost",
        expect="steps that happened again although remembered 0; cursors that went back 0; jobs, signals and children"
        " lost 0; late words kept 0",
        run=remembered,
        controls={
            "forget_what_is_kept": ("although remembered", "went back"),
            "keep_by_id": ("kept a late word",),
            "lose_early_signals": ("its signal is", "was lost"),
        },
        seeds=5,
    ),
    Row(
        number="M31",
        what="kill -9 and SIGSTOP beyond the lease of workers that write files, at random points",
        expect="torn files 0; stale content 0, in records and on disk; versions in order; locks stuck 0",
        run=filed,
        controls={"ignore_the_order": ("stale", "out of order")},
    ),
)
ROWS.update({row.number: row for row in SILENT})

# What takes minutes.
LASTING = (
    Row(
        number="M23",
        what="200 viewers of figures, queues, pages and jobs of a store with 1,000,000 finished jobs, workers busy",
        expect="lost 0; no view fails; p95 of a view at most 150 ms; claims at least 0.95 of those without viewers",
        run=crowds,
        controls={"read_everything": ("p95",)},
        long_only=True,
        seeds=1,
        alone=True,
    ),
    Row(
        number="M24",
        what="faults of all these kinds at random, for minutes or for a day, while jobs keep coming",
        expect="all zeros; memory, files, threads and connections of a worker that lives through it are flat",
        run=soak,
        controls={"leak": ("grew from",)},
        long_only=True,
        seeds=1,
        alone=True,
    ),
)
ROWS.update({row.number: row for row in LASTING})
