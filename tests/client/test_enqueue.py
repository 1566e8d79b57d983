from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.apps import app_at, ms, working
from windlass import (
    Bound,
    Ctx,
    DuplicateJob,
    Handler,
    HandlerError,
    HandlerExists,
    HandlerNotFound,
    JobFunction,
    Limit,
    PayloadInvalid,
    QueueFull,
    SettingsError,
    Status,
    Unique,
    Windlass,
)


def define(app: Windlass) -> JobFunction[..., str]:
    @app.job(queue="mail")
    async def send(order_id: int) -> str:
        return f"sent {order_id}"

    return send


def commits(path: Path) -> int:
    """How many transactions the log has seen: each commit is one frame with a commit mark, kept until a checkpoint."""
    log = Path(f"{path}-wal").read_bytes()
    page = int.from_bytes(log[8:12], "big")
    frames = range(32, len(log), 24 + page)
    return sum(1 for at in frames if int.from_bytes(log[at + 4 : at + 8], "big"))


async def test_arguments_are_checked_against_the_handlers_types(app: Windlass) -> None:
    send = define(app)
    for wrong in ("many", None, [1]):
        with pytest.raises(PayloadInvalid):
            await send.enqueue(wrong)
    with pytest.raises(PayloadInvalid):
        await send.enqueue(1, 2)
    assert (await app.jobs.count()).n == 0


async def test_what_is_enqueued_is_what_is_stored(app: Windlass) -> None:
    handle = await define(app).enqueue(42)
    job = await handle.job()
    assert handle.created
    assert (job.type, job.queue, job.payload, job.status) == ("send", "mail", {"order_id": 42}, Status.QUEUED)
    assert (job.priority, job.max_attempts, job.max_crashes, job.timeout) == (100, 5, 3, timedelta(hours=1))


async def test_every_option_lands_on_the_job(app: Windlass) -> None:
    send = define(app)
    at = datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)
    handle = await send.using(
        at=at,
        priority="high",
        queue="vip",
        max_attempts=3,
        max_crashes=2,
        timeout=7,
        user="u1",
        entity=("order", 42),
        correlation="c1",
        tags=["a", "b"],
        metadata={"k": [1]},
        limit=Limit("mailer", 4),
        unique="receipt:42",
    ).enqueue(42)
    job = await handle.job()
    assert (job.run_at, job.status, job.priority, job.queue) == (at, Status.SCHEDULED, 50, "vip")
    assert (job.max_attempts, job.max_crashes, job.timeout) == (3, 2, timedelta(seconds=7))
    assert (job.user_id, job.entity_name, job.entity_id, job.correlation_id) == ("u1", "order", "42", "c1")
    assert (job.tags, job.metadata, job.limit_key, job.limit) == (("a", "b"), {"k": [1]}, "mailer", 4)
    assert (job.unique_queued, job.unique_running) == ("receipt:42", "receipt:42")


async def test_a_delay_counts_from_the_stores_now(app: Windlass) -> None:
    job = await (await define(app).using(delay=60).enqueue(1)).job()
    assert (job.run_at - job.created_at, job.status) == (timedelta(seconds=60), Status.SCHEDULED)


