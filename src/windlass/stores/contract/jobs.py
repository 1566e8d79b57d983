"""The life of jobs: insert, claim, extend, apply, sweep, operate."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol, runtime_checkable

from windlass.core.admission import Inserted
from windlass.core.draft import Draft
from windlass.core.transition import Transition
from windlass.stores.contract.leases import Claimed, Extended, Keep, Lease, Report, Verdict, Want
from windlass.stores.contract.operating import Answer, Order
from windlass.stores.contract.sweeping import Promoted, Pruned, Rescued, Retention


class Jobs(Protocol):
    """The life of jobs."""

    async def insert(self, drafts: Sequence[Draft], tx: object | None = None) -> list[Inserted]:
        """Write each draft or say why not, one verdict each, all in one durable step.

        Idempotent on the id. With `tx` everything happens inside the caller's transaction: visible on commit, gone on
        rollback, never aborted by a duplicate. A draft with a delay or a later `run_at` becomes scheduled, one that
        awaits others is blocked by "flow:" and its own id, else it is queued.

        A waiting job that is replaced keeps nothing of what it remembered: that was made of the payload that goes.

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

    async def keep(self, keeps: Sequence[Keep]) -> list[Verdict]:
        """Have running jobs remember values, fenced by their leases, all in one durable step; leaves no history.

        Values of one job are written in order. Told again, it is the same. A stale one changes nothing. What a
        stranger's transaction holds is told as held within about a second, and the others of the batch are written.
        """
        ...

    async def apply(self, transitions: Sequence[Transition]) -> list[Verdict]:
        """Write each transition if its job is still processing under its token: fenced, idempotent, one verdict each.

        In the same step the history is written, and the unique key of a finished job is freed. In that step, or on
        MongoDB right after it, the minute is counted and blocked jobs that can go on are queued, oldest first; if the
        caller dies in between, `promote` queues them. Where cancel was requested and the transition would let the job
        run again, it is cancelled instead, and the verdict says so. A stale one is refused and leaves a line in the
        job's history; if the loss of its lease was counted as a crash, it is counted no longer: the worker lives. A
        value that the store cannot keep raises ValueRefused, and nothing of the batch is written. What a stranger's
        transaction holds is told as held within about a second, and the others of the batch are written.

        A job that waits for a signal becomes blocked by "signal:" and its name, until its time is up by the store's
        clock (`run_at`); if the signal is there already it is queued instead (`transition.go_on`), in the same step. A
        job that gathers becomes blocked by "flow:" and its own id and awaits the end of the jobs that name it as their
        next; if all have ended already it is queued in that step, or on MongoDB right after it.

        A job that awaits others is queued when the last that names it as its next has ended; but if it awaits their
        success and one failed, was cancelled or was deleted unfinished, it is cancelled then, and what awaits it in
        turn is treated alike. Operators' orders and rescues count as ends, too.
        """
        ...

    async def promote(self, n: int) -> Promoted:
        """Queue at most `n` due scheduled and retrying jobs, and blocked ones whose way is free.

        A job whose signal has not come in time keeps null under the signal's name in the step that queues it: from then
        on a signal is refused as a duplicate. At most `n` jobs whose time to begin is over, and that no worker has ever
        taken, are cancelled; no claim leases such a job.

        Of a rate's line as many are called as have room now, oldest first, counting those already called. The work
        does not grow with lines whose holders go on.
        """
        ...

    async def age(self, after: timedelta, to: int, n: int) -> int:
        """Raise at most `n` queued jobs of a later priority to `to`, that were due, and there, so long ago.

        What counts is the later of `run_at` and `created_at`: a job that took a turn beside jobs that have stood there
        for long has not stood there itself. One call passes over no more than a thousand such newcomers of a queue.
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

        Never a live job, nor one that a live job awaits. The work does not grow with what is kept. A caller that
        repeats this until no more is said has had every queue looked at, and all deleted that was past its retention,
        but what stands behind thousands that live jobs await: that may take some rounds.
        """
        ...

    async def operate(self, orders: Sequence[Order], tx: object | None = None) -> list[Answer]:
        """Carry out operators' orders, each recorded in the job's history.

        With `tx` everything happens inside the caller's transaction: seen on commit, gone on rollback, never aborted by
        a refusal. What waited for these jobs is queued in the same step or, on MongoDB, by the next promotion.

        Cancel: a waiting job is cancelled, a processing one asked to stop. Retry: a finished, scheduled or retrying job
        is queued now; a finished one with fresh attempts and crashes. Delete: any job that is not processing. An order
        for jobs that stand in certain statuses only is refused of others, tested in the step that carries it out.
        Signal: `core.kept.receive` says what becomes of it; a job that waited for it is queued now, in that step. The
        history tells of the signal, and not of its value.
        """
        ...

    def operate_now(self, orders: Sequence[Order], tx: object) -> list[Answer]:
        """The same inside a synchronous driver's transaction, on the calling thread."""
        ...


@runtime_checkable
class Completes(Protocol):
    """What a store can do besides, where it can, in the caller's own transaction: end an attempt, keep a value."""

    async def complete(self, transition: Transition, tx: object) -> Verdict:
        """Apply one transition inside `tx`, fenced as ever: it counts on commit and is gone on rollback."""
        ...

    async def keep_in(self, keep: Keep, tx: object) -> Verdict:
        """Have a running job remember a value inside `tx`, fenced as ever."""
        ...

    def keep_in_now(self, keep: Keep, tx: object) -> Verdict:
        """The same inside a synchronous driver's transaction, on the calling thread."""
        ...

    def complete_now(self, transition: Transition, tx: object) -> Verdict:
        """The same inside a synchronous driver's transaction, on the calling thread."""
        ...
