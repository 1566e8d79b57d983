"""What happens when a worker process is killed, frozen or told to stop in the middle of its jobs."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import time
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.until import until
from windlass import Handle, Happened, Job, Status, Windlass

if TYPE_CHECKING:
    from tests.journeys.conftest import Journey
    from tests.support.template import Copy

pytestmark = pytest.mark.timeout(60)
LEASE = timedelta(milliseconds=900)


async def ended(app: Windlass, ids: list[str]) -> list[Job]:
    """The jobs once all have ended, until then nothing."""
    jobs = [await app.jobs.get(job_id) for job_id in ids]
    return jobs if all(job.status.finished for job in jobs) else []


async def confirmed(app: Windlass, ids: list[str]) -> bool:
    """Whether the leases of all these have been extended, which shows in their length."""
    jobs = [await app.jobs.get(job_id) for job_id in ids]
    return all(
        job.lease_expires_at is not None
        and job.started_at is not None
        and job.lease_expires_at - job.started_at > LEASE
        for job in jobs
    )


async def test_no_job_is_lost_when_a_worker_is_killed_with_jobs_in_flight(journey: Journey) -> None:
    async with journey.app() as app:
        held = [(await app.enqueue("hold", {"name": f"held{i}"})).id for i in range(8)]
        doomed = journey.worker("--concurrency", "8")
        journey.wait_until_begun(doomed, 8)
        queued = [(await app.enqueue("quick", {"name": f"quick{i}"})).id for i in range(200)]
        await until(lambda: confirmed(app, held), "the leases to be confirmed: only then does a crash count")
        doomed.kill()
        doomed.wait(10)
        killed_at = time.monotonic()

        heir = journey.worker("--concurrency", "20")
        journey.let_go(heir)
        jobs = await until(lambda: ended(app, held + queued), "every job ended", within=30)

        assert {job.status for job in jobs} == {Status.SUCCEEDED}
        assert time.monotonic() - killed_at < 0.9 + 0.2 + 0.2 + 10, "lease + rescue + poll, and a slow machine's start"
        for job in jobs[: len(held)]:
            assert (job.result, job.crashes, job.attempts) == (heir.pid, 1, 1)
            assert Happened.LOST in [entry.happened for entry in await app.jobs.history(job.id)]
        done = {words[1] for words in journey.ledger() if words[0] == "end"}
        assert done == {f"held{i}" for i in range(8)} | {f"quick{i}" for i in range(200)}


async def test_the_late_result_of_a_frozen_worker_is_refused(journey: Journey) -> None:
    async with journey.app() as app:
        job_id = (await app.enqueue("hold", {"name": "contested"})).id
        frozen = journey.worker()
        journey.wait_until_begun(frozen, 1)
        frozen.send_signal(signal.SIGSTOP)

        heir = journey.worker()
        journey.wait_until_begun(heir, 1)
        journey.let_go(heir)
        await until(lambda: ended(app, [job_id]), "the heir's end")

        journey.let_go(frozen)
        frozen.send_signal(signal.SIGCONT)

        async def refused() -> bool:
            return Happened.REFUSED in [entry.happened for entry in await app.jobs.history(job_id)]

        await until(refused, "the late result to be refused", within=15)
        job = await app.jobs.get(job_id)
        assert (job.status, job.result) == (Status.SUCCEEDED, heir.pid)
        assert job.crashes == 0, "it lives after all"
        tokens = [int(words[3]) for words in journey.ledger() if words[0] == "begin"]
        assert tokens == sorted(set(tokens)), "each run of the job had a larger token than the one before"


async def test_sigterm_lets_running_jobs_end_within_the_grace_period(journey: Journey) -> None:
    async with journey.app() as app:
        job_id = (await app.enqueue("hold", {"name": "patient"})).id
        worker = journey.worker("--grace", "30s")
        journey.wait_until_begun(worker, 1)
        later = (await app.enqueue("quick", {"name": "too late"})).id
        worker.send_signal(signal.SIGTERM)

        await until(lambda: _stopping(app), "the worker to say that it is stopping")
        journey.let_go(worker)
        assert worker.wait(10) == 0
        assert (await app.jobs.get(job_id)).status is Status.SUCCEEDED
        assert (await app.jobs.get(later)).attempts <= 1


@pytest.mark.parametrize("signals", [1, 2], ids=["after the grace period", "at the second signal"])
async def test_sigterm_hands_unfinished_jobs_back_without_spending_an_attempt(journey: Journey, signals: int) -> None:
    async with journey.app() as app:
        ids = [(await app.enqueue("hold", {"name": f"long{i}"})).id for i in range(5)]
        worker = journey.worker("--grace", "100ms" if signals == 1 else "60s")
        journey.wait_until_begun(worker, 5)
        asked = time.monotonic()
        worker.send_signal(signal.SIGTERM)
        if signals == 2:
            await until(lambda: _stopping(app), "the first signal to be taken")
            asked = time.monotonic()
            worker.send_signal(signal.SIGTERM)

        async def handed_back() -> bool:
            return all([(await app.jobs.get(job_id)).status is Status.QUEUED for job_id in ids])

        await until(handed_back, "the jobs to be queued again")
        assert time.monotonic() - asked < 1.1
        assert worker.wait(10) == 0
        for job_id in ids:
            job = await app.jobs.get(job_id)
            assert (job.attempts, job.crashes, job.worker_id) == (0, 0, None)
            assert [entry.happened for entry in await app.jobs.history(job_id)][-1] is Happened.RELEASED


async def test_a_handler_that_will_not_stop_cannot_keep_its_worker_from_ending(journey: Journey) -> None:
    async with journey.app() as app:
        job_id = (await app.enqueue("stubborn", {"name": "mule"})).id
        worker = journey.worker("--grace", "100ms")
        journey.wait_until_begun(worker, 1)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(15) == 0
        job = await app.jobs.get(job_id)
        assert (job.status, job.attempts, job.crashes) == (Status.QUEUED, 0, 0)
        assert ["refused", "mule", str(worker.pid), "0"] in journey.ledger()


async def _stopping(app: Windlass) -> bool:
    return any(one.stopping for one in await app.store.workers.list())


async def test_a_worker_with_drain_ends_when_nothing_is_due(journey: Journey) -> None:
    async with journey.app() as app:
        ids = [(await app.enqueue("quick", {"name": f"q{i}"})).id for i in range(50)]
        tomorrow = (await app.enqueue("quick", {"name": "tomorrow"}, delay=86_400)).id
        assert journey.worker("--drain").wait(30) == 0
        assert {(await app.jobs.get(job_id)).status for job_id in ids} == {Status.SUCCEEDED}
        assert (await app.jobs.get(tomorrow)).status is Status.SCHEDULED


async def test_a_file_survives_workers_that_are_killed_again_and_again(journey: Journey) -> None:
    async with journey.app() as app:
        ids = [handle.id for handle in await _many(app, 2_000)]
        for _ in range(4):
            worker = journey.worker("--concurrency", "50")
            before = len(journey.ledger())
            await until(lambda before=before: len(journey.ledger()) > before + 50, "some jobs to be done")  # type: ignore[misc]  # bound
            worker.kill()
            worker.wait(10)
        survivor = journey.worker("--concurrency", "50")
        jobs = await until(lambda: ended(app, ids), "every job ended", within=40)
        assert {job.status for job in jobs} == {Status.SUCCEEDED}
        survivor.terminate()
        assert survivor.wait(10) == 0
        assert not await app.store.schema.verify()
    with closing(sqlite3.connect(journey.folder / "jobs.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def _many(app: Windlass, n: int) -> list[Handle[Any]]:
    # Whatever was in flight counts as crashed each time; the same job may be hit by all four kills.
    return await asyncio.gather(*(app.enqueue("quick", {"name": f"q{i}"}, max_crashes=10) for i in range(n)))


async def test_of_a_batch_only_the_job_that_kills_its_worker_fails(journey: Journey) -> None:
    async with journey.app() as app:
        names = [f"row{n}" for n in range(10)] + ["poison"] + [f"row{n}" for n in range(10, 20)]
        ids = [(await app.enqueue("rows", name, max_crashes=2)).id for name in names]  # before any worker: unchecked
        jobs: list[Job] = []
        kills = 0
        while not jobs:
            worker = journey.worker()

            async def killed_or_ended(process: Copy = worker) -> bool:
                return process.poll() is not None or bool(await ended(app, ids))

            await until(killed_or_ended, "the worker to be killed, or every job to end", within=30)
            kills += worker.poll() == -signal.SIGKILL
            jobs = await ended(app, ids)
        statuses = {name: job.status for name, job in zip(names, jobs, strict=True)}
        assert [name for name, status in statuses.items() if status is not Status.SUCCEEDED] == ["poison"]
        poison = jobs[names.index("poison")]
        assert (poison.status, poison.crashes) == (Status.FAILED, 2)
        assert kills == 3, "the first one counts no crash: nobody had confirmed that the jobs had begun"
        assert max(int(words[1]) for words in journey.ledger() if words[0] == "call") == 21
