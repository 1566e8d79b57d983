"""The checks behind `app.health`: what is wrong with a store, its workers and its jobs, or soon will be."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from windlass.client.workers import states
from windlass.core.blocked import BlockedBy, Kind
from windlass.core.status import Status
from windlass.core.wording import milliseconds, plural, span

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence

    from windlass.client.jobs import JobsRoom
    from windlass.client.workers import WorkerState
    from windlass.core.job import Job
    from windlass.stores.contract import Store

_SKEW = timedelta(seconds=2)
_OLD = timedelta(seconds=60)
_FULL = 0.8
_PUSH_WITHIN = 3.0
_MOST_LOOKED_AT = 1_000
_MOST_PARKED, _NAMED = 100, 5
_LATE = timedelta(seconds=15)
"""an expired lease older than this should have been rescued by any live worker"""


class Level(StrEnum):
    """How a check came out."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; anything but a pass says what to do."""

    level: Level
    name: str
    found: str
    fix: str | None = None


async def being_migrated(store: Store) -> Check | None:
    """How far it is, if another process is making indexes; else None."""
    own = store.sibling()
    await own.open(migrate=False)
    try:
        version = await own.schema.version()
        if not version or not await own.schema.pending():
            return None
        builds = (await own.health()).get("index_builds")
    finally:
        await own.close()
    if builds is None:
        return None
    return Check(
        Level.WARN,
        "schema",
        f"version {version}, being migrated by another process, which makes an index: {builds}",
        "wait: workers of the version before go on meanwhile, those that start now begin when it is done",
    )


async def examine(store: Store, jobs: JobsRoom, *, thorough: bool = True) -> AsyncGenerator[Check, None]:
    """Every check of an open store, in the order of what depends on what; see `Store.health` for what is thorough."""
    began = time.perf_counter()
    health = await store.health(thorough=thorough)
    took = (time.perf_counter() - began) * 1000
    kind = f"{store.capabilities.store} {health.get('version', '')}"
    yield Check(Level.PASS, "store reachable", f"{store.address}  {kind}, answers in {milliseconds(took)}")
    now = await store.now()
    yield _clock(now)
    yield await _schema(store)
    for check in _abilities(store):
        yield check
    yield await _notices(store, health)
    for check in (*integrity(health), *snapshots(health), *memory(health), *file(health)):
        yield check
    workers = await states(store)
    alive = [worker for worker in workers if worker.alive]
    for check in connections(health, len(alive)):
        yield check
    yield _workers(alive, [worker for worker in workers if not worker.alive])
    yield await _handled(jobs, alive)
    yield await _parked(store, jobs, alive)
    yield await _leases(jobs, now, rescued=bool(alive))
    yield await _paused(store)


def _clock(now: datetime) -> Check:
    skew = abs(now - datetime.now(UTC))
    if skew <= _SKEW:
        return Check(Level.PASS, "clock", f"store and this host are within {span(skew)}")
    fix = "set both by NTP: jobs go by the store's clock, but people and logs here read this one"
    return Check(Level.WARN, "clock", f"store and this host are {span(skew)} apart", fix)


async def _schema(store: Store) -> Check:
    version, wrong = await store.schema.version(), await store.schema.verify()
    if not wrong:
        return Check(Level.PASS, "schema", f"version {version}, as windlass made it")
    return Check(Level.FAIL, "schema", f"version {version}: {'; '.join(wrong)}", "undo the change, or restore a backup")


def _abilities(store: Store) -> Iterator[Check]:
    able = store.capabilities
    yield Check(Level.PASS, "durability", able.durability)
    for warning in able.warnings:
        said, _, fix = warning.rpartition(": ")
        yield Check(Level.WARN, "store", said or warning, fix if said else "see the documentation of this store")


