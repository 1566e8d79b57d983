"""Operate: what operators ask of jobs, recorded in the job's own history.

Many orders take as many statements as one: rows are held, what becomes of each is decided, and all of a kind is written
at once. As steps that any driver can carry, so that they can also join the caller's own transaction.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.blocked import Kind, lines
from windlass.core.history import Happened
from windlass.core.kept import Received, Signal, read_kept, receive, signal_name
from windlass.core.status import WAITING, Status
from windlass.stores.contract import Action, Answer, Operated, Order
from windlass.stores.postgres.connection import carry
from windlass.stores.postgres.joining import located
from windlass.stores.postgres.keeping import FREE, TAKE_EARLY
from windlass.stores.postgres.locking import LOCK, key_locks
from windlass.stores.postgres.notices import CANCEL as TO_CANCEL
from windlass.stores.postgres.notices import CHANGED, channel_of, claimable
from windlass.stores.postgres.records import AT, CLOCK, STATUSES, append, line_end, marked
from windlass.stores.postgres.settling import TELL
from windlass.stores.postgres.unblocking import unblocking

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windlass.stores.contract import Notice
    from windlass.stores.postgres.connection import Ask, Link, Rows, Steps

KEYS = "SELECT unique_queued FROM windlass_jobs WHERE id = ANY ($1::text[]) AND unique_queued IS NOT NULL"
NEXT = "SELECT next_id FROM windlass_jobs WHERE id = ANY ($1::text[])"
HELD = """
SELECT id, status, unique_queued, unique_key, limit_key, unique_running, idempotency_key, rate_key, next_id, blocked_by,
    queue, user_id, CASE WHEN id = ANY ($2::text[]) THEN kept::text END, pg_current_xact_id()::text
FROM windlass_jobs WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE
"""
# A server that took another's place may not have come to this transaction yet.
COMMITTED = """
SELECT xid FROM unnest($1::text[]) AS xid WHERE CASE WHEN xid::xid8 < pg_snapshot_xmax(pg_current_snapshot())
    THEN pg_xact_status(xid::xid8) END = 'committed'
"""
HOLDERS = "SELECT unique_key, id FROM windlass_jobs WHERE unique_key = ANY ($1::text[])"


class Carried(NamedTuple):
    """One answer per order, in order; the queues of jobs that go on; and what is to be told of all."""

    answers: list[Answer]
    queued: list[str]
    notices: list[Notice]
    xid: str | None
    """the transaction; None if no job was there"""


async def operate(link: Link, orders: Sequence[Order]) -> Carried:
    """In one transaction of the store's own.

    If its commit is not answered and it is tried again, what it wrote the first time is not taken for another's.
    """
    tried: list[Carried] = []

    async def attempt(ask: Ask) -> Carried:
        tried.append(await carry(ask, carrying_out(link, orders, tried)))
        return tried[-1]

    return await link.transaction(attempt)


def joining(link: Link, orders: Sequence[Order]) -> Steps[list[Answer]]:
    """Inside the caller's own transaction, whose commit also sends the notices."""
    yield from located(link, compare=True)
    carried = yield from carrying_out(link, orders)
    yield TELL, (channel_of(link), [notice.text() for notice in carried.notices])
    return carried.answers


def carrying_out(link: Link, orders: Sequence[Order], tried: Sequence[Carried] = ()) -> Steps[Carried]:
    """The orders as steps of a transaction; `tried` are earlier attempts at them, one of which may be written."""
    keys = yield from _locking_keys(link, orders)
    rows = yield from _holding(orders)
    # Under the locks of the rows, which an earlier attempt had until it ended.
    if (written := (yield from _written(tried))) is not None:
        return written
    deciding = _Deciding({row[0]: _Found(*row[:-1]) for row in rows})
    if keys:
        holders: Rows = yield HOLDERS, (keys,)
        deciding.holders = dict(holders)
    answers: list[Answer] = []
    for run in _runs(orders):
        answers += [deciding.answer(order) for order in run]
        for statement in _WRITES:
            if told := deciding.writes.pop(statement, None):
                yield statement, tuple(list(column) for column in zip(*told, strict=True))
    freed = yield from unblocking(link, deciding.waited, deciding.unfinished)
    asked = any(answer.verdict is Operated.REQUESTED for answer in answers)
    queued, xid = deciding.queued + freed, rows[0][-1] if rows else None
    return Carried(answers, queued, [CHANGED, *([TO_CANCEL] if asked else ()), *claimable(queued)], xid)


