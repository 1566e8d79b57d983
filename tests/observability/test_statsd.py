"""StatsD over real UDP on loopback, and reporters of one's own."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from tests.support.apps import app_at
from tests.support.until import until
from windlass import SettingsError, StatsD, Windlass
from windlass.core.events import LoopAnswered, WorkerStopped
from windlass.observability.reporting import Reporting
from windlass.observability.statsd import LARGEST, MOST_TIMINGS


@pytest.fixture
def receiver() -> Generator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        made.bind(("127.0.0.1", 0))
        made.settimeout(10)
        yield made


def sender(receiver: socket.socket, **more: object) -> StatsD:
    return StatsD("127.0.0.1", receiver.getsockname()[1], **more)  # type: ignore[arg-type]  # any


def lines(receiver: socket.socket) -> list[str]:
    found = [receiver.recv(65536)]
    receiver.settimeout(0.2)  # on loopback what was sent is there
    try:
        while True:
            found.append(receiver.recv(65536))
    except TimeoutError:
        pass
    assert all(len(one) <= LARGEST for one in found)
    return [line for one in found for line in one.decode().split("\n")]


def test_figures_add_up_and_carry_their_tags(receiver: socket.socket) -> None:
    statsd = sender(receiver, prefix="my shop")
    for _ in range(3):
        statsd.increment("jobs.ended", 1, {"type": "send:mail|x\n#", "queue": "a/b"})
    statsd.gauge("depth", 7, {})
    statsd.gauge("depth", 5, {})
    statsd.gauge("change", -2, {})
    statsd.timing("job.run", 0.0125, {"type": "send"})
    statsd.close()
    assert lines(receiver) == [
        "my_shop.jobs.ended:3|c|#type:send_mail_x__,queue:a/b",
        "my_shop.depth:5|g",
        "my_shop.change:0|g",
        "my_shop.change:-2|g",
        "my_shop.job.run:12.5|ms|#type:send",
    ]


def test_without_tags_labels_are_parts_of_the_name(receiver: socket.socket) -> None:
    statsd = sender(receiver, tags="none", prefix="")
    statsd.increment("jobs.ended", 2, {"type": "mail.send", "outcome": "failed"})
    statsd.close()
    assert lines(receiver) == ["jobs.ended.mail_send.failed:2|c"]


def test_many_go_in_few_datagrams_and_of_very_many_timings_a_sample(receiver: socket.socket) -> None:
    statsd = sender(receiver)
    for n in range(500):
        statsd.increment(f"count{n}", 1, {"type": "x" * 50})
        statsd.timing("run", n / 1000, {})
    statsd.timings("wait", [n / 1000 for n in range(300)], {})
    statsd.timings("wait", [n / 1000 for n in range(100)], {})
    statsd.close()
    found = lines(receiver)
    waited = [line for line in found if ".wait:" in line]
    assert len(waited) == MOST_TIMINGS
    assert all(line.endswith("|ms|@0.25") for line in waited)
    timed = [line for line in found if ":run" in line or ".run:" in line]
    assert len([line for line in found if "count" in line]) == 500
    assert len(timed) == MOST_TIMINGS
    assert all(line.endswith("|ms|@0.2") for line in timed)


def test_a_server_that_is_gone_and_a_name_that_is_none_cost_nothing() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
        gone.bind(("127.0.0.1", 0))
        port = gone.getsockname()[1]
    for statsd in (StatsD("127.0.0.1", port), StatsD("nowhere.invalid")):
        for _ in range(3):
            statsd.increment("x", 1, {})
            statsd.flush()
        began = time.perf_counter()
        for _ in range(1000):
            statsd.timing("x", 1, {})
        assert time.perf_counter() - began < 0.5
        statsd.close()


def test_an_address_is_read_strictly() -> None:
    StatsD.of("udp://localhost:8125?prefix=shop&tags=none&rate=0.5").close()
    for wrong in (
        "tcp://localhost",
        "udp://",
        "udp://h:1?tags=some",
        "udp://h:1?x=1",
        "udp://h:99999",
        "udp://h?rate=2",
    ):
        with pytest.raises(SettingsError, match="expected udp://"):
            StatsD.of(wrong)


async def test_a_worker_reports_jobs_and_how_the_store_stands(tmp_path: Path, receiver: socket.socket) -> None:
    app = app_at(tmp_path / "jobs.db")
    statsd = sender(receiver)
    app.report_metrics(statsd)

    @app.job(queue="mail", retry=1)
    async def send(fails: bool) -> None:
        if fails:
            raise ValueError

    async with app:
        await send.enqueue(True)
        await send.enqueue(False)
        await app.worker(drain=True).run()
    statsd.close()
    text = "\n".join(lines(receiver))
    assert "windlass.jobs.ended:1|c|#type:send,queue:mail,outcome:failed" in text
    assert "windlass.jobs.ended:1|c|#type:send,queue:mail,outcome:succeeded" in text
    assert re.search(r"windlass\.job\.run:[0-9.]+\|ms\|#type:send,queue:mail", text)


async def test_the_worker_on_duty_reports_how_the_store_stands(tmp_path: Path) -> None:
    app = app_at(tmp_path / "jobs.db")
    gauges: dict[tuple[str, str | None], float] = {}

    class Reporter:
        def increment(self, name: str, value: float, tags: Mapping[str, str]) -> None:
            raise RuntimeError("broken")

        def gauge(self, name: str, value: float, tags: Mapping[str, str]) -> None:
            gauges[name, tags.get("queue")] = value

        def timing(self, name: str, seconds: float, tags: Mapping[str, str]) -> None: ...

    stop = app.report_metrics(Reporter())

    @app.job(queue="mail")
    async def send() -> None: ...

    async with app:
        await send.enqueue()
        await send.enqueue()
        async with app.worker(queues={"other": 1}):
            await until(lambda: ("jobs.dead", None) in gauges, "the store to be told of")
    stop()
    assert (gauges["queue.depth", "mail"], gauges["queue.processing", "mail"]) == (2, 0)
    assert gauges["queue.oldest_seconds", "mail"] >= 0
    assert app.client.beside == {}
    assert app.hub.silent


async def test_gauges_of_workers_are_those_of_all_of_them(tmp_path: Path) -> None:
    """A server keeps what it was told last: what one worker says of itself would hide the others."""
    app = app_at(tmp_path / "jobs.db")
    gauges: dict[str, list[float]] = defaultdict(list)

    class Reporter:
        def increment(self, name: str, value: float, tags: Mapping[str, str]) -> None: ...

        def gauge(self, name: str, value: float, tags: Mapping[str, str]) -> None:
            gauges[" ".join((name, *tags.values()))].append(value)

        def timing(self, name: str, seconds: float, tags: Mapping[str, str]) -> None: ...

    @app.job
    async def send() -> None: ...

    async def always() -> None: ...

    reporting = Reporting(Reporter(), app.registry)
    async with app, app.worker(queues={"other": 3}), app.worker(queues={"another": 4}):
        await until(lambda: both_known(app), "both workers to be known")
        for one in ("first", "second"):
            reporting(LoopAnswered(0.0, one, slots=9, busy=9, stuck=9, pushed=one == "first"))
        assert not gauges
        standing = asyncio.create_task(reporting.stand(app.queues, app.stats, app.workers, always, every=0.05))
        await send.using(queue="elsewhere").enqueue()
        await until(lambda: len(gauges["slots"]) > 1, "how they stand to be told of")
        assert {name: values[-1] for name, values in gauges.items()} == {
            "jobs.dead": 0, "slots": 7, "slots.busy": 0, "slots.stuck": 0, "notifier.healthy": 0,
        }  # fmt: skip
        reporting(WorkerStopped("second", 0, 0))
        await until(lambda: gauges["notifier.healthy"][-1] == 1, "the worker without push to be forgotten")
        standing.cancel()


async def test_only_while_it_is_on_duty_a_worker_reports_how_the_store_stands(tmp_path: Path) -> None:
    app = app_at(tmp_path / "jobs.db")
    told: list[str] = []
    asked, off, on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Reporter:
        def increment(self, name: str, value: float, tags: Mapping[str, str]) -> None: ...

        def gauge(self, name: str, value: float, tags: Mapping[str, str]) -> None:
            told.append(name)

        def timing(self, name: str, seconds: float, tags: Mapping[str, str]) -> None: ...

    async def on_duty() -> None:
        (asked if told else off).set()
        await on.wait()

    async with app:
        stand = Reporting(Reporter(), app.registry).stand(app.queues, app.stats, app.workers, on_duty, every=0.01)
        standing = asyncio.create_task(stand)
        await off.wait()
        assert told == []
        on.set()
        await until(lambda: "jobs.dead" in told, "how the store stands to be told of")
        on.clear()
        asked.clear()
        await asked.wait()
        before = len(told)
        await app.stats.read(max_age=0)
        assert len(told) == before
        standing.cancel()


async def both_known(app: Windlass) -> bool:
    return sum(one.slots for one in await app.workers.list()) == 7