async def _notices(store: Store, health: Mapping[str, Any]) -> Check:
    if health.get("pooler"):
        return Check(
            Level.WARN,
            "notices",
            "no notice passes the connection pooler: workers find new jobs by polling, every second",
            "give workers a URL of the server itself",
        )
    if not store.capabilities.push:
        return Check(
            Level.WARN,
            "notices",
            "this store cannot push: workers find new jobs by polling",
            "a shorter --poll, if 1 s is too long",
        )
    # Whether they arrive is known only to who listens.
    async with store.notices.subscribe(lambda _: None):
        waited = time.monotonic() + _PUSH_WITHIN
        while not store.notices.healthy and time.monotonic() < waited:  # noqa: ASYNC110  # becoming so wakes nobody
            await asyncio.sleep(0.02)
        healthy = store.notices.healthy
    if healthy:
        return Check(Level.PASS, "notices", "changes arrive by push")
    return Check(
        Level.WARN, "notices", "push is down: workers poll", "see the store's log; windlass re-opens it by itself"
    )


def integrity(health: Mapping[str, Any]) -> Iterator[Check]:
    """Whether the store's own data are whole, where it can tell."""
    found = health.get("integrity")
    if found is not None:
        good = found == "ok"
        yield Check(
            Level.PASS if good else Level.FAIL,
            "integrity",
            str(found),
            None if good else "restore the file from a backup",
        )


def snapshots(health: Mapping[str, Any]) -> Iterator[Check]:
    """Whether an old transaction keeps the store from clearing away what is done, where there are such."""
    seconds = health.get("oldest_snapshot_seconds")
    if seconds is not None and seconds > _OLD.total_seconds():
        yield Check(
            Level.WARN,
            "snapshots",
            f"a transaction has been open for {span(timedelta(seconds=seconds))}: nothing that was done since can be"
            " cleared away, and claims become slower",
            "find it in pg_stat_activity by xact_start, and end it; idle_in_transaction_session_timeout prevents it",
        )


def memory(health: Mapping[str, Any]) -> Iterator[Check]:
    """How far the store is from refusing new jobs, where it is kept in memory and has a bound."""
    most = health.get("maxmemory")
    if most:
        used = health["bytes"] / most
        told = f"{used:.0%} of maxmemory is used"
        if used < _FULL:
            yield Check(Level.PASS, "memory", told)
        else:
            fix = "raise maxmemory, or keep ended jobs for a shorter time"
            yield Check(Level.WARN, "memory", f"{told}: when it is full, enqueues are refused", fix)


def file(health: Mapping[str, Any]) -> Iterator[Check]:
    """Whether the store could write its file the last time, where it says so."""
    told = health.get("last write")
    if told not in (None, "ok"):
        yield Check(
            Level.FAIL, "file", f"the last write of the append-only file: {told}", "look at its log and its disk"
        )


def connections(health: Mapping[str, Any], workers: int) -> Iterator[Check]:
    """Whether the store's server has room for the connections of all live workers, where it has a bound."""
    each, most = health.get("worker_connections"), health.get("max_connections")
    if not each or not most or health.get("pooler"):  # what a pooler makes of them is its own affair
        return
    told = f"{plural(workers, 'live worker')} of up to {each} each, {workers * each} of the server's {most}"
    if workers * each < _FULL * most:
        yield Check(Level.PASS, "connections", told)
    else:
        yield Check(
            Level.WARN,
            "connections",
            f"{told}: other clients need connections, too, and when none is left, new ones are refused",
            "raise max_connections, run fewer worker processes with a higher --concurrency, or put a pooler between",
        )


