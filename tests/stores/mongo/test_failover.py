"""The primary goes away under load: what was acknowledged is done, by one worker at a time, and work goes on soon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.ledger import Trial
from tests.faults.mongo_failover import ReplicaSet, found_in_control, written_with_w1
from tests.support.processes import Node
from tests.support.servers import start_mongo
from tests.support.until import until
from windlass import Windlass

pytestmark = [pytest.mark.timeout(150), pytest.mark.xdist_group("mongo-failover")]

WORKERS = 4
FEW, MANY = 8, 200
"""slots of a worker; with many it claims twice at once while there is plenty to do"""
JOBS = {FEW: (400, 0.3), MANY: (4_000, 1.0)}
"""how many are enqueued before the fault, so that no worker runs dry, and the seconds that each takes"""
RESUMED_WITHIN = 5.0
"""seconds from the first durable write that the new primary takes until every worker has begun a job"""


@pytest.fixture(scope="module")
def members() -> Iterator[ReplicaSet]:
    with start_mongo(members=3, own=True) as server:
        replica = ReplicaSet(server)
        yield replica
        replica.thaw()


@pytest.fixture
def trial(members: ReplicaSet, tmp_path: Path) -> Iterator[Trial]:
    members.heal()
    made = Trial(members.url(f"failover_{time.time_ns()}"), tmp_path)
    yield made
    members.thaw()
    made.stop_workers()


def depose(replica: ReplicaSet, node: Node) -> None:
    replica.step_down(node)


def kill(replica: ReplicaSet, node: Node) -> None:
    node.kill()


def freeze(replica: ReplicaSet, node: Node) -> None:
    replica.freeze(node)


@pytest.mark.parametrize(
    ("fault", "slots"),
    [(depose, FEW), (kill, FEW), (freeze, FEW), (kill, MANY)],
    ids=["depose", "kill", "freeze", "kill with many slots"],
)
async def test_no_acknowledged_job_is_lost_or_run_under_two_leases_when_the_primary_goes(
    trial: Trial,
    members: ReplicaSet,
    fault: Callable[[ReplicaSet, Node], None],
    slots: int,
    tell: Callable[[str], None],
) -> None:
    waiting, seconds = JOBS[slots]
    async with Windlass(trial.url) as client:
        await trial.fill(client, waiting, seconds)
        for _ in range(WORKERS):
            trial.start_worker("--concurrency", str(slots))
        await trial.until_all_resumed(0, within=60)

        async with trial.producing(client, producers=4, pause=0.2, seconds=0.3):
            await until(lambda: len(trial.acknowledged) > waiting + 10, "producers to be at work")
            old = members.wait_for_primary()
            struck = time.monotonic()
            await asyncio.to_thread(fault, members, old)
            await asyncio.to_thread(members.wait_for_primary, other_than=old)
            elected = time.monotonic()
            # After a freeze the third member may follow the old primary for a while, and nothing can be acknowledged.
            await asyncio.to_thread(members.wait_for_durable_writes)
            able = time.monotonic()
            resumed = await trial.until_all_resumed(elected, within=40)
            acknowledged_then = len(trial.acknowledged)
            members.thaw()  # a frozen one wakes and finds that it leads no more
            await asyncio.sleep(1)  # the time in which it could still do harm

        found = await trial.judged(client, within=60)
        tell(
            f"{fault.__name__}, {slots} slots: {found}, elected after {elected - struck:.2f} s, took durable writes"
            f" {able - elected:.2f} s later, workers resumed"
            f" {', '.join(f'{seconds:.2f}' for seconds in sorted(resumed.values()))} s after the election"
        )
        found.insist()
        assert len(trial.acknowledged) > acknowledged_then, "producers went on under the new primary"
        assert all("pymongo" not in told and "ServerDescription" not in told for told in trial.refused)
        assert max(resumed.values()) - (able - elected) < RESUMED_WITHIN, trial.logs()


async def test_what_one_member_alone_has_seen_is_never_acknowledged(
    trial: Trial, members: ReplicaSet, tell: Callable[[str], None]
) -> None:
    """The others die, then the primary, and the others come back. The control writes with w:1 to the primary alone."""
    async with Windlass(trial.url) as client:
        await client.enqueue("work", {"seconds": 0})
        old = members.wait_for_primary()
        control = f"control_{time.time_ns()}"
        async with trial.producing(client, producers=4, pause=0.02, seconds=0):
            await until(lambda: len(trial.acknowledged) > 10, "producers to be at work")
            before = len(trial.acknowledged)
            others = members.others(old)
            for other in others:  # killed, not frozen: what was sent to a frozen one waits in its socket
                other.kill()
            control_acknowledged = await asyncio.to_thread(written_with_w1, old, control, 1.0)
            old.kill()
            for other in others:
                await asyncio.to_thread(other.start)
            new = await asyncio.to_thread(members.wait_for_primary, other_than=old)
            acknowledged_then = len(trial.acknowledged)
            await until(lambda: len(trial.acknowledged) > acknowledged_then, "producers to go on", within=30)
        kept = await asyncio.to_thread(found_in_control, new, control)
        found = await client.store.views.get(list(trial.acknowledged))
        lost = [job_id for job_id, job in zip(trial.acknowledged, found, strict=True) if job is None]
        bitten = len(control_acknowledged) - len(kept)
        tell(
            f"one member alone: windlass {len(trial.acknowledged)} acknowledged ({before} before), lost {len(lost)},"
            f" refused {len(trial.refused)}; control with w:1 {len(control_acknowledged)} acknowledged, lost {bitten}"
            f"{'' if bitten else ' (the control did not bite)'}"
        )
        assert len(trial.acknowledged) > before > 0
        assert not lost