def _locking_keys(link: Link, orders: Sequence[Order]) -> Steps[list[str]]:
    """The unique keys that retries may take, under their locks."""
    retried = _of(orders, Action.RETRY)
    if not retried:
        return []
    rows: Rows = yield KEYS, (retried,)
    keys = sorted({key for (key,) in rows})
    if keys:
        yield LOCK, (sorted(key_locks(link, keys)),)
    return keys


def _holding(orders: Sequence[Order]) -> Steps[Rows]:
    """The rows of these jobs, held."""
    ids, deleted = {order.id for order in orders}, _of(orders, Action.DELETE)
    if deleted:
        # A deleted job leaves no trace: the one that awaits it has to hear of it now, so nobody else may be at that.
        nexts: Rows = yield NEXT, (deleted,)
        ids |= {next_id for (next_id,) in nexts if next_id is not None}
    rows: Rows = yield HELD, (sorted(ids), _of(orders, Action.SIGNAL))
    return rows


def _of(orders: Sequence[Order], action: Action) -> list[str]:
    return sorted({order.id for order in orders if order.action is action})


def _written(tried: Sequence[Carried]) -> Steps[Carried | None]:
    by_xid = {carried.xid: carried for carried in tried if carried.xid is not None}
    if not by_xid:
        return None
    committed: Rows = yield COMMITTED, (sorted(by_xid),)
    return by_xid[committed[0][0]] if committed else None


def _runs(orders: Sequence[Order]) -> Iterator[list[Order]]:
    """The orders in runs that name each job once: of two orders for one job the first is written before the second."""
    run: dict[str, Order] = {}
    for order in orders:
        if order.id in run:
            yield list(run.values())
            run = {}
        run[order.id] = order
    yield list(run.values())


class _Found:
    """A job as it is while its row is held."""

    def __init__(
        self,
        id_: str,
        status: str,
        unique_queued: str | None,
        unique_key: str | None,
        limit_key: str | None,
        unique_running: str | None,
        idempotency_key: str | None,
        rate_key: str | None,
        next_id: str | None,
        blocked_by: str | None,
        queue: str,
        user: str | None,
        kept: str | None,
    ) -> None:
        self.id, self.status, self.blocked_by, self.queue = id_, STATUSES[status], blocked_by, queue
        self.user = user
        self.unique_queued, self.unique_key = unique_queued, unique_key
        self.idempotency_key, self.next_id = idempotency_key, next_id
        self.kept = read_kept(kept)
        """read only for those that are sent a signal"""
        self.lines = lines(limit=limit_key, unique=unique_running, rate=rate_key, flow=next_id)
        """where others may stand behind it"""


_TOLD = "unnest($1::text[], $2::text[]) AS told (id, line)"
_LINE = append("told.line")
CANCEL = f"""
WITH {CLOCK}
UPDATE windlass_jobs AS j SET status = 'cancelled', finished_at = {AT}, updated_at = {AT}, cancel_requested_at = {AT},
    unique_key = NULL, blocked_by = NULL, {_LINE}
FROM clock AS c, {_TOLD} WHERE j.id = told.id
"""  # noqa: S608  # made of constants
REQUEST = f"""
WITH {CLOCK}
UPDATE windlass_jobs AS j SET cancel_requested_at = coalesce(j.cancel_requested_at, {AT}), updated_at = {AT}, {_LINE}
FROM clock AS c, {_TOLD} WHERE j.id = told.id
"""  # noqa: S608  # made of constants
RESTART = f"""
WITH {CLOCK}
UPDATE windlass_jobs AS j SET status = 'queued', run_at = {AT}, queued_at = {AT}, updated_at = {AT}, attempts = 0,
    crashes = 0, charged = NULL, {marked()},
    result = NULL, error = NULL, progress = NULL, finished_at = NULL, started_at = NULL,
    duration_ms = NULL, wait_ms = NULL, worker_id = NULL, cancel_requested_at = NULL, expires_at = NULL,
    unique_key = j.unique_queued, {_LINE}
FROM clock AS c, {_TOLD} WHERE j.id = told.id
"""  # noqa: S608  # made of constants
HURRY = f"""
WITH {CLOCK}
UPDATE windlass_jobs AS j SET status = 'queued', run_at = {AT}, queued_at = {AT}, updated_at = {AT}, blocked_by = NULL,
    {marked()}, {_LINE}
FROM clock AS c, {_TOLD} WHERE j.id = told.id
"""  # noqa: S608  # made of constants
FORGET_KEYS = """
DELETE FROM windlass_idempotency AS i USING unnest($1::text[], $2::text[]) AS told (key, id)
WHERE i.key = told.key AND i.job_id = told.id
"""
DELETE = "DELETE FROM windlass_jobs WHERE id = ANY ($1::text[])"
_WRITES = (CANCEL, REQUEST, FORGET_KEYS, DELETE, HURRY, RESTART, FREE, TAKE_EARLY)
"""in this order: a key that one gives up may be taken by another"""