def _workers(workers: Sequence[WorkerState], silent: Sequence[WorkerState]) -> Check:
    stuck = sum(one.stuck for one in workers)
    running, slots = sum(one.running for one in workers), sum(one.slots for one in workers)
    told = f"{plural(len(workers), 'live worker')}, {running} of {slots} slots in use"
    if stuck:
        return Check(
            Level.WARN,
            "workers",
            f"{told}; {plural(stuck, 'thread')} stuck past the timeout",
            "declare such handlers with process=True",
        )
    if silent:
        names = ", ".join(one.id for one in silent[:3])
        return Check(
            Level.WARN,
            "workers",
            f"{told}; {len(silent)} went silent: {names}",
            "their jobs are rescued; find out why they died",
        )
    if not workers:
        return Check(Level.WARN, "workers", "no live worker", "start one: windlass worker MODULE:APP")
    return Check(Level.PASS, "workers", told)


async def _handled(jobs: JobsRoom, workers: Sequence[WorkerState]) -> Check:
    known = {name for one in workers for name in one.types}
    waiting: Counter[str] = Counter()
    for status in (Status.QUEUED, Status.SCHEDULED, Status.RETRYING):
        page = await jobs.find(status=status, limit=_MOST_LOOKED_AT)
        waiting.update(job.type for job in page.jobs if job.type not in known)
    if not waiting:
        return Check(Level.PASS, "types have workers", "every waiting type has a live worker")
    told = ", ".join(f"{name}: {n} waiting" for name, n in waiting.most_common(5))
    level = Level.FAIL if workers else Level.WARN
    return Check(
        level, "types have workers", f"no live worker handles {told}", "deploy their handlers, or cancel these jobs"
    )


async def parked_jobs(store: Store, jobs: JobsRoom, workers: Sequence[WorkerState]) -> list[Job]:
    """Jobs that no handler could read the payload of, of each type the first hundred."""
    page = await jobs.find(status=Status.BLOCKED, limit=_MOST_LOOKED_AT)
    types = {job.type for job in page.jobs if Kind.PAYLOAD.blocks(job.blocked_by)}
    types |= {info.declared.type for info in await store.types.list()}
    types |= {type_ for worker in workers for type_ in worker.types}
    lines = [BlockedBy(Kind.PAYLOAD, type_).text for type_ in sorted(types)]
    return await store.views.blocked(lines, _MOST_PARKED)


async def _parked(store: Store, jobs: JobsRoom, workers: Sequence[WorkerState]) -> Check:
    parked = await parked_jobs(store, jobs, workers)
    if not parked:
        return Check(Level.PASS, "payloads", "no job is parked: handlers could read what they met")
    counts = Counter(job.type for job in parked).most_common(_NAMED)
    named = ", ".join(f"{type_}: {n}{' or more' if n == _MOST_PARKED else ''}" for type_, n in counts)
    fix = f"deploy a handler or an upgrade that can read them, or cancel them: windlass explain {parked[0].id}"
    return Check(Level.WARN, "payloads", f"parked, because no handler could read their payload: {named}", fix)


async def _leases(jobs: JobsRoom, now: datetime, *, rescued: bool) -> Check:
    page = await jobs.find(status=Status.PROCESSING, limit=_MOST_LOOKED_AT)
    expired = [one for one in page.jobs if _expired(one, now)]
    if not expired:
        return Check(Level.PASS, "leases", f"{plural(len(page.jobs), 'job')} running, none past its lease")
    fix = "look at the workers' logs: rescuing should have happened" if rescued else "start a worker: it rescues them"
    found = f"{plural(len(expired), 'job')} past the lease, such as {expired[0].id}"
    return Check(Level.FAIL if rescued else Level.WARN, "leases", found, fix)


def _expired(job: Job, now: datetime) -> bool:
    return job.lease_expires_at is not None and now - job.lease_expires_at > _LATE


async def _paused(store: Store) -> Check:
    paused = [one for one in await store.queues.list() if one.paused_at is not None and one.depth.n]
    if not paused:
        return Check(Level.PASS, "queues", "no paused queue holds jobs")
    told = ", ".join(f"{one.name} ({one.depth.n} waiting)" for one in paused)
    return Check(Level.WARN, "queues", f"paused with jobs in them: {told}", f"windlass queues resume {paused[0].name}")
