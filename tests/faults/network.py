"""The way to the store is cut, loses answers or swallows notices: M6, M7 and M8 of the matrix."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from itertools import count
from statistics import median
from urllib.parse import urlsplit

from tests.faults.judging import found_by, heal, kind_of, resumed, slow_to_resume, spec_of, strike
from windlass import StoreError, Windlass
from windlass.chaos.faults import Finding
from windlass.chaos.history import What
from windlass.chaos.place import Pace, Place
from windlass.chaos.proxy import PostgresNotices, Proxy, RedisMessages, Sieve
from windlass.chaos.report import Report
from windlass.chaos.trial import Hand, Trial
from windlass.chaos.waiting import until
from windlass.stores.contract import Notices

FLAGGED_WITHIN = 15.0
MARKS = {
    "postgres": (b"LISTEN ",),
    "mongo": (b"$changeStream", b"$cmd.aggregate"),  # the stream's first question, and those that follow it
    "redis": (b"SUBSCRIBE",),
}
"""what the connection of a listener is told by"""
SIEVES: dict[str, Callable[[], Sieve]] = {"postgres": PostgresNotices, "redis": RedisMessages}

HARSH = {"postgres": (0.06, 0.2), "mongo": (0.3, 1.0), "redis": (0.5, 0.1)}
"""which share of answers the producers lose, and for how many seconds they are patient: an enqueue takes one question
on Redis, and a dozen on PostgreSQL when it has to connect"""

_IMPATIENT = 3
"""how often a producer asks with little patience"""
_PATIENT = 50
"""how often it tries to open its store"""


@contextmanager
def proxied(place: Place, seed: int) -> Generator[tuple[Proxy, Place], None, None]:
    """A proxy in front of the place's server, and the place as it is seen through it."""
    parts, kind = urlsplit(place.url), kind_of(place)
    proxy = Proxy(parts.hostname or "", parts.port or 0, seed=seed, sieve=SIEVES.get(kind), marks=MARKS[kind])
    with proxy:
        user = parts.netloc.rpartition("@")[0]
        there = parts._replace(netloc=f"{user}{'@' if user else ''}127.0.0.1:{proxy.port}")
        if kind == "mongo":
            there = there._replace(query="directConnection=true")  # the set itself would name its own address
        yield proxy, replace(place, url=there.geturl())


def hurried(url: str, seconds: float) -> str:
    """The same store for one who does not wait long."""
    return f"{url}{'&' if urlsplit(url).query else '?'}timeout={seconds:g}"


async def cut_off(place: Place, seed: int, *, long: bool) -> Finding:
    """Some workers hear nothing from the store, and nobody closes their connections; others go on."""
    missing: list[str] = []
    with proxied(place, seed) as (proxy, there):
        async with Trial(place, spec=spec_of(place), seed=seed) as trial:
            await trial.ready(2)
            await trial.ready(1, CHAOS_URL=there.url)
            far = trial.hands[-1]
            for _ in range(2 if long else 1):
                await trial.fill(50 if long else 10, 0.1)
                missing += await _cut(trial, proxy, far)
            await trial.finished(5 if place.control else 60)
            return await found_by("silence", trial, slow_to_resume, lambda _: missing)


async def _cut(trial: Trial, proxy: Proxy, far: Hand) -> list[str]:
    job = await _taken_by(trial, far)
    if job is None:
        return ["the worker to be cut off took no job: nothing was proved"]
    strike(trial, "silence")
    proxy.silence()
    # The job outlasts its lease by far: who keeps at it, does so beside the next one.
    others = await until(lambda: any(run.pid != far.pid for run in trial.runs()[job]), trial.pace.recovery + 3)
    await asyncio.sleep(trial.random.uniform(0, trial.pace.lease))  # it is healed at any point of a lease
    proxy.heal()
    at = heal(trial, "silence")
    async with trial.producing(0.05):
        went_on = await resumed(trial, at)
    return [
        *(["nobody took the job of the worker that was cut off"] * (not others)),
        *(["the worker did not resume"] * (not went_on)),
    ]


async def _taken_by(trial: Trial, hand: Hand) -> str | None:
    for _ in range(40):
        job = await trial.enqueue("work", seconds=trial.pace.lease * 3)
        if await trial.runner(job) is hand:
            return job
    return None


async def answers_lost(place: Place, seed: int, *, long: bool) -> Finding:
    """Requests are carried out and their answers lost, for workers and producers; who was told nothing asks again."""
    share, patience = HARSH[kind_of(place)]
    with proxied(place, seed) as (mild, there), proxied(place, seed) as (harsh, far):
        async with Trial(there, seed=seed, direct=place.url) as trial:
            await trial.ready(3)
            # With less patience than it takes to get through, so that some must ask again themselves.
            async with _apps(replace(far, url=hurried(far.url, patience)), 4) as apps:
                strike(trial, "answers lost")
                mild.lose_answers(0.04)
                harsh.lose_answers(share)
                each = 20 if long else 12
                asked = [_insistent(trial, app, f"{n}", each, place.control) for n, app in enumerate(apps)]
                again, _ = await asyncio.gather(_sum(asked), trial.fill(100 if long else 60, 0.05))
                mild.heal()
                harsh.heal()
                heal(trial, "answers lost")
            await trial.finished(60)

            def proved(_: Report) -> list[str]:
                return [
                    *(["no answer was lost: nothing was proved"] * (not (mild.lost and harsh.lost))),
                    *(["no producer had to ask again: nothing was proved"] * (not again)),
                ]

            return await found_by("answers lost", trial, proved)


