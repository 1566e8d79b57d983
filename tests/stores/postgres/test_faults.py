"""The server goes away under load: what was acknowledged is done, by one worker at a time, and work goes on soon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.faults.ledger import Trial
from tests.faults.one_server import WORKERS, under_load
from tests.faults.postgres_faults import Faults
from tests.support.servers import start_postgres
from tests.support.until import until
from windlass import Windlass

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("postgres-faults")]
LONG_LEASE = 30.0
"""in seconds: until it is over, on however busy a machine, everything has happened"""

HELD = 5.0
"""seconds that the old snapshot is held; the matrix holds one for a minute (M22)"""
AHEAD = 12_000
"""jobs waiting at least while it is"""
LASTS = 0.01
"""seconds that each of them takes, so that no worker outruns who feeds it: 40 slots do 4,000 a second"""


@pytest.fixture(scope="module")
def faults() -> Iterator[Faults]:
    # What was written without waiting for the disk must not get there by chance, or the control cannot bite.
    late = ("-c", "wal_writer_delay=10s", "-c", "wal_writer_flush_after=1GB")
    with start_postgres(*late, own=True) as server:
        found = Faults(server)
        yield found
        found.thaw()


@pytest.fixture
def schema(faults: Faults) -> str:
    faults.thaw()
    faults.start()
    return f"faults_{time.time_ns()}"


@pytest.fixture
def trial(faults: Faults, schema: str, tmp_path: Path) -> Iterator[Trial]:
    made = Trial(faults.url(schema), tmp_path)
    yield made
    faults.thaw()
    made.stop_workers()


async def rob(faults: Faults) -> None:
    for turn in range(3):
        if turn:
            await asyncio.sleep(1)  # in which connections are made anew
        assert await faults.rob() >= WORKERS


FAULTS: dict[str, Callable[[Faults], Awaitable[None]]] = {"kill": Faults.kill, "rob": rob, "freeze": Faults.freeze}


@pytest.mark.parametrize("fault", FAULTS)
async def test_no_acknowledged_job_is_lost_or_run_under_two_leases_when_the_server_goes(
    trial: Trial, faults: Faults, fault: str, tell: Callable[[str], None]
) -> None:
    async with Windlass(trial.url) as client:
        struck = await under_load(trial, client, lambda: FAULTS[fault](faults), faults.until_it_answers)
        tell(f"{fault}: {struck}")
        struck.insist()
        struck.found.insist()
        assert all("asyncpg" not in told and "Errno" not in told for told in trial.refused)


async def test_an_old_snapshot_held_open_harms_no_job(
    trial: Trial, faults: Faults, schema: str, tell: Callable[[str], None]
) -> None:
    async with Windlass(trial.url) as client:
        await trial.fill(client, AHEAD, LASTS)
        for _ in range(WORKERS):
            trial.start_worker("--concurrency", "20")
        await trial.until_all_resumed(0, within=60)
        over = asyncio.Event()

        async def feed() -> None:
            while not over.is_set():
                if len(trial.acknowledged) - len(trial.runs()) < AHEAD:
                    await trial.fill(client, 1000, LASTS)
                else:
                    await asyncio.sleep(0.05)  # there are enough for now

        async with asyncio.TaskGroup() as feeding:
            feeding.create_task(feed())
            await until(lambda: len(trial.runs()) >= AHEAD // 2, "the workers to be in full swing", within=60)
            async with faults.old_snapshot(schema):
                begun = time.monotonic()
                await asyncio.sleep(HELD)  # the subject: jobs beside a snapshot that grows old
                ends = time.monotonic()
                waiting = len(trial.acknowledged) - len(trial.runs())
            over.set()

        early = sum(begun <= run.begun < begun + HELD / 4 for run in trial.runs()) / (HELD / 4)
        late = sum(ends - HELD / 4 <= run.begun < ends for run in trial.runs()) / (HELD / 4)
        found = await trial.judged(client, within=60)
        tell(
            f"old snapshot: {found}, {early:,.0f} jobs/s in the first {HELD / 4:g} s, {late:,.0f} in the last: ratio"
            f" {late / early:.2f}; {waiting} waiting then"
        )
        found.insist()
        assert waiting > 0, "the workers ran dry, so the rates say nothing"


async def test_the_judge_finds_jobs_rescued_before_their_leases_are_over(
    trial: Trial, faults: Faults, schema: str, tell: Callable[[str], None]
) -> None:
    """The control: somebody beside windlass who does not ask for leases must be found out."""
    async with Windlass(trial.url) as client:
        # Few jobs and many slots: a worker that is there and free takes what was rescued, while the first still run.
        trial.lease = LONG_LEASE
        for _ in range(WORKERS):
            trial.start_worker("--concurrency", "20")
        await until(partial(trial.all_there, client), "every worker to be there", within=60)
        await trial.hold(client, 20)
        taken = await faults.rescue_without_asking(schema)
        await trial.until_begun(21)
        trial.let_go()
        found = await trial.judged(client, within=60)
        tell(f"control, {taken} rescued without asking: {found}")
        assert taken
        assert found.wrong
        with pytest.raises(AssertionError, match="began"):
            found.insist()


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "control"])
async def test_only_what_waited_for_the_disk_survives_a_crash(
    trial: Trial, faults: Faults, durable: bool, tell: Callable[[str], None]
) -> None:
    """The control enqueues with synchronous_commit off, and must be found to have lost jobs."""
    url = trial.url if durable else f"{trial.url}&synchronous_commit=off"
    async with Windlass(trial.url) as client:
        await trial.fill(client, 1, 0)  # so that the tables themselves are durable
    async with Windlass(url) as client:
        async with trial.producing(client, producers=4, pause=0.005, seconds=0):
            await until(lambda: len(trial.acknowledged) > 50, "enough jobs to be acknowledged", within=60)
            await faults.kill()
        found = await client.store.views.get(list(trial.acknowledged))
        lost = sum(job is None for job in found)
        tell(f"crash, {'durable' if durable else 'control'}: {len(found)} acknowledged, lost {lost}")
        assert len(found) > 20
        assert lost == 0 if durable else lost > 0
