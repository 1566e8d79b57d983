"""A server is lost under load and its follower promoted: M10 (Redis) and M11 (PostgreSQL) of the matrix.

Workers and producers reach the pair at an address that is led to the follower when that has been promoted, as a service
or an operator does. Each row goes through three modes:

- one in which nothing may be lost: PostgreSQL that waits for its standby; Redis whose replica has received all that was
  answered, because Redis promises nothing else;
- the same without that, and the follower as near as it is on one host: what that loses is printed;
- the control: the follower has heard nothing for a while. The judge must find that jobs are lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from tests.faults import postgres_standby, redis_faults
from tests.faults.judging import acknowledged, found_by, heal, resumed, slow_to_resume, strike
from tests.faults.redis_faults import ask, until_following
from tests.support.processes import HOST, Server
from tests.support.servers import start_postgres, start_redis
from tests.support.until import until
from windlass.chaos.faults import Finding
from windlass.chaos.place import Place
from windlass.chaos.proxy import Proxy
from windlass.chaos.report import Report, together
from windlass.chaos.trial import Trial

HELD = 1.5
"""seconds that a follower hears nothing where it has to be behind; longer than a lease"""
NAME = "follower promoted"


@dataclass(frozen=True)
class Pair:
    """A server, its follower, the address that leads to one of them, and the line between them."""

    primary: Server
    follower: Server
    address: Proxy
    line: Proxy
    promote: Callable[[Server], Awaitable[None]]

    @property
    def url(self) -> str:
        """Where clients find whichever of them leads."""
        [node] = self.primary.nodes
        return self.primary.url.replace(f":{node.port}", f":{self.address.port}")

    async def fail_over(self) -> None:
        """The primary is lost, the follower promoted, and the address led to it."""
        await asyncio.to_thread(self.primary.kill)
        await self.promote(self.follower)
        [node] = self.follower.nodes
        self.address.heal()
        self.address.lead_to(HOST, node.port)


@dataclass(frozen=True, kw_only=True)
class Mode:
    """How a follower is kept, and what becomes of the pair."""

    name: str
    pair: Callable[[], AbstractAsyncContextManager[Pair]]
    harm: Callable[[Pair], Awaitable[None]]
    """what comes before the end of the primary"""
    own_tokens: bool = False
    """whether a follower hands out no token again that it never heard of"""


async def at_once(_: Pair) -> None:
    """Nothing comes before it."""


async def held_behind(pair: Pair) -> None:
    """The follower hears nothing for a while, and its line is not closed."""
    pair.line.silence()
    await asyncio.sleep(HELD)  # what is acknowledged meanwhile is what it lacks


async def all_received(pair: Pair) -> None:
    """The primary is cut off from its clients, and all that it answered to them has reached its replica."""
    pair.address.silence()

    def same() -> bool:
        ours = ask(pair.primary, "INFO", "replication")["master_repl_offset"]
        return bool(ask(pair.follower, "INFO", "replication")["slave_repl_offset"] == ours)

    await until(same, "the replica to have everything")


@asynccontextmanager
async def redis_pair() -> AsyncGenerator[Pair, None]:
    """A Redis and its replica."""

    async def promote(replica: Server) -> None:
        redis_faults.promote(replica)

    with await asyncio.to_thread(lambda: start_redis(own=True)) as primary, _ways(primary) as (address, line):
        following = ("--replicaof", HOST, str(line.port), "--repl-diskless-sync-delay", "0")
        with await asyncio.to_thread(start_redis, *following) as replica:
            await until_following(replica)
            yield Pair(primary, replica, address, line, promote)


@asynccontextmanager
async def postgres_pair(*, synchronous: bool) -> AsyncGenerator[Pair, None]:
    """A PostgreSQL and its standby, which is waited for or not."""
    with (
        await asyncio.to_thread(lambda: start_postgres(own=True)) as primary,
        _ways(primary) as (address, line),
        await asyncio.to_thread(postgres_standby.start_standby, primary, line.port) as standby,
    ):
        if synchronous:
            await postgres_standby.wait_for_standby(primary)
        await postgres_standby.until_streaming(primary, synchronous=synchronous)
        yield Pair(primary, standby, address, line, postgres_standby.promote)


@contextmanager
def _ways(primary: Server) -> Generator[tuple[Proxy, Proxy], None, None]:
    [node] = primary.nodes
    with Proxy(HOST, node.port) as address, Proxy(HOST, node.port) as line:
        yield address, line


async def redis_replica(place: Place, seed: int, *, long: bool) -> Finding:
    """M10."""
    return await _promoted(
        place,
        seed,
        Mode(name="received", pair=redis_pair, harm=all_received),
        Mode(name="following", pair=redis_pair, harm=at_once, own_tokens=True),
        Mode(name="held behind", pair=redis_pair, harm=held_behind, own_tokens=True),
        long=long,
    )


async def postgres_standby_of(place: Place, seed: int, *, long: bool) -> Finding:
    """M11. The standby that is waited for is held behind, too: that it is waited for is the whole difference."""
    alone = partial(postgres_pair, synchronous=False)
    return await _promoted(
        place,
        seed,
        Mode(name="synchronous", pair=partial(postgres_pair, synchronous=True), harm=held_behind),
        Mode(name="asynchronous", pair=alone, harm=at_once, own_tokens=True),
        Mode(name="held behind", pair=alone, harm=held_behind, own_tokens=True),
        long=long,
    )


async def _promoted(place: Place, seed: int, strict: Mode, near: Mode, control: Mode, *, long: bool) -> Finding:
    rounds = range(seed, seed + (3 if long else 1))
    found: dict[str, Finding] = {}
    for mode in (strict, near, control):
        spot = replace(place, namespace="windlass", folder=place.folder / mode.name.replace(" ", "-"))
        findings = [await _once(mode, replace(spot, folder=spot.folder / f"{one}"), one, long=long) for one in rounds]
        found[mode.name] = Finding(
            fault=mode.name,
            report=together([finding.report for finding in findings]),
            missing=tuple(told for finding in findings for told in finding.missing),
        )
    missing = [f"{name}: {told}" for name, finding in found.items() for told in finding.missing]
    for mode in (near, control):
        # Who runs a job whose claim was lost learns of it with the next heartbeat; but all that is left must end.
        report = found[mode.name].report
        twice = _tokens_twice(report) if mode.own_tokens else []
        missing += [f"{mode.name}: {told}" for told in (*report.unfinished, *report.misjudged, *twice)]
    if not found[control.name].report.lost:
        missing.append("nothing was lost with a follower that was held behind: nothing was proved")
    return Finding(
        fault=NAME,
        report=found[strict.name].report,
        missing=tuple(missing),
        figures="; ".join(f"{name}: {_told(one.report)}" for name, one in found.items()),
    )


def _told(report: Report) -> str:
    twice = _tokens_twice(report)
    again = [f"{len(twice)} tokens twice"] if twice else []
    resumed = [f"resumed within {max(report.resume):.2f} s"] if report.resume else []
    return ", ".join([f"{len(report.lost)} of {report.acknowledged:,} lost", *again, *resumed])


def _tokens_twice(report: Report) -> list[str]:
    return [told for told in report.dup_in_lease if "ran twice" in told]


async def _once(mode: Mode, place: Place, seed: int, *, long: bool) -> Finding:
    async with mode.pair() as pair, Trial(replace(place, url=pair.url), seed=seed) as trial:
        await trial.ready(4 if long else 2)
        async with trial.producing(0.1):
            await acknowledged(trial, 400 if long else 40)
            strike(trial, NAME)
            await mode.harm(pair)
            await pair.fail_over()
            at = heal(trial, NAME)
            went_on = await resumed(trial, at)
        await trial.finished(60)
        return await found_by(NAME, trial, slow_to_resume, lambda _: [] if went_on else ["a worker did not resume"])
