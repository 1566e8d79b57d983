"""`doctor`: what is wrong, or soon will be, and what to do about it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import typer

from windlass.cli.desk import Desk, Globals, globals_of, refuse_missing, run_async, the_app
from windlass.cli.output import FAILURE, STYLES, Screen, Stop
from windlass.cli.words import milliseconds, plural, span
from windlass.client.presence import is_alive
from windlass.core.errors import WindlassError
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from windlass.app import Windlass
    from windlass.core.job import Job
    from windlass.stores.contract import Store, WorkerInfo

PASS, WARN, FAIL = "PASS", "WARN", "FAIL"
_SKEW = timedelta(seconds=2)
_OLD = timedelta(seconds=60)
_FULL = 0.8
_PUSH_WITHIN = 3.0
_MOST_LOOKED_AT = 1_000
_LATE = timedelta(seconds=15)
"""an expired lease older than this should have been rescued by any live worker"""


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; anything but a pass says what to do."""

    level: str
    name: str
    found: str
    fix: str | None = None


def doctor(ctx: typer.Context) -> None:
    """Check the store, its schema, the workers and the jobs; exit 1 if something fails."""
    given = globals_of(ctx)
    app = the_app(given)
    checks = run_async(_examine(app, given))
    if any(one.level == FAIL for one in checks):
        raise Stop(FAILURE)


async def _examine(app: Windlass, given: Globals) -> list[Check]:
    screen = given.screen
    checks: list[Check] = []
    try:
        refuse_missing(app)
        if (check := await being_migrated(app.store)) is not None:
            _show(screen, check)
            return [check]  # what opens the store waits for it
        async with app:
            async for one in examine(Desk(screen, app)):
                _show(screen, one)
                checks.append(one)
    except (WindlassError, Stop) as error:
        checks.append(Check(FAIL, "store reachable", str(error), "check the URL, the server and the rights"))
        _show(screen, checks[-1])
    return checks


def _show(screen: Screen, one: Check) -> None:
    if screen.as_json:
        screen.fact({"check": one.name, "level": one.level, "found": one.found, "fix": one.fix})
        return
    screen.line(f"{one.level} {one.name:<22} {one.found}", STYLES[one.level])
    if one.fix is not None:
        screen.line(f"{'':<27} fix: {one.fix}")


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
        WARN,
        "schema",
        f"version {version}, being migrated by another process, which makes an index: {builds}",
        "wait: workers of the version before go on meanwhile, those that start now begin when it is done",
    )


async def examine(desk: Desk) -> AsyncIterator[Check]:
    """Every check, in the order of what depends on what."""
    now, check = await _reachable(desk)
    yield check
    yield _clock(now)
    yield await _schema(desk)
    for check in _abilities(desk):
        yield check
    yield await _notices(desk)
    health = await desk.store.health()
    for check in (*integrity(health), *snapshots(health), *memory(health), *file(health)):
        yield check
    workers = [one for one in await desk.store.workers.list() if is_alive(one, now)]
    for check in connections(health, len(workers)):
        yield check
    yield await _workers(desk, workers, now)
    yield await _handled(desk, workers)
    yield await _leases(desk, workers, now)
    yield await _paused(desk)


async def _reachable(desk: Desk) -> tuple[datetime, Check]:
    began = time.perf_counter()
    health = await desk.store.health()
    took = (time.perf_counter() - began) * 1000
    store, version = desk.store.capabilities.store, health.get("version", "")
    now = await desk.store.now()
    return now, Check(
        PASS, "store reachable", f"{desk.store.address}  {store} {version}, answers in {milliseconds(took)}"
    )


def _clock(now: datetime) -> Check:
    skew = abs(now - datetime.now(UTC))
    if skew <= _SKEW:
        return Check(PASS, "clock", f"store and this host are within {span(skew)}")
    fix = "set both by NTP: jobs go by the store's clock, but people and logs here read this one"
    return Check(WARN, "clock", f"store and this host are {span(skew)} apart", fix)


async def _schema(desk: Desk) -> Check:
    version, wrong = await desk.store.schema.version(), await desk.store.schema.verify()
    if not wrong:
        return Check(PASS, "schema", f"version {version}, as windlass made it")
    return Check(FAIL, "schema", f"version {version}: {'; '.join(wrong)}", "undo the change, or restore a backup")


def _abilities(desk: Desk) -> Iterator[Check]:
    able = desk.store.capabilities
    yield Check(PASS, "durability", able.durability)
    for warning in able.warnings:
        said, _, fix = warning.rpartition(": ")
        yield Check(WARN, "store", said or warning, fix if said else "see the documentation of this store")


async def _notices(desk: Desk) -> Check:
    if (await desk.store.health()).get("pooler"):
        return Check(
            WARN,
            "notices",
            "no notice passes the connection pooler: workers find new jobs by polling, every second",
            "give workers a URL of the server itself",
        )
    if not desk.store.capabilities.push:
        return Check(
            WARN,
            "notices",
            "this store cannot push: workers find new jobs by polling",
            "a shorter --poll, if 1 s is too long",
        )
    # Whether they arrive is known only to who listens.
    async with desk.store.notices.subscribe(lambda _: None):
        waited = time.monotonic() + _PUSH_WITHIN
        while not desk.store.notices.healthy and time.monotonic() < waited:  # noqa: ASYNC110  # becoming so wakes nobody
            await asyncio.sleep(0.02)
        healthy = desk.store.notices.healthy
    if healthy:
        return Check(PASS, "notices", "changes arrive by push")
    return Check(WARN, "notices", "push is down: workers poll", "see the store's log; windlass re-opens it by itself")


