"""A stream of a view: everything at once, then what changed, for any number who look, at the cost of one."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.support.until import until
from tests.web.live.conftest import QUICK, Event, Serve, Served, Stream
from tests.web.live.test_one_job import put, work
from windlass.web.live.pace import Pace


class Screen:
    """What a client shows of a view."""

    def __init__(self) -> None:
        self.counts: list[dict[str, Any]] = []
        self.ids: list[str] = []
        self.rows: dict[str, dict[str, Any]] = {}
        self.looks = 0

    def take(self, event: Event) -> None:
        if event.event != "view":
            return
        self.looks += 1
        if event.data["full"]:
            self.rows = {}
        self.counts, self.ids = event.data.get("counts", self.counts), event.data.get("ids", self.ids)
        self.rows = {id_: row for id_, row in self.rows.items() if id_ in self.ids}
        self.rows |= {row["id"]: row for row in event.data["rows"]}

    def statuses(self) -> list[str]:
        return [self.rows[id_]["status"] for id_ in self.ids]

    def count(self, status: str) -> int:
        return sum(one["count"] for one in self.counts if one["status"] == status)


async def shown(stream: Stream, screen: Screen, *statuses: str) -> None:
    """Read until the screen shows jobs of these statuses, in this order."""
    while screen.statuses() != list(statuses):
        event = await stream.next()
        assert event is not None
        screen.take(event)


async def test_a_view_is_told_whole_and_then_what_changed(at: Served) -> None:
    first = await put(at)
    screen = Screen()
    async with at.stream("/live?status=queued&status=succeeded") as stream:
        event = await stream.next()
        assert event is not None
        assert event.data["full"]
        screen.take(event)
        assert screen.ids == [first]
        assert "payload" not in screen.rows[first]
        assert (screen.count("queued"), screen.count("succeeded")) == (1, 0)
        second = await put(at)
        await shown(stream, screen, "queued", "queued")
        assert screen.ids == [second, first]
        await work(at.app)
        await shown(stream, screen, "succeeded", "succeeded")
        while screen.count("succeeded") != 2:
            screen.take(await stream.until(lambda event: event.event == "view"))
        await at.app.jobs.delete(first)
        await shown(stream, screen, "succeeded")


async def test_who_comes_again_is_told_what_changed_meanwhile(serve: Serve) -> None:
    async with serve() as served:
        first, screen = await put(served), Screen()
        async with served.stream("/live?type=mail.send") as stream:
            await shown(stream, screen, "queued")
        second = await put(served)
        async with served.stream("/live?type=mail.send", last=stream.last) as again:
            event = await again.next()
            assert event is not None
            assert not event.data["full"]
            assert [row["id"] for row in event.data["rows"]] == [second]
            screen.take(event)
        assert screen.ids == [second, first]
        # One that is unknown here, as of another process or another view, is told everything.
        for last in ("ffffffff.1.1", "x", str(again.last) + "9", ""):
            async with served.stream("/live?type=mail.send", last=last) as anew:
                event = await anew.next()
                assert event is not None
                assert event.data["full"]
                assert len(event.data["rows"]) == 2


async def test_nothing_of_others_is_told_nor_wakes_anybody(serve: Serve) -> None:
    async with serve() as served:
        mine, theirs = await put(served), await put(served, user="bob")
        async with served.stream(f"/live?id={mine}&id={theirs}") as named, served.stream("/live") as all_:
            for stream in (named, all_):
                event = await stream.next()
                assert event is not None
                assert event.data["ids"] == [mine]
            before = served.calls.now()
            await put(served, user="bob")
            await work_of(served, theirs)
            await until(lambda: served.calls.since(before)["views.find"] > 5, "looks after what bob did")
            await put(served, to="mine")
            told = await all_.until(lambda event: event.event == "view")
            assert len(told.data["ids"]) == 2
            assert told.id is not None
            assert told.id.endswith(".2"), "something was told between my job and my next one"
            counted = told if "counts" in told.data else await all_.until(lambda event: "counts" in event.data)
        assert sum(one["count"] for one in counted.data["counts"]) == 2


async def work_of(served: Served, job: str) -> None:
    await served.app.jobs.cancel(job)


async def test_operators_see_counts_of_every_queue_and_all_jobs(serve: Serve) -> None:
    async with serve() as served:
        await put(served)
        await put(served, user="bob")
        async with served.stream("/live?limit=1", owner="*") as stream:
            event = await stream.next()
    assert event is not None
    assert len(event.data["ids"]) == 1
    assert event.data["counts"] == [{"queue": "mail", "status": "queued", "count": 2, "exact": True}]


@pytest.mark.parametrize(
    "query", ["status=nonsense", "limit=0", "limit=101", "id=x", "nonsense=1", "id=x&type=y", "type=*", "fingerprint=z"]
)
async def test_a_filter_that_is_none_is_refused_before_anything_is_sent(serve: Serve, query: str) -> None:
    async with serve() as served, served.client() as client:
        assert (await client.get(f"/live?{query}")).status_code == 422


async def test_a_user_cannot_look_for_anothers(serve: Serve) -> None:
    async with serve() as served, served.client() as client:
        answers = [await client.get("/live?userId=bob"), await client.get("/queue?userId=bob")]
    assert answers[0].status_code == answers[1].status_code


async def test_a_storm_of_changes_is_few_looks(serve: Serve) -> None:
    async with serve(Pace(gap=0.02, view_gap=0.25, floor=30)) as served:
        async with served.stream("/live?type=mail.send&limit=3") as stream:
            await stream.next()
            before, loop = served.calls.now(), asyncio.get_running_loop()
            began = loop.time()
            await asyncio.gather(*(put(served) for _ in range(1000)))
            while (await stream.until(lambda event: "counts" in event.data)).data["counts"][1]["count"] < 1000:
                pass
            took = loop.time() - began
        looks = served.calls.since(before)
    assert looks["jobs.insert"] > 0
    assert looks["views.find"] <= 2 + took / 0.25
    assert looks["views.count"] <= 8 * looks["views.find"]


@pytest.mark.timeout(60)
async def test_three_hundred_who_look_at_the_same_cost_as_much_as_one(serve: Serve) -> None:
    """Equal views are looked at once: the reads of a look do not grow with those who look."""
    pace = Pace(gap=0.1, view_gap=0.1, floor=0.2, per_caller=400)
    async with serve(pace) as served, served.client() as client:
        cost = [await cost_of(served, client, viewers) for viewers in (1, 300)]
        assert served.calls.by_name["views.find"] < 150
    assert cost[1] <= cost[0] * 1.5


async def cost_of(served: Served, client: httpx.AsyncClient, viewers: int) -> float:
    """Reads for each look at the view, while so many look."""
    job = await put(served)
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(told_of(client, job)) for _ in range(viewers)]
        await until(lambda: served.live.streams == viewers, "all streams", within=30)
        before = served.calls.now()
        await until(lambda: served.calls.since(before)["views.find"] >= 5, "five looks", within=30)
        reads = served.calls.since(before)
        await served.app.jobs.cancel(job)
    assert all(task.result() for task in waiting)
    return reads.total() / reads["views.find"]


async def told_of(client: httpx.AsyncClient, job: str) -> bool:
    async with client.stream("GET", "/live?type=mail.send") as answer:
        stream = Stream(answer)
        await stream.until(lambda event: any(row["id"] == job and row["status"] == "cancelled" for row in rows(event)))
        return True


def rows(event: Event) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = event.data["rows"] if event.event == "view" else []
    return found


async def test_nobody_who_looks_costs_nothing(serve: Serve) -> None:
    async with serve() as served:
        async with served.stream("/live") as stream:
            await stream.next()
        await until(served.nobody, "the stream to be gone")
        before = served.calls.now()
        await asyncio.sleep(5 * QUICK.floor)  # in which a look would have come: that none comes is what is asked
        assert not served.calls.since(before)
