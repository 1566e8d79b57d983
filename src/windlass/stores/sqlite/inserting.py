"""Insert: drafts become rows, inside the writer's transaction or the caller's own."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.core.admission import Holder, Known, Waiting, judge, replacement, status_of_new
from windlass.core.blocked import BlockedBy, Kind
from windlass.core.draft import Draft
from windlass.core.fields import Origin
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.stores.columns import of_draft
from windlass.stores.contract import Created, Inserted, Replaced
from windlass.stores.sqlite.news import NOTHING, News
from windlass.stores.sqlite.records import (
    APPEND,
    KEPT,
    STATUSES,
    as_duration_ms,
    as_ms,
    asked_of,
    first_line,
    line_end,
)
from windlass.stores.sqlite.turns import FLOOR_OF, Turns

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from windlass.core.draft import Options


class _Tail(NamedTuple):
    """What the rows of jobs share that were asked for alike; all but the last are columns."""

    status: str
    run_at: int
    created_at: int
    updated_at: int
    queued_at: int | None
    expires_at: int | None
    history: str
    asked: list[Any]

    def values(self) -> tuple[Any, ...]:
        """In the order of SHARED."""
        return (*self[:-1], *self.asked)


OWN = (*KEPT.of(Origin.DRAFT), "unique_key", "blocked_by", "floor")
SHARED = (*_Tail._fields[:-1], *KEPT.of(Origin.OPTIONS))

INSERT = f"""
INSERT INTO windlass_jobs ({", ".join((*OWN, *SHARED))}) VALUES ({", ".join("?" * len((*OWN, *SHARED)))})
ON CONFLICT (id) DO NOTHING
"""  # noqa: S608  # made of constants


class Put(NamedTuple):
    """One verdict per draft, in order, and what others hear of them."""

    verdicts: list[Inserted]
    news: News


def insert(db: sqlite3.Connection, sql: Callable[[str], str], drafts: Sequence[Draft], now: int) -> Put:
    """Write each draft or say why not."""
    shared = {id(draft.options): draft.options for draft in drafts}
    tails = {key: _tail(options, now) for key, options in shared.items()}
    depths = _room(db, sql, {options.queue for options in shared.values()})
    turns = Turns(db, sql)
    if not depths and _plain(drafts, shared.values()):
        floors = {key: turns.floor(options, now) for key, options in shared.items()}
        counts = _insert_alike(db, sql, drafts, tails, floors)
        return Put([Created(draft.id) for draft in drafts], _news_of(counts, tails, shared))
    verdicts = [_insert_one(db, sql, draft, tails[id(draft.options)], now, depths, turns) for draft in drafts]
    written = Counter(
        id(draft.options)
        for draft, verdict in zip(drafts, verdicts, strict=True)
        if isinstance(verdict, (Created, Replaced))
    )
    return Put(verdicts, _news_of(written, tails, shared))


def _news_of(counts: Mapping[int, int], tails: Mapping[int, _Tail], shared: Mapping[int, Options]) -> News:
    """What others hear of so many jobs with each tail."""
    news = NOTHING
    for key, n in counts.items():
        match tails[key].status:
            case Status.QUEUED:
                news = news.joined(News(n, shared[key].queue))
            case Status.SCHEDULED:
                news = news.joined(News(due=n))
            case _:
                news = news.joined(News(changed=n))
        if tails[key].expires_at is not None:
            news = news.joined(News(due=n))
    return news


_KEYS = Draft._fields.index("options") + 1  # from here on a draft has its keys and what comes after it
_NO_KEYS = (None,) * (len(Draft._fields) - _KEYS)


def _plain(drafts: Sequence[Draft], shared: Iterable[Options]) -> bool:
    # A draft is compared as the tuple it is: this is asked for every job.
    return all(options.awaits is None for options in shared) and all(draft[_KEYS:] == _NO_KEYS for draft in drafts)


# Ids and payloads as the members of one JSON object, everything else bound once: one step for the whole batch.
INSERT_ALIKE = f"""
INSERT INTO windlass_jobs (id, type, payload, floor, {", ".join(SHARED)})
SELECT key, ?, value, ?, {", ".join("?" * len(SHARED))} FROM json_each(?) WHERE true
ON CONFLICT (id) DO NOTHING
"""  # noqa: S608  # made of constants


def _insert_alike(
    db: sqlite3.Connection,
    sql: Callable[[str], str],
    drafts: Sequence[Draft],
    tails: Mapping[int, _Tail],
    floors: Mapping[int, int | None],
) -> Counter[int]:
    """Write plain drafts and say how many there were with each tail."""
    counts: Counter[int] = Counter()
    for (type_, key), members in _alike(drafts).items():
        told = json.dumps(members, ensure_ascii=False)
        db.execute(sql(INSERT_ALIKE), (type_, floors[key], *tails[key].values(), told))
        counts[key] += len(members)
    return counts


def _alike(drafts: Sequence[Draft]) -> dict[tuple[str, int], dict[str, str]]:
    """Ids and payloads by type and options."""
    kinds = {(draft.type, id(draft.options)) for draft in drafts}
    if len(kinds) == 1:  # as nearly always, and told apart because it is several times as fast
        return {kinds.pop(): {draft.id: draft.payload_json for draft in drafts}}
    alike: dict[tuple[str, int], dict[str, str]] = {kind: {} for kind in kinds}
    for draft in drafts:
        alike[draft.type, id(draft.options)][draft.id] = draft.payload_json
    return alike


KNOWN_QUEUE = "INSERT INTO windlass_queues (name) VALUES (?) ON CONFLICT (name) DO NOTHING"
MAX_DEPTH = "SELECT max_depth FROM windlass_queues WHERE name = ?"
# Counted no further than it matters, by two indexes that hold nothing else.
DEPTH = """
SELECT count(*) FROM (
    SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_claim WHERE status = 'queued' AND queue = :queue
    UNION ALL
    SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_depth
    WHERE (queued_at IS NULL OR blocked_by IS NOT NULL) AND queue = :queue
        AND status IN ('scheduled', 'retrying', 'blocked')
    LIMIT :most
)
"""


def _room(db: sqlite3.Connection, sql: Callable[[str], str], queues: set[str]) -> dict[str, list[int]]:
    # The write comes first: inside a caller's deferred transaction it takes the write lock before anything is read,
    # so that what is read stays true.
    db.executemany(sql(KNOWN_QUEUE), [(queue,) for queue in queues])
    rooms: dict[str, list[int]] = {}
    for queue in queues:
        (most,) = db.execute(sql(MAX_DEPTH), (queue,)).fetchone()
        if most is not None:
            rooms[queue] = [most, db.execute(sql(DEPTH), {"queue": queue, "most": most}).fetchone()[0]]
    return rooms


# The job itself, if it is there, and the holder of its unique key.
MET = """
SELECT id, status, created_at, blocked_by FROM windlass_jobs WHERE id = ?
UNION ALL SELECT id, status, created_at, blocked_by FROM windlass_jobs WHERE unique_key = ?
"""
IDEMPOTENT = "SELECT job_id FROM windlass_idempotency WHERE key = ? AND expires_at > ?"
REMEMBER = "INSERT OR REPLACE INTO windlass_idempotency (key, job_id, expires_at) VALUES (?, ?, ?)"


def _insert_one(
    db: sqlite3.Connection,
    sql: Callable[[str], str],
    draft: Draft,
    tail: _Tail,
    now: int,
    depths: dict[str, list[int]],
    turns: Turns,
) -> Inserted:
    options, depth = draft.options, depths.get(draft.options.queue)
    met = db.execute(sql(MET), (draft.id, draft.unique_queued)).fetchall()
    verdict = judge(draft, _known(db, sql, draft, met, depth, now))
    if isinstance(verdict, Replaced):
        _replace(db, sql, draft, tail, met[0], now)
    if verdict is not None:
        return verdict
    if depth is not None:
        depth[1] += 1
    if draft.fair_key is not None and tail.status == Status.QUEUED.value:
        tail = tail._replace(run_at=turns.take(options, draft.fair_key, now))
    floor = turns.floor(options, now) if draft.fair_key is None else None
    db.execute(sql(INSERT), (*_own(draft, floor), *tail.values()))
    if draft.idempotency_key is not None and options.idempotency_window is not None:
        until = now + as_duration_ms(options.idempotency_window)
        db.execute(sql(REMEMBER), (draft.idempotency_key, draft.id, until))
    return Created(draft.id)


def _known(
    db: sqlite3.Connection,
    sql: Callable[[str], str],
    draft: Draft,
    met: list[tuple[Any, ...]],
    depth: list[int] | None,
    now: int,
) -> Known:
    is_there = any(_text(row[0]) == draft.id for row in met)
    same = None
    if draft.idempotency_key is not None:
        row = db.execute(sql(IDEMPOTENT), (draft.idempotency_key, now)).fetchone()
        same = None if row is None else _text(row[0])
    holder = Holder(_text(met[0][0]), STATUSES[_text(met[0][1])]) if met and not is_there else None
    most, waiting = (None, 0) if depth is None else depth
    return Known(is_there, same, holder, waiting, most)


REPLACE = f"""
UPDATE windlass_jobs SET payload = ?, priority = ?, run_at = ?, status = ?, queued_at = ?, updated_at = ?,
    floor = {FLOOR_OF}, expires_at = ?, kept = NULL, blocked_by = NULL, moves = moves + 1, history = {APPEND}
