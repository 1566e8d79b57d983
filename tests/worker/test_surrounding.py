"""Layers and stops: what happens around a handler that is told to end, or that runs elsewhere."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.apps import until_status, working
from tests.support.until import until
from tests.worker import handlers
from tests.worker.handlers import in_mode
from windlass import Ctx, Status, Windlass

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("mode", ["async", "thread"])
async def test_a_layer_that_hangs_ends_at_the_jobs_timeout(app: Windlass, when: str, mode: str) -> None:
    @app.around_run
    async def hangs(_: Ctx) -> AsyncIterator[None]:
        if when == "before":
            await asyncio.Event().wait()
        yield
        await asyncio.Event().wait()

    def work() -> None: ...

    async def later() -> None: ...

    job = app.job(name="job", timeout=0.2, retry=1)(later if mode == "async" else work)
    handle = await job.enqueue()
    async with working(app):
        found = await until_status(handle, Status.FAILED)
    assert found.error is not None
    assert found.error.type == "JobTimeout"


async def test_a_layer_cleans_up_after_a_handler_that_was_cancelled(app: Windlass) -> None:
    steps: list[str] = []

    @app.around_run
    def cleans(_: Ctx) -> Iterator[None]:
        try:
            yield
        except asyncio.CancelledError:
            steps.append("cancelled")
            raise
        finally:
            steps.append("clean")

    @app.job
    async def hold() -> None:
        await asyncio.Event().wait()

    handle = await hold.enqueue()
    async with working(app):
        await until_status(handle, Status.PROCESSING)
        await handle.cancel()
        await until_status(handle, Status.CANCELLED)
    assert steps == ["cancelled", "clean"]


async def test_what_a_stopping_worker_hands_back_spends_no_attempt_inside_layers(app: Windlass) -> None:
    inside = asyncio.Event()

    @app.around_run
    async def waits(_: Ctx) -> AsyncIterator[None]:
        inside.set()
        await asyncio.Event().wait()
        yield

    @app.job
    async def work() -> None: ...

    handle = await work.enqueue()
    async with working(app, grace=0.1):
        await inside.wait()
    job = await handle.job()
    assert (job.status, job.attempts) == (Status.QUEUED, 0)


async def test_layers_are_around_the_process_of_a_job(app: Windlass) -> None:
    seen: list[str] = []

    @app.around_run
    async def watches(ctx: Ctx) -> AsyncIterator[None]:
        try:
            yield
            seen.append(f"{ctx.job.type} fine in {os.getpid()}")
        except Exception as error:
            seen.append(f"{ctx.job.type} {error}")
            raise

    double, fail = in_mode(app, handlers.double, "process"), in_mode(app, handlers.fail, "process")
    await double.enqueue(2)
    handle = await fail.using(max_attempts=1).enqueue("boom")
    async with working(app):
        await until_status(handle, Status.FAILED, within=30)
        await until(lambda: len(seen) == 2, "both to have ended", within=30)
    assert sorted(seen) == [f"double fine in {os.getpid()}", "fail RuntimeError: boom"]