async def test_using_is_laid_over_and_leaves_the_handler_as_it_was(app: Windlass) -> None:
    send = define(app)
    high = send.using(priority="high", user="u1")
    both = high.using(user="u2")
    jobs = [await (await one.enqueue(1)).job() for one in (send, high, both)]
    assert [(job.priority, job.user_id, job.queue) for job in jobs] == [
        (100, None, "mail"),
        (50, "u1", "mail"),
        (50, "u2", "mail"),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"priority": "urgent"},
        {"queue": ""},
        {"delay": -1},
        {"delay": 1, "at": datetime(2099, 1, 1, tzinfo=UTC)},
        {"at": datetime(2099, 1, 1)},  # noqa: DTZ001  # the point
        {"entity": "order"},
        {"tags": ["x"] * 33},
        {"max_attempts": 0},
        {"timeout": 0},
        {"colour": "red"},
    ],
)
def test_an_option_that_makes_no_sense_is_refused_at_once(wrong: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        define(Windlass("sqlite://")).using(**wrong)  # type: ignore[arg-type]  # the point


async def test_bound_jobs_are_equal_when_they_would_enqueue_the_same(app: Windlass) -> None:
    send = define(app)
    assert send.bind(42) == send.bind(order_id=42)
    assert send.bind(42) != send.bind(43)
    assert send.bind(42) != send.using(priority="high").bind(42)
    assert len({send.bind(1), send.bind(1), send.bind(2)}) == 2


async def test_many_are_enqueued_in_order_and_run_in_order(app: Windlass) -> None:
    ran: list[int] = []

    @app.job
    async def note(n: int) -> None:
        ran.append(n)

    handles = await app.enqueue_many(note.bind(n) for n in range(2_500))
    assert [handle.created for handle in handles] == [True] * 2_500
    assert [handle.id for handle in handles] == sorted(handle.id for handle in handles)
    assert (await handles[1234].job()).payload == {"n": 1234}
    async with working(app, drain=True, concurrency=1000) as worker:
        await worker.wait()
    assert ran == list(range(2_500))


async def test_others_get_on_while_many_are_made(app: Windlass) -> None:
    send = define(app)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    seen: list[int] = []

    def made() -> Iterator[Bound[str]]:
        for n in range(900):
            seen.append(turns)
            yield send.bind(n)

    busy = asyncio.create_task(other())
    await app.enqueue_many(made())
    busy.cancel()
    assert len(set(seen)) >= 9, "at least once for every hundred"


async def test_each_of_many_gets_its_own_verdict(app: Windlass) -> None:
    @app.job(unique="n:{n}")
    async def note(n: int) -> None: ...

    handles = await app.enqueue_many(note.bind(n) for n in (1, 2, 1, 3, 2))
    assert [handle.created for handle in handles] == [True, True, False, True, False]
    assert (handles[2].id, handles[4].id) == (handles[0].id, handles[1].id)
    assert await app.enqueue_many([]) == []


async def test_a_job_can_be_enqueued_by_name_where_its_handler_is_known(app: Windlass) -> None:
    define(app)
    handle = await app.enqueue("send", {"order_id": 42}, priority="low")
    job = await handle.job()
    assert (job.payload, job.queue, job.priority) == ({"order_id": 42}, "mail", 200)
    with pytest.raises(PayloadInvalid):
        await app.enqueue("send", {"order_id": "many"})
    with pytest.raises(PayloadInvalid):
        await app.enqueue("send")


async def test_a_job_can_be_enqueued_by_name_where_nobody_knows_its_handler(app: Windlass) -> None:
    job = await (await app.enqueue("far.away", {"x": [1, {"y": None}]}, queue="q")).job()
    assert (job.type, job.queue, job.payload) == ("far.away", "q", {"x": [1, {"y": None}]})
    with pytest.raises(PayloadInvalid):
        await app.enqueue("far.away", {"x": object()})
    with pytest.raises(SettingsError):
        await app.enqueue("", {})


async def test_a_job_without_parameters_needs_no_payload_by_name(app: Windlass) -> None:
    @app.job
    async def tick() -> None: ...

    for name in (tick.name, "unknown.tick"):
        assert (await (await app.enqueue(name)).job()).payload == {}


@dataclass
class Shift:
    worker: str
    hours: int = 8


class Remind(Handler[Shift, str], name="remind", queue="notifications", retry=2, max_attempts=4):
    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    async def perform(self, data: Shift) -> str:
        return f"{self.greeting} {data.worker}, {data.hours} h"


class Plain(Handler[int, int]):
    def perform(self, data: int) -> int:
        return data + 1


async def test_class_handlers_take_their_data_whole(app: Windlass) -> None:
    remind, plain = app.add(Remind("Good morning")), app.add(Plain)
    async with working(app):
        assert await (await remind.enqueue(Shift("Ada"))).result(10) == "Good morning Ada, 8 h"
        assert await (await app.enqueue(Remind, Shift("Bob", 4))).result(10) == "Good morning Bob, 4 h"
        assert await (await app.enqueue("remind", {"worker": "Cy"})).result(10) == "Good morning Cy, 8 h"
        assert await (await plain.enqueue(1)).result(10) == 2
    job = (await app.jobs.find(type="remind", limit=1)).jobs[0]
    assert (job.queue, job.max_attempts) == ("notifications", 4)


async def test_a_class_that_needs_arguments_is_added_as_an_instance(app: Windlass) -> None:
    with pytest.raises(HandlerError, match="instance"):
        app.add(Remind)


async def test_handlers_are_named_once_and_known_by_name(app: Windlass) -> None:
    define(app)
    with pytest.raises(HandlerExists):
        define(app)
    other = Windlass("sqlite://")
    async with other:
        with pytest.raises(HandlerNotFound):
            await other.enqueue_many([define(app_at(Path("unused.db"))).bind(1)])


async def test_a_duplicate_gives_the_job_already_there(app: Windlass) -> None:
    send = define(app)
    first = await send.using(unique="k").enqueue(1)
    second = await send.using(unique="k").enqueue(2)
    assert (second.id, second.created) == (first.id, False)
    assert (await second.job()).payload == {"order_id": 1}


async def test_a_duplicate_raises_where_that_was_asked_for(app: Windlass) -> None:
    send = define(app).using(unique="k", on_conflict="raise")
    first = await send.enqueue(1)
    with pytest.raises(DuplicateJob) as caught:
        await send.enqueue(2)
    assert (caught.value.existing, caught.value.key) == (first.id, "k")


async def test_a_replacing_duplicate_takes_the_waiting_jobs_place(app: Windlass) -> None:
    send = define(app).using(unique="k", on_conflict="replace", delay=60)
    first = await send.enqueue(1)
    second = await send.using(delay=120).enqueue(2)
    assert (second.id, second.created) == (first.id, False)
    job = await second.job()
    assert (job.payload, (job.run_at - job.updated_at).total_seconds()) == ({"order_id": 2}, 120)


async def test_idempotent_enqueues_are_told_apart_by_content(app: Windlass) -> None:
    send = define(app).using(idempotent=True)
    first, again, other = await send.enqueue(1), await send.enqueue(order_id=1), await send.enqueue(2)
    assert (again.id, again.created, other.created) == (first.id, False, True)
    await app.jobs.cancel(first.id)
    assert (await send.enqueue(1)).id == first.id, "an end does not forget it"
    window = define(app_at(Path(app.url.removeprefix("sqlite:///").partition("?")[0]))).using(idempotent=ms(1))
    assert window.bind(1).options.idempotency_window == ms(1)


async def test_two_keys_guard_waiting_and_running_apart(app: Windlass) -> None:
    send = define(app).using(unique=Unique(queued="q", running="r"))
    job = await (await send.enqueue(1)).job()
    assert (job.unique_queued, job.unique_running) == ("q", "r")


async def test_a_full_queue_refuses(app: Windlass) -> None:
    send = define(app)
    await app.queues.limit_depth("mail", 1)
    await send.enqueue(1)
    with pytest.raises(QueueFull) as caught:
        await send.enqueue(2)
    assert (caught.value.queue, caught.value.depth) == ("mail", 1)


async def test_enqueues_at_the_same_moment_share_transactions(app: Windlass, path: Path) -> None:
    send = define(app)
    await send.enqueue(0)
    before = commits(path)
    handles = await asyncio.gather(*(send.enqueue(n) for n in range(200)))
    assert commits(path) - before <= 10
    assert len({handle.id for handle in handles}) == 200
    before = commits(path)
    for n in range(5):
        await send.enqueue(n)
    assert commits(path) - before == 5, "one after the other, each has its own"


async def test_an_enqueue_returns_only_when_its_job_is_there_for_others(app: Windlass, path: Path) -> None:
    send = define(app)

    async def one(n: int) -> bool:
        handle = await send.enqueue(n)
        with closing(sqlite3.connect(path)) as other:
            found = other.execute("SELECT count(*) FROM windlass_jobs WHERE id = ?", (handle.id,)).fetchone()
        return bool(found[0])

    assert all(await asyncio.gather(*(one(n) for n in range(50))))


async def test_one_bad_enqueue_does_not_take_its_neighbours_down(app: Windlass) -> None:
    send = define(app).using(unique="k", on_conflict="raise")
    plain = define_other(app)
    found = await asyncio.gather(
        *(send.enqueue(n) for n in range(3)), *(plain.enqueue(n) for n in range(3)), return_exceptions=True
    )
    assert sum(isinstance(one, DuplicateJob) for one in found) == 2
    assert (await app.jobs.count()).n == 4


def define_other(app: Windlass) -> JobFunction[[int], None]:
    @app.job
    async def other(n: int) -> None: ...

    return other


def test_plain_threads_enqueue_without_a_loop(path: Path) -> None:
    before = set(threading.enumerate())
    app = app_at(path)
    send = define(app)
    ids: list[str] = []

    def work(n: int) -> None:
        ids.extend(send.enqueue_sync(n * 100 + m).id for m in range(10))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    by_name = app.enqueue_sync("elsewhere", {"x": 1})
    assert len(set(ids)) == 80
    began = [thread.name for thread in set(threading.enumerate()) - before]
    assert began.count("windlass-blocking") == 1, "however many threads began it"
    app.close()
    app.close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM windlass_jobs").fetchone() == (81,)
    assert by_name.created
    left = set(threading.enumerate()) - before
    assert not [thread.name for thread in left if thread.name.startswith("windlass")]


async def test_synchronous_code_inside_a_running_loop_enqueues_too(app: Windlass) -> None:
    send = define(app)
    handle = send.enqueue_sync(42)
    assert (await handle.job()).payload == {"order_id": 42}, "the handle is for the caller's own loop"


async def test_a_handler_is_called_directly_like_the_function_it_is(app: Windlass) -> None:
    @app.job
    def add(ctx: Ctx, a: int, b: int = 2) -> str:
        return f"{a + b} in attempt {ctx.attempt}"

    assert add.call(1) == "3 in attempt 1"
    assert await define(app).call(7) == "sent 7"
    with pytest.raises(PayloadInvalid):
        add.call("x")  # type: ignore[arg-type]  # the point
