"""A WebSocket: the same as streams, for many jobs and views on one, from pages of this host alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.until import until
from tests.web.live.conftest import QUICK, Serve, Served
from tests.web.live.test_going_on import SOON, Door, put_large
from tests.web.live.test_one_job import put, work
from windlass.web.limits import Limits


class Talk:
    """A WebSocket on the client's side."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def say(self, **message: Any) -> None:
        await self.socket.send(json.dumps(message))

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(10):
            message: dict[str, Any] = json.loads(await self.socket.recv())
        return message

    async def until(self, **wanted: Any) -> list[dict[str, Any]]:
        """All that comes, up to a message like this."""
        came: list[dict[str, Any]] = []
        while not came or any(came[-1].get(name) != value for name, value in wanted.items()):
            came.append(await self.next())
        return came

    async def rest(self) -> list[dict[str, Any]]:
        came: list[dict[str, Any]] = []
        try:
            while True:
                came.append(await self.next())
        except ConnectionClosed:
            return came


@asynccontextmanager
async def talk(served: Served, owner: str = "ann", **how: Any) -> AsyncGenerator[Talk]:
    headers = {"Authorization": f"Bearer {await served.key(owner)}"}
    async with opened(served, additional_headers=headers, **how) as talking:
        yield talking


@asynccontextmanager
async def opened(served: Served, path: str = "/api/v1/live", **how: Any) -> AsyncGenerator[Talk]:
    async with connect(f"ws://127.0.0.1:{served.port}{path}", **how) as socket:
        yield Talk(socket)


async def test_sockets_and_what_is_said_on_them_are_requests_to_the_limits(serve: Serve) -> None:
    """Else one subscription after the other would ask the store as often as anybody likes."""
    async with serve(limits=Limits(rate=0.01)) as served:  # one at once, and the next after minutes
        async with talk(served) as socket:
            for _ in range(3):
                await socket.say(type="subscribe", id="v", view={})
            told = [await socket.next() for _ in range(4)]
            assert [one["data"].get("status") for one in told if one["type"] == "error"] == [429] * 3
        with pytest.raises(InvalidStatus) as refused:
            async with talk(served):
                pass
        assert (refused.value.response.status_code, "retry-after" in refused.value.response.headers) == (429, True)


async def test_jobs_and_views_on_one_socket(at: Served) -> None:
    job = await put(at)
    async with talk(at) as socket:
        await socket.say(type="subscribe", id="a", job=job)
        first = (await socket.until(type="job"))[-1]
        assert (first["type"], first["id"], first["data"]["status"]) == ("job", "a", "queued")
        await socket.say(type="subscribe", id="v", view={"type": "mail.send"})
        view = (await socket.until(type="view"))[-1]
        assert (view["id"], view["data"]["full"], view["data"]["ids"]) == ("v", True, [job])
        await work(at.app)
        came = await socket.until(type="end", id="a")
        assert came[-1]["data"] == {"jobId": job, "status": "succeeded"}
        while "succeeded" not in str([message for message in came if message["type"] == "view"]):
            came += await socket.until(type="view")
        await socket.say(type="subscribe", id="a", job=job, after=1)
        again = await socket.until(type="end", id="a")
    assert [message["event"] for message in again if message["type"] == "entry"] == ["2", "3"]


async def test_what_is_unsubscribed_from_is_told_no_more(serve: Serve) -> None:
    async with serve() as served, talk(served) as socket:
        await socket.say(type="subscribe", id="v", view={})
        await socket.until(type="view")
        await socket.say(type="unsubscribe", id="v")
        await socket.say(type="ping")
        await socket.until(type="pong")
        await put(served)
        await socket.say(type="subscribe", id="w", view={})
        assert {message.get("id") for message in await socket.until(type="view")} <= {None, "w"}


@pytest.mark.parametrize(
    "said",
    [
        "x",
        "[]",
        "{}",
        '{"type": "subscribe"}',
        '{"type": "subscribe", "id": "a"}',
        '{"type": "subscribe", "id": "a", "job": "x", "view": {}}',
        '{"type": "subscribe", "id": "a", "view": {"limit": 1000}}',
        '{"type": "subscribe", "id": "a", "view": {"status": ["x"]}}',
        '{"type": "subscribe", "id": "a", "view": {"$where": "1"}}',
        '{"type": "subscribe", "id": {"$gt": ""}, "job": "x"}',
        '{"type": "authenticate", "key": "another"}',
        '{"type": "nonsense"}',
        "[" * 20_000,
        '{"type": "ping", "n": NaN}',
    ],
)
async def test_a_message_that_is_none_is_told_so_and_nothing_ends(serve: Serve, said: str) -> None:
    async with serve() as served, talk(served) as socket:
        await socket.socket.send(said)
        told = (await socket.until(type="error"))[-1]
        assert told["data"]["status"] == 422
        await socket.say(type="ping")
        assert (await socket.until(type="pong"))[-1] == {"type": "pong", "data": {}}


async def test_others_jobs_are_not_there(serve: Serve) -> None:
    async with serve() as served, talk(served) as socket:
        theirs = await put(served, user="bob")
        told: list[Any] = []
        for job in (theirs, theirs[:-4] + "0000"):
            await socket.say(type="subscribe", id="a", job=job)
            told.append((await socket.until(type="error"))[-1])
            told[-1]["data"]["detail"] = told[-1]["data"]["detail"].replace(job, "ID")
        assert told[0] == told[1]
        assert (told[0]["id"], told[0]["data"]["status"]) == ("a", 404)
        await socket.say(type="subscribe", id="v", view={"id": [theirs]})
        assert (await socket.until(type="view"))[-1]["data"]["ids"] == []


