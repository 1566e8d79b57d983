"""A stream of one job: its state at once, every entry once, its end, and nothing of others."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.support.until import until
from tests.web.live.conftest import Event, Serve, Served, Stream
from windlass import Ctx, Windlass


async def put(served: Served, to: str = "x", user: str = "ann") -> str:
    handle = await served.app.enqueue("mail.send", {"to": to}, user=user)
    return handle.id


async def work(app: Windlass) -> None:
    await app.worker(drain=True).run()


def numbers(events: list[Event]) -> list[int]:
    return [int(event.id or 0) for event in events if event.event == "entry"]


async def test_from_the_state_at_once_to_the_end(at: Served) -> None:
    job = await put(at)
    async with at.stream(f"/queue/{job}/events") as stream:
        first = await stream.next()
        assert first is not None
        assert (first.event, first.id, first.data["status"], first.data["userId"]) == ("job", None, "queued", "ann")
        entry = await stream.next()
        assert entry is not None
        assert (entry.event, entry.id, entry.data["happened"]) == ("entry", "1", "enqueued")
        how = await stream.next()
        assert how is not None
        assert how.event == "via"
        await work(at.app)
        rest = await stream.rest()
    assert numbers([entry, *rest]) == [1, 2, 3]
    last = [event for event in rest if event.event == "job"][-1].data
    assert (last["status"], last["result"], last["workerId"]) == ("succeeded", "x 1", None)
    assert rest[-1].event == "end"
    assert rest[-1].data == {"jobId": job, "status": "succeeded"}
    assert rest[-1].id == "3"


async def test_the_heads_are_those_of_a_stream(serve: Serve) -> None:
    async with serve() as served:
        job = await put(served)
        async with served.stream(f"/queue/{job}/events") as stream:
            headers = stream.answer.headers
            await stream.next()
            assert stream.retries
            assert 1000 <= stream.retries[0] <= 3000
        async with served.client() as client:
            head = await client.head(f"/queue/{job}/events")
    assert headers["content-type"] == "text/event-stream"
    assert headers["cache-control"] == "no-store"
    assert headers["x-accel-buffering"] == "no"
    assert headers["x-request-id"]
    assert head.status_code == 405


async def test_who_comes_again_is_told_each_entry_once(serve: Serve) -> None:
    async with serve() as served:
        job = await put(served)
        async with served.stream(f"/queue/{job}/events") as stream:
            await stream.until(lambda event: event.event == "entry")
        await work(served.app)
        async with served.stream(f"/queue/{job}/events", last=stream.last) as again:
            events = await again.rest()
        assert stream.last == "1"
        assert numbers(events) == [2, 3]
        assert events[0].event == "job"
        async with served.client() as client:
            done = await client.get(f"/queue/{job}/events", headers={"Last-Event-ID": "3"})
        assert (done.status_code, done.content) == (204, b"")


@pytest.mark.parametrize("last", ["0", "99", "-1", "x", "²", "9" * 5000, "1.5"])
async def test_an_id_that_is_none_is_as_no_id(serve: Serve, last: str) -> None:
    async with serve() as served:
        job = await put(served)
        await work(served.app)
        async with served.stream(f"/queue/{job}/events", last=last) as stream:
            assert numbers(await stream.rest()) == [1, 2, 3]


async def test_others_jobs_and_jobs_that_are_not_there_are_refused_before_anything_is_sent(serve: Serve) -> None:
    async with serve() as served:
        theirs = await put(served, user="bob")
        async with served.client() as ann, served.client("bob") as bob:
            answers = [await ann.get(f"/queue/{job}/events") for job in (theirs, theirs[:-4] + "0000", "x" * 300)]
            async with bob.stream("GET", f"/queue/{theirs}/events") as his:
                assert his.status_code == 200
                # While somebody watches it, too.
                answers.append(await ann.get(f"/queue/{theirs}/events"))
    assert [answer.status_code for answer in answers] == [404] * 4
    assert answers[0].headers["content-type"] == "application/problem+json"


async def test_a_job_that_is_deleted_ends_its_stream(serve: Serve) -> None:
    async with serve() as served:
        job = await put(served)
        async with served.stream(f"/queue/{job}/events") as stream:
            await stream.next()
            await served.app.jobs.delete(job)
            last = (await stream.rest())[-1]
    assert (last.event, last.data) == ("end", {"jobId": job, "status": None})


async def test_progress_is_told(serve: Serve) -> None:
    async with serve() as served:
        go = asyncio.Event()

        @served.app.job(name="steps")
        async def steps(ctx: Ctx) -> None:
            ctx.progress(3, of=10, note="three")
            await go.wait()

        job = (await served.app.enqueue("steps", user="ann")).id
        async with served.stream(f"/queue/{job}/events") as stream, asyncio.TaskGroup() as tasks:
            tasks.create_task(work(served.app))
            told = await stream.until(lambda event: event.event == "job" and event.data["progress"] is not None)
            go.set()
            assert (await stream.rest())[-1].data["status"] == "succeeded"
    assert told.data["progress"] == {"done": 3.0, "of": 10.0, "note": "three"}


async def test_many_streams_of_many_jobs_are_one_question(serve: Serve) -> None:
    """Whoever watches, and however many: a look is one read, and one more of each job that has changed."""
    async with serve() as served:
        jobs = [await put(served) for _ in range(30)]
        async with served.client() as client, asyncio.TaskGroup() as tasks:
            for job in jobs:
                for _ in range(2):
                    tasks.create_task(read_all(client, f"/queue/{job}/events"))
            await until(lambda: served.live.streams == 60, "all streams")
            before = served.calls.now()
            await until(lambda: served.calls.since(before)["views.get"] >= 10, "ten looks")
            assert served.calls.since(before)["views.look"] == 0
            before = served.calls.now()
            await work(served.app)
        # Each job was looked at for its claim and its end at the most, twice watched or not.
        assert served.calls.since(before)["views.look"] <= 2 * len(jobs)


async def read_all(client: httpx.AsyncClient, path: str) -> list[Event]:
    async with client.stream("GET", path) as answer:
        return await Stream(answer).rest()