WHERE id = ?
"""  # noqa: S608  # APPEND is a constant
REPLACE_WAITING = f"""
UPDATE windlass_jobs SET payload = ?, priority = ?, expires_at = ?, kept = NULL, updated_at = ?, moves = moves + 1,
    history = {APPEND}
WHERE id = ?
"""  # noqa: S608  # APPEND is a constant


def _replace(
    db: sqlite3.Connection,
    sql: Callable[[str], str],
    draft: Draft,
    tail: _Tail,
    holder: tuple[Any, ...],
    now: int,
) -> None:
    holder_id, (created_at, blocked_by) = _text(holder[0]), holder[2:]
    waiting = Waiting(None if blocked_by is None else _text(blocked_by), timedelta(milliseconds=now - created_at))
    to, wait = replacement(draft.options, waiting, timedelta(milliseconds=tail.run_at - now))
    line = line_end(Happened.REPLACED, to)
    if wait is None:
        values = (draft.payload_json, draft.options.priority, tail.expires_at, now, now, line, holder_id)
        db.execute(sql(REPLACE_WAITING), values)
        return
    run_at, queued_at = now + as_duration_ms(wait), now if to is Status.QUEUED else None
    stands = (run_at, to.value, queued_at, now, now, tail.expires_at)
    db.execute(sql(REPLACE), (draft.payload_json, draft.options.priority, *stands, now, line, holder_id))


def _run_at(options: Options, now: int) -> int:
    if options.delay is not None:
        return now + as_duration_ms(options.delay)
    return now if options.run_at is None else as_ms(options.run_at)


def _status(options: Options, now: int) -> Status:
    return status_of_new(options, later=_run_at(options, now) > now)


def _tail(options: Options, now: int) -> _Tail:
    status = _status(options, now)
    queued_at = None if status is Status.SCHEDULED else now
    note = f"replay of {options.replay_of}" if options.replay_of else None
    line = first_line(now, status, note)
    expires_at = None if options.expires is None else now + as_duration_ms(options.expires)
    return _Tail(status.value, _run_at(options, now), now, now, queued_at, expires_at, line, asked_of(options))


def _own(draft: Draft, floor: int | None) -> tuple[Any, ...]:
    blocked_by = None if draft.options.awaits is None else BlockedBy(Kind.FLOW, draft.id).text
    return (*of_draft(draft), draft.unique_queued, blocked_by, floor)


def _text(value: str | bytes) -> str:
    # The caller's own connection may have been told to read text as bytes.
    return value.decode() if isinstance(value, bytes) else value
