"""The server goes away under load: what it kept is done, by one worker at a time, and work goes on soon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from tests.contract.invariants import check
from tests.faults.ledger import Trial
from tests.faults.one_server import WORKERS, under_load
from tests.faults.redis_faults import Faults, ask, promote, until_following
from tests.support.forwarder import Forwarder, forwarder
from tests.support.processes import HOST, Server
from tests.support.servers import start_redis
from tests.support.until import until
from windlass import Windlass
from windlass.core.status import Status

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("redis-faults")]
LONG_LEASE = 30.0
"""in seconds: until it is over, on however busy a machine, everything has happened"""

LATE = 2.0
"""seconds that `appendfsync everysec` may leave what it acknowledged out of its file, when the disk is slow"""
BEHIND = 1.0
"""seconds that a replica on the same host is behind at most"""
HELD = 1.5
"""seconds that a replica is kept from what its primary acknowledges, where it has to be behind"""


@contextmanager
def trial_on(url: str, folder: Path) -> Generator[Trial, None, None]:
    made = Trial(url, folder)
    try:
        yield made
    finally:
        made.stop_workers()


@contextmanager
def faults_of(*options: str) -> Generator[Faults, None, None]:
    with start_redis(*options, own=True) as server:
        found = Faults(server)
        try:
            yield found
        finally:
            found.thaw()


@pytest.mark.parametrize("fsync", ["always", "everysec"])
async def test_a_killed_server_has_what_its_file_has(tmp_path: Path, fsync: str, tell: Callable[[str], None]) -> None:
    with faults_of("--appendfsync", fsync) as faults, trial_on(faults.server.url, tmp_path) as trial:
        async with Windlass(trial.url) as client:
            struck = await under_load(trial, client, faults.kill, faults.until_it_answers)
            tell(f"kill -9, appendfsync {fsync}: {struck}")
            struck.insist()
            assert not trial.lost_before(struck.found, struck.at - LATE)
            if fsync == "always":
                struck.found.insist()
            assert all("redis.exceptions" not in told and "Errno" not in told for told in trial.refused)
            await check(client.store)


async def test_a_server_that_keeps_no_file_is_found_to_have_lost_jobs(
    tmp_path: Path, tell: Callable[[str], None]
) -> None:
    """The control: the same trial on a server without an append-only file must fail."""
    with faults_of("--appendonly", "no") as faults, trial_on(faults.server.url, tmp_path) as trial:
        async with Windlass(trial.url) as client:
            struck = await under_load(trial, client, faults.kill, faults.until_it_answers)
            tell(f"kill -9, control without a file: {struck}")
            assert len(struck.found.lost) > 20
            assert trial.lost_before(struck.found, struck.at - LATE)
            with pytest.raises(AssertionError):
                struck.found.insist()


FAULTS: dict[str, Callable[[Faults], Awaitable[None]]] = {
    "freeze": Faults.freeze,
    "forget_scripts": Faults.forget_scripts,
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_no_job_is_lost_when_the_server_stands_still_or_forgets_its_scripts(
    tmp_path: Path, fault: str, tell: Callable[[str], None]
) -> None:
    with faults_of() as faults, trial_on(faults.server.url, tmp_path) as trial:
        async with Windlass(trial.url) as client:
            struck = await under_load(trial, client, lambda: FAULTS[fault](faults), faults.until_it_answers)
            tell(f"{fault}: {struck}")
            struck.insist()
            struck.found.insist()
            await check(client.store)


async def test_no_job_fails_unrun_when_the_server_stands_still_longer_than_anyone_waits(tmp_path: Path) -> None:
    """What a claim took that its worker gave up is the worker's all the same: one lost lease would fail the job."""
    with faults_of() as faults, trial_on(f"{faults.server.url}?timeout=1", tmp_path) as trial:
        async with Windlass(faults.server.url) as client:  # the workers alone have so little patience
            for _ in range(2):
                trial.start_worker("--lease", "10m", "--heartbeat", "5s", "--concurrency", "20")
            await until(partial(trial.all_there, client), "both workers to be there", within=60)
            made = [client.enqueue("work", {"seconds": 0.1}, max_attempts=1, max_crashes=1) for _ in range(800)]
            ids = [handle.id for handle in await asyncio.gather(*made)]
            await trial.until_begun(100)
            await faults.freeze(4)

            async def all_ended() -> bool:
                return all(job is not None and job.status.finished for job in await client.store.views.get(ids))

            await until(all_ended, "all to end long before a lease does", within=90)
            ended = [job for job in await client.store.views.get(ids) if job is not None]
            assert {(job.status, job.crashes, job.attempts) for job in ended} == {(Status.SUCCEEDED, 0, 1)}
            assert sorted(run.id for run in trial.runs()) == sorted(ids)
            await check(client.store)


