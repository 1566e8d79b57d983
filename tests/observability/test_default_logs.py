"""What an application logs when nobody has set anything up: to the standard tree, without handlers of its own."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.apps import app_at, until_status
from windlass import Cancel, Logs, Status, Windlass
from windlass.core.events import Event, JobsPruned, StoreTroubled
from windlass.observability.lines import TRACE
from windlass.observability.logs import FACTS

SCRIPT = """
import asyncio
from windlass import Windlass

app = Windlass("sqlite:///jobs.db")

@app.job(retry=1)
async def boom() -> None:
    raise ValueError("no good\\x1b[2J\\nerror forged")

@app.job
async def fine() -> None: ...

async def main() -> None:
    await boom.enqueue()
    await fine.enqueue()
    await app.worker(drain=True).run()

asyncio.run(main())
"""


@pytest.fixture
def app(tmp_path: Path) -> Windlass:
    app = app_at(tmp_path / "jobs.db")

    @app.job(retry=1)
    async def boom() -> None:
        raise ValueError("no good")

    @app.job
    async def fine() -> None: ...

    return app


async def work(app: Windlass, *names: str) -> None:
    async with app:
        for name in names:
            await app.enqueue(name)
        await app.worker(drain=True).run()


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    return [(one.name, one.levelname, one.getMessage().split()[0]) for one in caplog.records]


async def test_a_failed_job_is_logged_by_default_and_one_that_succeeds_is_not(
    app: Windlass, caplog: pytest.LogCaptureFixture
) -> None:
    await work(app, "boom", "fine")
    assert lines(caplog) == [("windlass.jobs", "ERROR", "failed")]
    assert "ValueError: no good" in caplog.text


async def test_a_job_that_its_handler_cancels_or_that_is_handed_back_is_told_at_the_usual_level(
    app: Windlass, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="windlass")

    @app.job
    async def needless() -> None:
        raise Cancel("no need")

    @app.job
    async def endless() -> None:
        await asyncio.Event().wait()

    async with app:
        await needless.enqueue()
        held = await endless.enqueue()
        async with app.worker(grace=0.01):
            await until_status(held, Status.PROCESSING)
    assert sorted(one[2] for one in lines(caplog) if one[0] == "windlass.jobs") == ["cancelled", "released"]


async def test_each_line_of_what_a_worker_does_says_which_one_it_is(
    app: Windlass, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(TRACE, logger="windlass")

    @app.job
    async def stand() -> None:
        time.sleep(1.3)  # a loop that stands still is the subject: its line is of another thread

    @app.job
    def enqueue() -> None:
        app.enqueue_sync("fine")

    async with app:
        await app.enqueue("fine", delay=0.01)
        await stand.enqueue()
        await enqueue.enqueue()
        caplog.clear()
        worker = app.worker(drain=True)
        await worker.run()
    told = {record.__dict__[FACTS][1]["event"]: record.__dict__[FACTS][1].get("worker") for record in caplog.records}
    assert told.keys() >= {"worker.started", "worker.blocked", "store.called", "jobs.promoted", "job.enqueued"}
    assert set(told.values()) == {worker.id}


async def test_at_debug_there_is_a_line_for_each_move(app: Windlass, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="windlass")
    await work(app, "fine")
    found = lines(caplog)
    assert ("windlass.worker", "INFO", "ready") in found
    assert [one[2] for one in found if one[0] == "windlass.jobs"] == ["enqueued", "claimed", "started", "succeeded"]


async def test_a_logger_can_be_silenced_as_any_other(app: Windlass, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="windlass")
    await work(app, "boom")
    assert caplog.records == []


def test_the_hot_path_is_silent_unless_somebody_would_see_its_lines(
    app: Windlass, caplog: pytest.LogCaptureFixture
) -> None:
    found = [app.hub.silent]
    caplog.set_level(logging.DEBUG, logger="windlass")
    found.append(app.hub.silent)
    caplog.set_level(logging.INFO, logger="windlass.jobs")
    found.append(app.hub.silent)
    stop = app.listen(lambda _: None)
    found.append(app.hub.silent)
    stop()
    found.append(app.hub.silent)
    assert found == [True, False, True, False, True]


def test_logs_of_ones_own_stand_in_for_the_default(app: Windlass, caplog: pytest.LogCaptureFixture) -> None:
    trouble = StoreTroubled("claim", "gone")
    first, second = app.listen(Logs()), app.listen(Logs(logging.getLogger("shop")))
    app.hub.tell(trouble)
    assert [one.name for one in caplog.records] == ["windlass.worker", "shop.worker"]
    first()
    first()
    app.hub.tell(trouble)
    assert [one.name for one in caplog.records][2:] == ["shop.worker"]
    second()
    app.hub.tell(trouble)
    assert [one.name for one in caplog.records][3:] == ["windlass.worker"]


def test_lines_of_a_worker_cost_nothing_for_jobs_that_go_well(app: Windlass, caplog: pytest.LogCaptureFixture) -> None:
    app.listen(Logs(logging.getLogger("shop")))
    caplog.set_level(logging.DEBUG, logger="windlass")
    caplog.set_level(logging.INFO, logger="shop")
    found = [app.hub.silent]
    caplog.set_level(logging.DEBUG, logger="shop")
    assert [*found, app.hub.silent] == [True, False]


def test_another_listener_leaves_the_default_alone(app: Windlass, caplog: pytest.LogCaptureFixture) -> None:
    app.listen(lambda _: None)
    app.hub.tell(JobsPruned(1))
    app.hub.tell(StoreTroubled("claim", "gone\nerror forged"))
    assert lines(caplog) == [("windlass.worker", "WARNING", "store-trouble")]
    assert "\n" not in caplog.records[0].getMessage()


def test_in_a_program_without_any_logging_it_comes_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "shop.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    [line] = done.stderr.splitlines()
    assert line.startswith("failed boom ")
    assert "ValueError: no good" in line
    assert "\x1b" not in line
    assert done.stdout == ""


def test_a_listener_that_raises_is_logged_once(app: Windlass, caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> None:
        raise ValueError("no")

    app.listen(broken)
    for _ in range(2):
        app.hub.tell(JobsPruned(3))
    [told] = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert told.name == "windlass.worker"
    assert told.getMessage() == f"hook {__name__}.{broken.__qualname__}: it raised ValueError: no (told once)"


def test_no_handler_is_ever_added(app: Windlass) -> None:
    for name in ("windlass", "windlass.jobs", "windlass.worker"):
        assert logging.getLogger(name).handlers == []