async def test_a_browser_gives_its_key_as_a_subprotocol_which_is_not_given_back(serve: Serve) -> None:
    async with serve() as served:
        key = await served.key()
        async with opened(served, subprotocols=["windlass.v1", f"bearer.{key}"]) as socket:
            assert socket.socket.subprotocol == "windlass.v1"
            await socket.say(type="ping")
            await socket.until(type="pong")


async def test_or_in_its_first_message(serve: Serve) -> None:
    async with serve(replace(QUICK, greeting=0.2)) as served:
        key = await served.key()
        async with opened(served) as socket:
            await socket.say(type="authenticate", key=key)
            await socket.say(type="subscribe", id="v", view={})
            await socket.until(type="view")
        for first in ({"type": "authenticate", "key": "wl_1_2"}, {"type": "ping"}, None):
            async with opened(served) as socket:
                if first is not None:
                    await socket.say(**first)
                came = await socket.rest()
                assert [message["type"] for message in came] == ["error"]
                assert came[0]["data"]["status"] in (401, 422)
                assert socket.socket.close_code == 1008
        await until(served.nobody, "all to be gone")


async def refused(served: Served, **how: Any) -> int:
    with pytest.raises(InvalidStatus) as error:
        async with opened(served, **how):
            pass
    return error.value.response.status_code


async def test_a_key_in_the_address_is_no_key(serve: Serve) -> None:
    async with serve(replace(QUICK, greeting=0.1)) as served:
        key = await served.key()
        for name in ("key", "token", "authorization", "access_token"):
            async with opened(served, f"/api/v1/live?{name}={key}") as socket:
                assert [message["type"] for message in await socket.rest()] == ["error"]


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1", "http://127.0.0.1.evil.example", "file://", ""]
)
async def test_a_page_of_elsewhere_opens_nothing(serve: Serve, origin: str) -> None:
    door = Door()
    async with serve(authenticate=door) as served:
        assert await refused(served, additional_headers={"Origin": origin}) == 403
    assert door.asked == 0


async def test_a_page_of_here_does_and_one_that_was_allowed(serve: Serve) -> None:
    async with serve(replace(QUICK, origins=frozenset({"https://shop.example"})), authenticate=Door()) as served:
        for origin in (f"http://127.0.0.1:{served.port}", "https://shop.example"):
            async with opened(served, additional_headers={"Origin": origin}) as socket:
                await socket.say(type="ping")
                await socket.until(type="pong")


async def test_what_is_wrong_is_told_before_it_is_accepted(serve: Serve) -> None:
    async with serve(replace(QUICK, per_caller=1)) as served:
        enqueuer = await served.key("eve", ("enqueue",))
        assert await refused(served, additional_headers={"Authorization": "Bearer wl_1_2"}) == 401
        assert await refused(served, additional_headers={"Authorization": f"Bearer {enqueuer}"}) == 403
        async with talk(served) as socket:
            await socket.say(type="ping")
            await socket.until(type="pong")
            key = await served.key()
            assert await refused(served, additional_headers={"Authorization": f"Bearer {key}"}) == 429


async def test_there_is_a_bound_to_subscriptions_and_to_messages(serve: Serve) -> None:
    async with serve(replace(QUICK, per_socket=2)) as served, talk(served) as socket:
        for name in ("a", "a", "b", "c"):
            await socket.say(type="subscribe", id=name, view={})
        await socket.until(type="error", id="a")
        await socket.until(type="error", id="c")
        await socket.socket.send(json.dumps({"type": "ping", "x": "y" * 70_000}))
        last = (await socket.rest())[-1]
        assert (last["type"], last["data"]["why"], socket.socket.close_code) == ("closing", "too-large", 1009)


async def test_who_may_not_any_more_is_told_so(serve: Serve) -> None:
    door = Door()
    async with serve(SOON, authenticate=door) as served, opened(served) as socket:
        await socket.say(type="subscribe", id="v", view={})
        await socket.until(type="view")
        door.owner = None
        last = (await socket.rest())[-1]
        assert (last["type"], last["data"]["why"], socket.socket.close_code) == ("closing", "unauthorised", 1008)
        await until(served.nobody, "it to be gone")


async def test_the_word_to_stop_ends_it_with_a_word(serve: Serve) -> None:
    async with serve() as served, talk(served) as socket:
        await socket.say(type="subscribe", id="v", view={})
        await socket.until(type="view")
        served.web.state.closing.set()
        last = (await socket.rest())[-1]
        assert (last["type"], last["data"]["why"], socket.socket.close_code) == ("closing", "stopping", 1012)


async def test_one_that_takes_nothing_is_dropped(serve: Serve) -> None:
    async with serve(replace(QUICK, slow=0.3)) as served:
        await put(served)
        async with talk(served, max_queue=1, ping_interval=None, close_timeout=0.1) as socket:
            for number in range(50):
                await socket.say(type="subscribe", id=str(number), view={})
            for _ in range(300):
                if not served.live.streams:
                    break
                async with asyncio.TaskGroup() as tasks:
                    for number in range(50):
                        tasks.create_task(put_large(served, number))
            assert served.live.streams == 0, "it was not dropped"


async def test_silence_is_broken(serve: Serve) -> None:
    async with serve(replace(QUICK, comment=0.05)) as served, talk(served) as socket:
        await socket.until(type="alive")
