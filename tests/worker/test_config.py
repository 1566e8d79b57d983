"""What a worker is told: durations in either form, names that are none, and slips it tells of."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from tests.support.apps import Heard, ms, working
from tests.support.until import until
from windlass import SettingsError, Windlass
from windlass.core.events import WorkerStopped, WorkerWarned
from windlass.worker.config import WorkerConfig

SECOND = timedelta(seconds=1)


async def test_durations_are_seconds_or_timedeltas(app: Windlass) -> None:
    numbers = app.worker(lease=60, heartbeat=2.5, poll=0.5, grace=5, rescue=3).config
    spans = app.worker(
        lease=60 * SECOND, heartbeat=2.5 * SECOND, poll=0.5 * SECOND, grace=5 * SECOND, rescue=3 * SECOND
    ).config
    for name in ("lease", "heartbeat", "poll", "grace", "rescue"):
        assert getattr(numbers, name) == getattr(spans, name)
    assert (numbers.lease, numbers.grace) == (60 * SECOND, 5 * SECOND)


async def test_the_heartbeat_follows_the_lease_unless_it_is_given(
    app: Windlass, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert app.worker().config.heartbeat == 10 * SECOND
    assert app.worker(lease=60).config.heartbeat == 20 * SECOND
    assert app.worker(lease=1.5).config.heartbeat == 0.5 * SECOND
    assert app.worker(lease=60, heartbeat=5).config.heartbeat == 5 * SECOND
    monkeypatch.setenv("WINDLASS_HEARTBEAT_MS", "4000")
    outside = Windlass("sqlite://")
    assert outside.worker(lease=60).config.heartbeat == 4 * SECOND
    with pytest.raises(SettingsError, match="two heartbeats"):
        outside.worker(lease=5)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lease": "60"}, "a worker's lease is '60': give seconds or a timedelta"),
        ({"grace": -1}, "a worker's grace is -1: give seconds"),
        ({"exclude": "bad"}, "exclude is 'bad': expected a list of names"),
        ({"exclude": [1]}, r"exclude is \[1\]: expected a list of names"),
        ({"queues": "mail"}, "queues is 'mail': expected a list of names"),
        ({"weights": {"mail": 0}}, "queue 'mail' has the weight 0: expected 1 to 1000"),
        ({"weights": {"mail": 1.5}}, "queue 'mail' has the weight 1.5: expected 1 to 1000"),
        ({"weights": {"mail": 2}, "queues": ["post"]}, "queue 'mail' has a weight, but this worker consumes only post"),
        ({"max_stuck": 0}, "max_stuck is 0: expected a whole number from 1 on"),
        ({"concurrency": "20"}, "concurrency is '20': expected a whole number from 1 to 10000"),
        ({"concurrency": True}, "concurrency is True: expected a whole number from 1 to 10000"),
        ({"concurrency": 0}, "concurrency is 0: expected a whole number from 1 to 10000"),
        ({"queues": {"a": "x"}}, "queue 'a' has 'x' slots: expected a whole number from 1 to 10000"),
        ({"queues": {"a": 1.5}}, "queue 'a' has 1.5 slots: expected a whole number from 1 to 10000"),
        ({"queues": {"a": None, "b": 1}}, "queue 'a' has None slots: expected a whole number from 1 to 10000"),
        ({"queues": {1: 2}}, "the queue is 1: expected 1 to 200 printable characters"),
        ({"queues": 7}, "queues is 7: expected a list of names"),
        ({"weights": ["mail"]}, r"weights is \['mail'\]: expected queues with a number each"),
    ],
)
async def test_what_makes_no_sense_is_refused_with_a_reason(app: Windlass, given: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        app.worker(**given)


async def test_weights_reach_the_claim(app: Windlass) -> None:
    begun: Counter[str] = Counter()
    go = asyncio.Event()

    @app.job
    async def note(queue: str) -> None:
        begun[queue] += 1
        await go.wait()

    await app.enqueue_many(note.using(queue=queue).bind(queue) for queue in ("a", "b") for _ in range(6))
    async with working(app, weights={"a": 3}, concurrency=8):
        # As many as there are slots: nothing that ends early or begins late can change who is among them.
        await until(lambda: begun.total() == 8, "every slot to be taken")
        taken = dict(begun)
        go.set()
    assert taken == {"a": 6, "b": 2}


async def test_names_that_are_most_likely_slips_are_told_of_at_the_start(app: Windlass, heard: Heard) -> None:
    @app.job(queue="mail")
    async def send() -> None: ...

    await app.enqueue("elsewhere", queue="old")
    async with working(app, exclude=["sned", "send"], queues=["mail", "mial", "old"]):
        told = {event.about: event.text for event in heard.all(WorkerWarned)}
    assert told.keys() == {"exclude", "queues"}
    assert "'sned'" in told["exclude"]
    assert "'mial'" in told["queues"]


async def test_a_worker_that_has_not_begun_has_done_nothing(app: Windlass) -> None:
    assert app.worker().done == 0


async def test_too_many_stuck_threads_stop_the_worker_and_that_is_told(app: Windlass, heard: Heard) -> None:
    free = threading.Event()

    @app.job(timeout=ms(50), retry=1)
    def hang() -> None:
        free.wait(20)

    async with working(app, concurrency=3, max_stuck=2) as worker:
        await app.enqueue_many(hang.bind() for _ in range(2))
        await asyncio.wait_for(worker.wait(), 20)
        [warned] = heard.all(WorkerWarned)
        free.set()
    assert (warned.about, warned.text.split(":")[0]) == ("stuck", "2 of 3 slots are held by handlers that will not end")
    assert worker.recycled
    assert worker.gave_way_to_stuck
    assert heard.all(WorkerStopped)


async def test_a_coroutine_that_does_not_end_when_it_is_cancelled_counts_as_stuck(app: Windlass, heard: Heard) -> None:
    free = asyncio.Event()

    @app.job(timeout=ms(50), retry=1)
    async def deaf() -> None:
        while not free.is_set():
            with suppress(asyncio.CancelledError):
                await free.wait()

    async with working(app, concurrency=2, max_stuck=1, grace=0) as worker:
        await deaf.enqueue()
        try:
            await asyncio.wait_for(worker.wait(), 10)
        finally:
            free.set()
        [warned] = heard.all(WorkerWarned)
    assert (warned.about, warned.text.split(":")[0]) == ("stuck", "1 of 2 slots is held by a handler that will not end")
    assert worker.gave_way_to_stuck


def test_the_settings_of_a_worker_are_checked_however_it_is_made() -> None:
    with pytest.raises(SettingsError):
        WorkerConfig(max_jobs=0)