async def _sum(asked: Sequence[Awaitable[int]]) -> int:
    return sum(await asyncio.gather(*asked))


@asynccontextmanager
async def _apps(place: Place, n: int) -> AsyncGenerator[list[Windlass], None]:
    async with AsyncExitStack() as stack:
        apps = [Windlass(place.url, namespace=place.namespace) for _ in range(n)]
        for app in apps:
            for tries in count(1):
                # In so little time even a store that is well may not open, on a machine that is busy.
                try:
                    await stack.enter_async_context(app)
                    break
                except StoreError:
                    if tries > _PATIENT:
                        raise
        yield apps
    for app in apps:
        app.close()


async def _insistent(trial: Trial, app: Windlass, who: str, n: int, control: str) -> int:
    """Enqueue so many jobs, each until it is acknowledged; returns how often that took another try.

    The control asks for a new job each time, and so makes more than it knows of.
    """
    again = 0
    for number in range(n):
        name = f"insistent-{who}-{number}"
        trial.history.tell(What.INVOKED, name=name, expect="succeeded")
        for attempt in count():
            # One who got through to nobody for so often takes more time; so does this machine, when it is busy.
            patient = trial.app if attempt >= _IMPATIENT else app
            try:
                handle = await patient.enqueue(
                    "work", {"name": name, "seconds": 0.05}, max_crashes=50, idempotent=not control
                )
            except StoreError as error:
                again += 1
                trial.history.tell(What.UNKNOWN, name=name, note=str(error)[:300])
                continue
            trial.history.tell(What.ACKNOWLEDGED, name=name, job=handle.id)
            break
    return again


async def deaf(place: Place, seed: int, *, long: bool) -> Finding:
    """The listener's connection falls silent, or its notices alone are lost: polls find the jobs, and it is told."""
    ways = ("silence", "sieve") if kind_of(place) in SIEVES else ("silence",)
    chosen = ways if long else (ways[seed % len(ways)],)
    findings = [
        await _deaf(replace(place, folder=place.folder / way, namespace=f"{place.namespace}_{way}"), seed, way)
        for way in chosen
    ]
    return next((one for one in findings if not one.good), findings[-1])


async def _deaf(place: Place, seed: int, way: str) -> Finding:
    with proxied(place, seed) as (proxy, there):
        async with Trial(there, pace=Pace(poll=2.0), spec=spec_of(place), seed=seed, direct=place.url) as trial:
            await trial.ready(2)
            missing = await _deafen(trial, proxy, way)
            proxy.heal()
            await trial.finished(3 if place.control else 30)
            return await found_by(way, trial, lambda _: missing)


async def _deafen(trial: Trial, proxy: Proxy, way: str) -> list[str]:
    notices = trial.app.store.notices
    async with notices.subscribe(lambda _: None):
        await until(lambda: notices.healthy, 10)
        if not notices.healthy:
            return ["notices never worked: nothing was proved"]
        before = [await _picked_up(trial) for _ in range(3)]
        strike(trial, way)
        if way == "sieve":
            proxy.sieving = True
        else:
            # Questions about changes share their connections with all others on MongoDB.
            proxy.silence_marked(standing=kind_of(trial.place) != "mongo")
        # A mistake need not be waited out.
        watching = asyncio.create_task(_flagged(notices, 1.0 if trial.place.control else FLAGGED_WITHIN))
        after: list[float] = []
        # A poll may come at once by chance, and oftener once the listener is known to be deaf.
        while (len(after) < 4 or (max(after) < trial.pace.poll / 4 and len(after) < 16)) and float("inf") not in after:
            after.append(await _picked_up(trial))
        flagged = await watching
    missing: list[str] = []
    most = trial.pace.poll + 1
    if median(before) > trial.pace.poll / 4:
        missing.append(f"notices took {median(before):.2f} s when all was well: nothing was proved")
    if max(after) < trial.pace.poll / 4:
        missing.append("every job was begun at once: notices got through, and nothing was proved")
    if max(after) > most:
        missing.append(f"a job was not begun within {most:g} s without notices")
    if flagged is None:
        missing.append(f"a deaf listener was still said to be healthy after {FLAGGED_WITHIN:g} s")
    return missing


async def _picked_up(trial: Trial) -> float:
    """Seconds from the acknowledgement of a job to its beginning."""
    await asyncio.sleep(trial.random.uniform(0.05, 0.2))  # so that it meets idle workers, at any point of their polls
    job = await trial.enqueue("work", seconds=0.0)
    asked = time.monotonic()
    await until(lambda: bool(trial.runs().get(job or "")), trial.pace.poll + 2)
    begun = trial.runs().get(job or "")
    return begun[0].begun - asked if begun else float("inf")


async def _flagged(notices: Notices, within: float) -> float | None:
    """Seconds until a listener was said not to be healthy."""
    since = time.monotonic()
    return time.monotonic() - since if await until(lambda: not notices.healthy, within) else None
