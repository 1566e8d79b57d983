"""From a change to the pages that show it: at once for who was told of it, and once for all of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx

from tests.web.live.conftest import Serve, Served, Stream
from tests.web.live.test_one_job import put
from windlass.web.live.one_view import View, ViewWatch
from windlass.web.live.pace import Pace


@asynccontextmanager
async def pages(served: Served) -> AsyncGenerator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {await served.key('*')}", "X-Windlass-Regions": "shared"}
    url = f"http://127.0.0.1:{served.port}/dashboard"
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=10) as client:
        yield client


async def put_in(served: Served, queue: str) -> str:
    return (await served.app.enqueue("mail.send", {"to": "x"}, queue=queue)).id


async def told_of(stream: Stream, job: str) -> dict[str, str]:
    """What a page says that was told of this job."""
    told = await stream.until(lambda event: event.event == "view" and job in event.data.get("ids", ()))
    assert told.id is not None
    return {"X-Windlass-Told": told.id}


async def test_who_was_told_of_a_change_sees_it(serve: Serve) -> None:
    async with serve() as served, pages(served) as client, served.stream("/live?limit=1", owner="*") as stream:
        await stream.next()
        for number in range(3):
            before = (await client.get("/queues")).text
            job = await put_in(served, f"new-{number}")
            assert f"new-{number}" not in before
            after = await client.get("/queues", headers=await told_of(stream, job))
            assert f"new-{number}" in after.text


async def test_an_event_of_another_process_is_newer_than_what_was_rendered(serve: Serve) -> None:
    async with serve() as served, pages(served) as client:
        before = await client.get("/queues")
        await put_in(served, "elsewhere")
        after = await client.get("/queues", headers={"X-Windlass-Told": "0badcafe.1.7"})
        assert ("elsewhere" in before.text, "elsewhere" in after.text) == (False, True)


async def test_all_who_were_told_of_the_same_share_the_reads(serve: Serve) -> None:
    async with (
        serve(Pace(floor=60)) as served,
        pages(served) as client,
        served.stream("/live?limit=1", owner="*") as stream,
    ):
        await stream.next()
        # Told by a notice; the next look is a minute away.
        job = await put(served)
        headers = await told_of(stream, job)
        before = served.calls.now()
        answers = await asyncio.gather(
            *(client.get(page, headers=headers) for page in ("/queues", "/") for _ in range(20))
        )
        assert len({answer.headers["etag"] for answer in answers}) == 2
        calls = served.calls.since(before)
        assert calls["queues.list"] == 1
        assert calls["views.figures"] <= 2, "of the last hour, and of the last day"
        tags = {answer.headers["etag"] for answer in answers[:20]}
        same = await client.get("/queues", headers={**headers, "If-None-Match": tags.pop()})
        assert (same.status_code, same.content) == (304, b"")


async def test_only_changes_keep_a_view_waiting(serve: Serve) -> None:
    async with serve() as served:
        view = ViewWatch(served.live.app, served.app.jobs, View(), Pace(view_gap=3600), "x")
        await view.see()
        assert view.due > time.monotonic() + 30
        view.stir()
        assert view.due < time.monotonic() + 30, "the first change after a pause waits"
        await view.look()
        view.stir()
        assert view.due > time.monotonic() + 30, "changes come more often than they are looked at"
