"""Limits, rates and flows with real worker processes, one of which is killed in the middle."""

from __future__ import annotations

import signal

import pytest

from tests.control.conftest import Crew
from tests.control.gang import PER, Gang
from tests.support.template import Copy
from tests.support.until import until, until_sync
from windlass import Happened, Windlass

pytestmark = pytest.mark.timeout(120)
WORKER = ("worker", "tests.control.gang:app", "--lease", "1500ms", "--heartbeat", "300ms", "--poll", "200ms")


def workers(crew: Crew, n: int) -> list[Copy]:
    return [crew.begin("windlass", *WORKER) for _ in range(n)]


async def all_ended(app: Windlass, type_: str, n: int) -> None:
    async def ended() -> bool:
        return (await app.jobs.count(status="succeeded", type=type_)).n == n

    await until(ended, f"{n} of {type_} to end", within=45)


def most_at_once(crew: Crew, quay: str, killed: int) -> int:
    """How many of a quay ran at one moment, by the ledger; those of the killed process ended with it."""
    running: set[tuple[str, str]] = set()
    most = 0
    for what, pid, at, n, _ in (line for line in crew.ledger() if line[0] in ("begin", "end")):
        if at == quay and pid != str(killed):
            (running.add if what == "begin" else running.discard)((pid, n))
            most = max(most, len(running))
    return most


async def test_a_limit_holds_over_processes_and_is_freed_by_a_kill(app: Windlass, crew: Crew) -> None:
    gang = Gang(app)
    (crew.folder / "hold").touch()
    await app.enqueue_many(gang.unload.bind(quay, n) for n in range(8) for quay in ("north", "south"))
    processes = workers(crew, 3)
    until_sync(lambda: len(crew.ledger()) >= 4, "both quays to be busy", within=30)
    victim = next(process for process in processes if any(line[1] == str(process.pid) for line in crew.ledger()))
    victim.send_signal(signal.SIGKILL)
    victim.wait(10)
    (crew.folder / "hold").unlink()
    await all_ended(app, "unload", 16)
    assert [most_at_once(crew, quay, victim.pid) <= 2 for quay in ("north", "south")] == [True, True]
    jobs = (await app.jobs.find(type="unload", limit=100)).jobs
    # Not by their crashes: what was lost before its lease was confirmed counts none.
    happened = [entry.happened for job in jobs for entry in await app.jobs.history(job.id)]
    assert Happened.LOST in happened, "the kill hit something"


async def test_a_rate_holds_over_processes(app: Windlass, crew: Crew) -> None:
    gang = Gang(app)
    workers(crew, 3)
    await app.enqueue_many(gang.flash.bind(n) for n in range(30))
    await all_ended(app, "flash", 30)
    jobs = (await app.jobs.find(type="flash", limit=100)).jobs
    began = sorted(job.started_at.timestamp() for job in jobs if job.started_at is not None)
    for n, start in enumerate(began[5:]):
        assert start - began[n] >= PER.total_seconds() - 0.001, began


async def test_a_group_goes_on_once_with_many_processes(app: Windlass, crew: Crew) -> None:
    gang = Gang(app)
    workers(crew, 3)
    flows = [app.group([gang.unload.bind(f"quay {flow}", n) for n in range(6)]).then(gang.add) for flow in range(8)]
    handles = [await flow.enqueue() for flow in flows]
    assert [await handle.result(45) for handle in handles] == [15] * 8
    assert sum(line[0] == "added" for line in crew.ledger()) == 8
