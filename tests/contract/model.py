"""What a store should do, in plain dictionaries: no clock, no concurrency, no batches.

It knows priorities, queues, delays, unique keys and what replaces their holders, idempotency, depths, limits, rates,
flows, kept values, signals, gathered children and expiry; not turns, ageing, schedules, transactions, nor the end of a
rate's or an idempotency key's window.

It restates on purpose what `core.admission` and `core.kept` say: most stores decide by that, and a mistake there is to
be found, too.

The model takes three things from the store's word: in which order queued jobs stand (their instants), which of the
jobs that may not run yet are blocked already and which still queued, and whether a finished job whose idempotency key
is remembered was pruned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from tests.support.drafts import INSTANT
from windlass.core.draft import Draft
from windlass.core.history import Happened
from windlass.core.status import WAITING, Status
from windlass.core.transition import Transition, honour_cancel, refuse
from windlass.stores.contract import (
    Action,
    Answer,
    Created,
    Duplicate,
    Full,
    Inserted,
    Lease,
    Operated,
    Replaced,
    Verdict,
)

READY = {Status.QUEUED, Status.BLOCKED}
SPOILED = {Status.FAILED, Status.CANCELLED}


@dataclass
class Row:
    draft: Draft
    status: Status
    held: str | None
    told: list[Happened]
    attempts: int = 0
    crashes: int = 0
    token: int = 0
    cancel: bool = False
    confirmed: int | None = None
    """the token of the last lease that was extended"""
    charged: int | None = None
    """the token of the lease whose loss was last counted as a crash, while it still is"""
    expired: bool = False
    """its lease is over, or will be in a moment"""
    due: bool = False
    """its time has come, or will in a moment"""
    awaits: bool = False
    """jobs that name it as their next have not ended"""
    parked: bool = False
    """nobody could read its payload"""
    kept: dict[str, str] = field(default_factory=dict[str, str])
    waits: str | None = None
    """the name, as it is kept, of the signal it waits for"""
    gathers: bool = False
    """it has awaited the end of its children, whatever it awaited when it was enqueued"""
    expires: timedelta | None = None

    @property
    def late(self) -> bool:
        """Whether no worker took it in time, or will have in a moment."""
        return self.expires == INSTANT and self.token == 0 and not self.status.finished

    def end(self) -> None:
        self.held, self.due, self.awaits, self.parked, self.waits = None, False, False, False, None


@dataclass
class Model:
    rows: dict[str, Row] = field(default_factory=dict[str, Row])
    paused: set[str] = field(default_factory=set[str])
    depths: dict[str, int] = field(default_factory=dict[str, int])
    known: dict[str, str] = field(default_factory=dict[str, str])
    """which job an idempotency key stands for"""
    starts: Counter[str] = field(default_factory=Counter[str])
    """of each rate, in a window that does not end"""

    def holder(self, key: str | None, but: str) -> str | None:
        return next((id_ for id_, row in self.rows.items() if key and row.held == key and id_ != but), None)

    def insert(self, draft: Draft, *, later: bool, due: bool) -> Inserted:
        if draft.id in self.rows:
            return Created(draft.id)
        key, queue = draft.idempotency_key, draft.options.queue
        if key in self.known:
            return Duplicate(self.known[key], key)
        holder = self.holder(draft.unique_queued, draft.id)
        if holder is not None:
            return self.meet(holder, draft, later=later, due=due)
        if queue in self.depths and self.waiting(queue) >= self.depths[queue]:
            return Full(queue, self.depths[queue])
        awaits = draft.options.awaits is not None
        status = Status.SCHEDULED if later else Status.BLOCKED if awaits else Status.QUEUED
        row = Row(draft, status, draft.unique_queued, [Happened.ENQUEUED], due=due, awaits=awaits)
        row.expires = draft.options.expires
        self.rows[draft.id] = row
        if key is not None:
            self.known[key] = draft.id
        return Created(draft.id)

    def meet(self, holder: str, draft: Draft, *, later: bool, due: bool) -> Inserted:
        row = self.rows[holder]
        if draft.options.on_conflict != "replace" or row.status not in WAITING:
            return Duplicate(holder, draft.unique_queued or "")
        options = replace(row.draft.options, priority=draft.options.priority)
        row.draft = row.draft._replace(payload_json=draft.payload_json, options=options)
        row.expires = draft.options.expires
        row.kept.clear()
        row.told.append(Happened.REPLACED)
        if not row.awaits:
            row.status, row.due, row.parked = Status.SCHEDULED if later else Status.QUEUED, due, False
            row.waits = None
        return Replaced(holder)

    def waiting(self, queue: str) -> int:
        return sum(row.status in WAITING and row.draft.options.queue == queue for row in self.rows.values())

    def may_run(self, id_: str) -> bool:
        draft = self.rows[id_].draft
        running = [row for row in self.rows.values() if row.status is Status.PROCESSING]
        taken = sum(row.draft.limit_key == draft.limit_key for row in running)
        rate = draft.options.rate
        return (
            (draft.limit is None or taken < draft.limit)
            and self.holder(draft.unique_running, id_) is None
            and (rate is None or self.starts[draft.rate_key or ""] < rate.n)
        )

    def claim(
        self,
        order: Sequence[str],
        claimed: Sequence[str],
        n: int,
        queues: Mapping[str, int] | None,
        *,
        expired: bool,
    ) -> None:
        """Follow a claim: each job must be the first of its queue, and none of another queue may have come before it.

        Whose turn it is among queues of equal priority is the store's choice.
        """
        left = None if queues is None else dict(queues)
        for id_ in claimed:
            heads = self.heads(order, left)
            best = min(self.rows[head].draft.options.priority for head in heads)
            assert id_ in heads, "not the first of its queue"
            assert self.rows[id_].draft.options.priority == best, "a better priority was passed over"
            row = self.rows[id_]
            row.status, row.held, row.expired, row.due = Status.PROCESSING, row.draft.unique_running, expired, False
            row.token += 1
            row.attempts += 1
            row.told.append(Happened.CLAIMED)
            if row.draft.rate_key is not None:
                self.starts[row.draft.rate_key] += 1
            if left is not None:
                left[row.draft.options.queue] -= 1
        assert len(claimed) == n or not self.heads(order, left), "something claimable was left"

    def heads(self, order: Sequence[str], left: Mapping[str, int] | None) -> list[str]:
        """The first job of each queue that may run now."""
        first: dict[str, str] = {}
        for id_ in order:
            row = self.rows[id_]
            queue = row.draft.options.queue
            open_ = queue not in self.paused and (left is None or left.get(queue, 0) > 0)
            if row.status is Status.QUEUED and open_ and not row.late and self.may_run(id_):
                first.setdefault(queue, id_)
        return list(first.values())

    def apply(self, transition: Transition, *, due: bool) -> Verdict:
        row = self.rows.get(transition.id)
        if row is None:
            return Verdict.MISSING
        if row.token != transition.token:
            row.told.append(Happened.REFUSED)
            if refuse(transition, row.token, row.charged).acquits:
                row.crashes, row.charged = row.crashes - 1, None
            return Verdict.STALE
        if row.status is not Status.PROCESSING:
            return Verdict.APPLIED
        self.move(row, transition, due=due)
        return Verdict.CANCELLED if row.cancel and not transition.to.finished else Verdict.APPLIED

    def move(self, row: Row, transition: Transition, *, due: bool) -> None:
        if row.cancel:
            transition = honour_cancel(transition)
        row.status, row.due, row.expired = transition.to, due and transition.delay is not None, False
        row.parked = transition.happened is Happened.BLOCKED
        if transition.happened is Happened.SUSPENDED:
            self.suspend(row, transition.blocked_by or "")
        row.attempts -= transition.give_back
        row.crashes += transition.crashed
        row.told.append(transition.happened)
        if row.status.finished:
            self.end(row)

    def suspend(self, row: Row, line: str) -> None:
        row.awaits = row.gathers = not line.startswith("signal:") and row.status is Status.BLOCKED
        row.waits = None if row.awaits else line
        if line in row.kept:
            row.status, row.due, row.waits = Status.QUEUED, False, None
        elif row.awaits:
            self.gather(row)

    def gather(self, row: Row) -> None:
        """Let it go on if no child is live."""
        if all(one.status.finished for one in self.rows.values() if one.draft.next_id == row.draft.id):
            row.status, row.awaits = Status.QUEUED, False

    def keep(self, lease: Lease, name: str, text: str) -> bool:
        owned = self.owns(lease)
        if owned:
            self.rows[lease.id].kept[name] = text
        return owned

    def signal(self, id_: str, name: str, text: str) -> Answer:
        row = self.rows.get(id_)
        if row is None:
            return Answer(Operated.MISSING)
        found, waited = row.status, row.waits == name
        if found.finished:
            return Answer(Operated.REFUSED, found)
        if name in row.kept:
            return Answer(Operated.DUPLICATE, found)
        row.kept[name] = text
        row.told.append(Happened.SIGNALLED)
        if waited:
            row.status, row.due, row.waits = Status.QUEUED, False, None
        return Answer(Operated.DONE if waited else Operated.KEPT, found)

    def time_out(self, row: Row) -> None:
        row.kept[row.waits or ""] = "null"
        row.status, row.due, row.waits = Status.QUEUED, False, None

    def end(self, row: Row) -> None:
        row.end()
        self.follow(row, spoiled=row.status in SPOILED)

    def follow(self, ended: Row, *, spoiled: bool) -> None:
        """What becomes of the job that awaits this one."""
        row = self.rows.get(ended.draft.next_id or "")
        if row is None or not row.awaits:
            return
        if spoiled and row.draft.options.awaits == "success" and not row.gathers:
            row.status = Status.CANCELLED
            row.told.append(Happened.CANCELLED)
            self.end(row)
        else:
            self.gather(row)

    def prunable(self, row: Row) -> bool:
        after = self.rows.get(row.draft.next_id or "")
        return row.status.finished and (after is None or after.status.finished)

    def rescue(self, transition: Transition) -> Status:
        row = self.rows[transition.id]
        self.move(row, transition, due=False)
        row.charged = row.token if transition.crashed else row.charged
        row.token += 1
        return row.status

    def owns(self, lease: Lease) -> bool:
        row = self.rows.get(lease.id)
        return row is not None and row.status is Status.PROCESSING and row.token == lease.token

    def operate(self, id_: str, action: Action) -> Answer:
        row = self.rows.get(id_)
        if row is None:
            return Answer(Operated.MISSING)
        found = row.status
        if action is Action.CANCEL:
            return Answer(self.cancel(row), found)
        if action is Action.DELETE:
            if found is Status.PROCESSING:
                return Answer(Operated.REFUSED, found)
            del self.rows[id_]
            self.known = {key: job for key, job in self.known.items() if job != id_}
            self.follow(row, spoiled=not found.finished)
            return Answer(Operated.DONE, found)
        holder = self.holder(row.draft.unique_queued, id_) if found.finished else None
        if holder is not None:
            return Answer(Operated.DUPLICATE, found, holder)
        return Answer(self.retry(row), found)

    def cancel(self, row: Row) -> Operated:
        if row.status in WAITING:
            row.status = Status.CANCELLED
            row.told.append(Happened.CANCELLED)
            self.end(row)
            return Operated.DONE
        if row.status is Status.PROCESSING:
            row.cancel = True
            row.told.append(Happened.CANCEL_REQUESTED)
            return Operated.REQUESTED
        return Operated.REFUSED

    def retry(self, row: Row) -> Operated:
        if row.status in READY | {Status.PROCESSING} and not row.parked:
            return Operated.REFUSED
        if row.status.finished:
            row.attempts = row.crashes = 0
            row.cancel, row.held, row.charged = False, row.draft.unique_queued, None
            row.expires = None
        row.status, row.due, row.parked = Status.QUEUED, False, False
        row.told.append(Happened.RETRIED)
        return Operated.DONE
