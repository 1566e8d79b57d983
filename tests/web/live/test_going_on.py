"""How long a stream goes on: while its caller may, while the client takes what is sent, while the server runs."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import replace

import pytest
from starlette.requests import HTTPConnection

from tests.support.until import until
from tests.web.live.conftest import QUICK, Serve, Served
from tests.web.live.test_one_job import put, work
from windlass.core.errors import StoreUnavailable
from windlass.stores.contract import Scope
from windlass.web.callers import Caller


class Door:
    """An application's own sign-in, which can change its mind."""

    def __init__(self) -> None:
        self.owner: str | None = "ann"
        self.scopes = frozenset({Scope.READ})
        self.asked = 0
        self.away = False

    async def __call__(self, request: HTTPConnection, _: object) -> Caller | None:
        self.asked += 1
        if self.away:
            raise StoreUnavailable("it is away")
        return None if self.owner is None else Caller(f"user:{self.owner}", self.owner, self.scopes)


SOON = replace(QUICK, reauthorise=0.1)


async def test_who_may_not_any_more_is_told_so_and_the_stream_ends(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.web.access.keys.KNOWN_FOR", 0.0)
    async with serve(replace(QUICK, reauthorise=0.1)) as served:
        job = await put(served)
        async with served.stream(f"/queue/{job}/events") as stream:
            await stream.next()
            await served.app.keys.revoke(*(key.id for key in await served.app.keys.list()))
            last = (await stream.rest())[-1]
    assert (last.event, last.data["why"], last.data["again"]) == ("closing", "unauthorised", False)


async def test_who_is_another_now_loses_the_stream_and_who_stays_keeps_it(serve: Serve) -> None:
    door = Door()
    async with serve(SOON, authenticate=door) as served:
        for change in ({"owner": "bob"}, {"owner": None}, {"scopes": frozenset[Scope]()}, {"away": True}):
            door.owner, door.scopes, door.away = "ann", frozenset({Scope.READ}), False
            async with served.stream("/live") as stream:
                await stream.next()
                asked = door.asked
                await until(lambda n=asked: door.asked >= n + 2, "being asked for again")  # type: ignore[misc]  # bound per turn
                vars(door).update(change)
                last = (await stream.rest())[-1]
            assert last.data["why"] == "unauthorised", change


async def test_silence_is_broken_by_comments(serve: Serve) -> None:
    async with serve(replace(QUICK, comment=0.05)) as served:
        job = await put(served)
        async with served.stream(f"/queue/{job}/events") as stream, asyncio.timeout(10):
            reading = asyncio.create_task(stream.rest())
            await until(lambda: stream.comments >= 3, "comments")
            await work(served.app)
            await reading


async def test_a_caller_has_so_many_streams_and_all_have_so_many(serve: Serve) -> None:
    async with serve(replace(QUICK, per_caller=2, per_process=3)) as served, served.client() as ann:
        job = await put(served)
        path = f"/queue/{job}/events"
        async with served.stream(path), served.stream("/live"):
            refused = await ann.get(path)
            async with served.stream("/live", owner="bob"), served.client("eve") as eve:
                full = await eve.get("/live")
        await until(served.nobody, "all to be gone")
        async with served.stream(path):
            pass
    for answer in (refused, full):
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1


async def test_a_client_that_takes_nothing_is_dropped_and_little_is_kept_for_it(serve: Serve) -> None:
    """Each state has a hundred rows of about 8 KB; what it is given is what buffers hold, and not all states."""
    async with serve(replace(QUICK, slow=0.3)) as served:
        key, rounds = await served.key(), 0
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
            slow.connect(("127.0.0.1", served.port))
            head = f"GET /api/v1/live?limit=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n"
            slow.sendall(head.encode())
            await until(lambda: served.live.streams == 1, "the stream")
            while served.live.streams and rounds < 300:
                rounds += 1
                async with asyncio.TaskGroup() as tasks:
                    for number in range(100):
                        tasks.create_task(put_large(served, number))
            assert served.live.streams == 0, "it was not dropped"
            slow.settimeout(5)
            got = await asyncio.to_thread(all_of, slow)
    assert 0 < len(got) < 3_000_000


def all_of(slow: socket.socket) -> bytes:
    got = b""
    while part := slow.recv(1 << 20):
        got += part
    return got


async def put_large(served: Served, number: int) -> None:
    tags = [f"{number}-{at}-{'x' * 180}" for at in range(32)]
    await served.app.enqueue("mail.send", {"to": "x"}, user="ann", tags=tags)


async def test_a_slow_client_is_told_the_newest_state_only(serve: Serve) -> None:
    async with serve() as served:
        async with served.stream("/live?type=mail.send") as stream:
            await stream.next()
            for number in range(50):
                await put(served, to=str(number))
            told = await stream.until(lambda event: len(event.data.get("ids", [])) == 50)
        assert told.id is not None


async def test_the_word_to_stop_ends_every_stream_with_a_word(serve: Serve) -> None:
    async with serve() as served:
        job = await put(served)
        async with served.stream("/live") as view, served.stream(f"/queue/{job}/events") as events:
            await view.next()
            await events.next()
            served.web.state.closing.set()
            for stream in (view, events):
                last = (await stream.rest())[-1]
                assert (last.event, last.data["why"], last.data["again"]) == ("closing", "stopping", True)
                assert 1000 <= last.data["retryMs"] <= 3000
        await until(served.nobody, "all to be gone")


async def test_a_server_that_stops_is_not_held_up(serve: Serve) -> None:
    async with serve() as served, served.stream("/live") as stream:
        await stream.next()
        served.server.should_exit = True
        served.web.state.closing.set()
        async with asyncio.timeout(3):
            await stream.rest()


async def test_a_client_that_goes_leaves_nothing_behind(serve: Serve) -> None:
    async with serve() as served:
        job = await put(served)
        for _ in range(3):
            async with served.stream("/live") as view, served.stream(f"/queue/{job}/events") as events:
                await view.next()
                await events.next()
            await until(served.nobody, "both to be gone")


async def test_http_1_0_has_it_too(serve: Serve) -> None:
    async with serve() as served:
        job, key = await put(served), await served.key()
        await work(served.app)
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(f"GET /api/v1/queue/{job}/events HTTP/1.0\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
        async with asyncio.timeout(10):
            text = (await reader.read()).decode()
        writer.close()
        await writer.wait_closed()
    assert "transfer-encoding" not in text.lower()
    assert text.count("event: entry") == 3
    assert json.loads(text.rpartition("data: ")[2]) == {"jobId": job, "status": "succeeded"}