async def test_the_judge_finds_jobs_rescued_before_their_leases_are_over(
    tmp_path: Path, tell: Callable[[str], None]
) -> None:
    """The control: somebody beside windlass who does not ask for leases must be found out."""
    with faults_of() as faults, trial_on(faults.server.url, tmp_path) as trial:
        async with Windlass(trial.url) as client:
            # Few jobs and many slots: a worker that is free takes what was rescued, while the first still run.
            trial.lease = LONG_LEASE
            for _ in range(WORKERS):
                trial.start_worker("--concurrency", "20")
            await until(partial(trial.all_there, client), "every worker to be there", within=60)
            await trial.hold(client, 20)

            async def are_rescued() -> bool:
                assert faults.end_leases() == 20
                return bool(await client.store.jobs.rescue(20))

            # A heartbeat may come in between and put the leases right again.
            await until(are_rescued, "leases that are said to be over to be rescued")
            await trial.until_begun(21)
            trial.let_go()
            found = await trial.judged(client, within=60)
            tell(f"control, 20 leases said to be over: {found}")
            assert found.wrong


@dataclass
class Pair:
    """A primary, its replica, the address that leads to one of them, and the line between them."""

    primary: Server
    replica: Server
    address: Forwarder
    line: Forwarder

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.address.port}/0"

    async def fail_over(self) -> None:
        """The primary is lost, the replica promoted, and the address led to it, as a service or an operator does."""
        await asyncio.to_thread(self.primary.kill)
        self.line.cut()
        promote(self.replica)
        self.address.to = self.replica.nodes[0].port
        self.address.cut()

    async def fail_over_behind(self) -> None:
        """The same with a replica that has heard nothing for a while."""
        self.line.hold()
        await asyncio.sleep(HELD)  # what is acknowledged meanwhile is what it lacks
        await self.fail_over()

    async def able(self) -> float:
        assert ask(self.replica, "ROLE")[0] == b"master"
        return time.monotonic()


@asynccontextmanager
async def pair() -> AsyncGenerator[Pair, None]:
    with start_redis(own=True) as primary:
        port = primary.nodes[0].port
        async with forwarder(port) as address, forwarder(port) as line:
            following = ("--replicaof", HOST, str(line.port), "--repl-diskless-sync-delay", "0")
            with await asyncio.to_thread(start_redis, *following) as replica:
                await until_following(replica)
                yield Pair(primary, replica, address, line)


@pytest.mark.parametrize("behind", [False, True], ids=["following", "behind"])
async def test_a_promoted_replica_loses_only_what_it_had_not_received(
    tmp_path: Path, behind: bool, tell: Callable[[str], None]
) -> None:
    async with pair() as servers:
        with trial_on(servers.url, tmp_path) as trial:
            async with Windlass(trial.url) as client:
                fault = servers.fail_over_behind if behind else servers.fail_over
                struck = await under_load(trial, client, fault, servers.able)
                tell(f"replica promoted, {'behind' if behind else 'following'}: {struck}")
                assert not trial.lost_before(struck.found, struck.at - (0 if behind else BEHIND))
                assert not struck.found.unfinished
                assert not [told for told in struck.found.wrong if "a token ran twice" in told]
                if behind:
                    # Whoever runs a job whose claim is lost learns of it with the next heartbeat only.
                    assert struck.found.lost, "the control: what the replica never heard of is lost"
                else:
                    # A claim of the last moment may not have come to the replica, like any other write.
                    found, begun = struck.found, struck.found.forgotten
                    wrong = [told for told in found.wrong if begun.get(told, 0.0) < struck.at - BEHIND]
                    replace(struck, found=replace(found, wrong=wrong)).insist()
                await check(client.store)