class _Deciding:
    """What becomes of one order after another, and what is to be written of them."""

    def __init__(self, found: dict[str, _Found]) -> None:
        self._found = found
        self.holders: dict[str, str] = {}
        self.writes: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
        # Claims made while the rows were held have passed over the jobs that wait for others.
        self.waited = {job.blocked_by for job in found.values() if job.blocked_by and Kind.FLOW.blocks(job.blocked_by)}
        self.queued: list[str] = []
        self.unfinished: dict[str, str] = {}

    def answer(self, order: Order) -> Answer:
        job = self._found.get(order.id)
        if job is None or not order.finds(job.user):
            return Answer(Operated.MISSING)
        status = job.status
        if not order.allows(status):
            return Answer(Operated.REFUSED, status)
        if order.action is Action.SIGNAL and order.signal is not None:
            return Answer(self._take(order.actor, job, order.signal), status)
        act = {Action.CANCEL: self._cancel, Action.RETRY: self._retry, Action.DELETE: self._delete}[order.action]
        verdict, holder = act(order, job)
        if verdict is Operated.DONE:
            # The one that went may have been next in line: those behind it must not wait for its end.
            self.waited.update(job.lines)
        return Answer(verdict, status, holder)

    def _cancel(self, order: Order, job: _Found) -> tuple[Operated, str | None]:
        if job.status in WAITING:
            line = line_end(Happened.CANCELLED, Status.CANCELLED, order.actor, note=order.reason)
            self.writes[CANCEL].append((job.id, line))
            job.status, job.blocked_by = Status.CANCELLED, None
            self._give_up_key(job)
            return Operated.DONE, None
        if job.status is Status.PROCESSING:
            line = line_end(Happened.CANCEL_REQUESTED, job.status, order.actor, note=order.reason)
            self.writes[REQUEST].append((job.id, line))
            return Operated.REQUESTED, None
        return Operated.REFUSED, None

    def _retry(self, order: Order, job: _Found) -> tuple[Operated, str | None]:
        line = line_end(Happened.RETRIED, Status.QUEUED, order.actor, note=order.reason)
        if job.status in (Status.SCHEDULED, Status.RETRYING) or Kind.PAYLOAD.blocks(job.blocked_by):
            self.writes[HURRY].append((job.id, line))
        elif not job.status.finished:
            return Operated.REFUSED, None
        else:
            key = job.unique_queued
            holder = None if key is None else self.holders.get(key)
            if holder is not None and holder != job.id:
                return Operated.DUPLICATE, holder
            if key is not None:
                self.holders[key], job.unique_key = job.id, key
            self.writes[RESTART].append((job.id, line))
        job.status, job.blocked_by = Status.QUEUED, None
        self.queued.append(job.queue)
        return Operated.DONE, None

    def _delete(self, order: Order, job: _Found) -> tuple[Operated, str | None]:
        if job.status is Status.PROCESSING:
            return Operated.REFUSED, None
        if job.idempotency_key is not None:
            self.writes[FORGET_KEYS].append((job.idempotency_key, job.id))
        self.writes[DELETE].append((job.id,))
        self._give_up_key(job)
        del self._found[order.id]
        if job.next_id is not None and not job.status.finished:
            self.unfinished.setdefault(job.next_id, job.id)
        return Operated.DONE, None

    def _take(self, actor: str, job: _Found, signal: Signal) -> Operated:
        received = receive(job.status, job.blocked_by, job.kept, signal)
        if received in (Received.DONE, Received.KEPT):
            is_freed = received is Received.DONE
            if is_freed:
                job.status, job.blocked_by = Status.QUEUED, None
                self.queued.append(job.queue)
            name = signal_name(signal.name)
            job.kept[name] = signal.json
            line = line_end(Happened.SIGNALLED, job.status, actor, note=signal.name)
            self.writes[FREE if is_freed else TAKE_EARLY].append((job.id, line, name, signal.json))
        return Operated(received.value)

    def _give_up_key(self, job: _Found) -> None:
        if job.unique_key is not None and self.holders.get(job.unique_key) == job.id:
            del self.holders[job.unique_key]
        job.unique_key = None