def integrity(health: Mapping[str, Any]) -> Iterator[Check]:
    """Whether the store's own data are whole, where it can tell."""
    found = health.get("integrity")
    if found is not None:
        good = found == "ok"
        yield Check(PASS if good else FAIL, "integrity", str(found), None if good else "restore the file from a backup")


def snapshots(health: Mapping[str, Any]) -> Iterator[Check]:
    """Whether an old transaction keeps the store from clearing away what is done, where there are such."""
    seconds = health.get("oldest_snapshot_seconds")
    if seconds is not None and seconds > _OLD.total_seconds():
        yield Check(
            WARN,
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
            yield Check(PASS, "memory", told)
        else:
            fix = "raise maxmemory, or keep ended jobs for a shorter time"
            yield Check(WARN, "memory", f"{told}: when it is full, enqueues are refused", fix)


def file(health: Mapping[str, Any]) -> Iterator[Check]:
    """Whether the store could write its file the last time, where it says so."""
    told = health.get("last write")
    if told not in (None, "ok"):
        yield Check(FAIL, "file", f"the last write of the append-only file: {told}", "look at its log and its disk")


def connections(health: Mapping[str, Any], workers: int) -> Iterator[Check]:
    """Whether the store's server has room for the connections of all live workers, where it has a bound."""
    each, most = health.get("worker_connections"), health.get("max_connections")
    if not each or not most or health.get("pooler"):  # what a pooler makes of them is its own affair
        return
    told = f"{plural(workers, 'live worker')} of up to {each} each, {workers * each} of the server's {most}"
    if workers * each < _FULL * most:
        yield Check(PASS, "connections", told)
    else:
        yield Check(
            WARN,
            "connections",
            f"{told}: others need some, too, and when none is left, whoever comes next is refused",
            "raise max_connections, run fewer worker processes with a higher --concurrency, or put a pooler between",
        )


async def _workers(desk: Desk, workers: list[WorkerInfo], now: datetime) -> Check:
    silent = [one for one in await desk.store.workers.list() if not is_alive(one, now)]
    stuck = sum(one.stuck for one in workers)
    running, slots = sum(one.running for one in workers), sum(one.slots for one in workers)
    told = f"{plural(len(workers), 'live worker')}, {running} of {slots} slots in use"
    if stuck:
        return Check(
            WARN,
            "workers",
            f"{told}; {plural(stuck, 'thread')} stuck past the timeout",
            "declare such handlers with process=True",
        )
    if silent:
        names = ", ".join(one.id for one in silent[:3])
        return Check(
            WARN,
            "workers",
            f"{told}; {len(silent)} went silent: {names}",
            "their jobs are rescued; find out why they died",
        )
    if not workers:
        return Check(WARN, "workers", "no live worker", "start one: windlass worker MODULE:APP")
    return Check(PASS, "workers", told)


async def _handled(desk: Desk, workers: list[WorkerInfo]) -> Check:
    known = {name for one in workers for name in one.types}
    waiting: Counter[str] = Counter()
    for status in (Status.QUEUED, Status.SCHEDULED, Status.RETRYING):
        page = await desk.app.jobs.find(status=status, limit=_MOST_LOOKED_AT)
        waiting.update(job.type for job in page.jobs if job.type not in known)
    if not waiting:
        return Check(PASS, "types have workers", "every waiting type has a live worker")
    told = ", ".join(f"{name}: {n} waiting" for name, n in waiting.most_common(5))
    level = FAIL if workers else WARN
    return Check(
        level, "types have workers", f"no live worker handles {told}", "deploy their handlers, or cancel these jobs"
    )


async def _leases(desk: Desk, workers: list[WorkerInfo], now: datetime) -> Check:
    page = await desk.app.jobs.find(status=Status.PROCESSING, limit=_MOST_LOOKED_AT)
    expired = [one for one in page.jobs if _expired(one, now)]
    if not expired:
        return Check(PASS, "leases", f"{plural(len(page.jobs), 'job')} running, none past its lease")
    fix = (
        "start a worker: it rescues them" if not workers else "look at the workers' logs: rescuing should have happened"
    )
    return Check(
        FAIL if workers else WARN,
        "leases",
        f"{plural(len(expired), 'job')} past the lease, such as {expired[0].id}",
        fix,
    )


def _expired(job: Job, now: datetime) -> bool:
    return job.lease_expires_at is not None and now - job.lease_expires_at > _LATE


async def _paused(desk: Desk) -> Check:
    paused = [one for one in await desk.app.queues.list() if one.paused_at is not None and one.depth.n]
    if not paused:
        return Check(PASS, "queues", "no paused queue holds jobs")
    told = ", ".join(f"{one.name} ({one.depth.n} waiting)" for one in paused)
    return Check(WARN, "queues", f"paused with jobs in them: {told}", f"windlass queues resume {paused[0].name}")
