"""Below HTTP's good manners: what is no proper request is refused or hung up on, and the server goes on."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Generator
from contextlib import ExitStack, suppress
from functools import partial
from typing import NamedTuple, cast

import pytest
import uvicorn
from fastapi import FastAPI
from uvicorn.server import ServerState

from tests.support.serving import key_at, serving
from tests.support.until import until
from windlass.web.connections import SLOWEST_HEAD, Connection
from windlass.web.envelope import SLOWEST

HOST = b"Host: 127.0.0.1\r\n"
POST = b"POST /api/v1/queue/enqueue HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
ODD = {
    "both lengths": POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "negative": POST + b"Content-Length: -1\r\n\r\n{}",
    "huge": POST + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    "compressed": POST + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    "no slash": b"GET @google.com HTTP/1.1\r\n" + HOST + b"\r\n",
    "trace": b"TRACE /api/v1/queue HTTP/1.1\r\n" + HOST + b"\r\n",
    "foo": b"FOO /api/v1/queue HTTP/1.1\r\n" + HOST + b"\r\n",
    "no http": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "many headers": b"GET /healthz HTTP/1.1\r\n" + HOST + b"X-Padding: 1\r\n" * 400 + b"\r\n",
    "long header": b"GET /healthz HTTP/1.1\r\n" + HOST + b"X-Padding: " + b"a" * 30_000 + b"\r\n\r\n",
    "line feeds": b"GET /healthz HTTP/1.1\nHost: x\n y\n\n",
}


class Place(NamedTuple):
    """Where a server listens, and the header that lets in."""

    address: tuple[str, int]
    key: bytes


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Place, None, None]:
    """A server that has to end well, without a traceback."""
    home = tmp_path_factory.mktemp("raw")
    url = f"sqlite:///{home / 'shop.db'}"
    key = f"Authorization: Bearer {key_at(url)}\r\n".encode()
    with serving(home, store=url) as server:
        yield Place(("127.0.0.1", server.port), key)
    assert "Traceback" not in server.log


@pytest.fixture
def place(served: Place) -> tuple[str, int]:
    """Where it listens."""
    return served.address


def status(place: tuple[str, int], request: bytes) -> int:
    """The status of the answer; 0 where the server hung up."""
    with socket.create_connection(place, timeout=15) as connection:
        try:
            connection.sendall(request)
            answer = connection.recv(65_536)
        except ConnectionError:
            return 0
    return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else 0


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ODD)
def test_what_is_no_proper_request_is_refused(place: tuple[str, int], name: str) -> None:
    assert status(place, ODD[name]) in (0, 400, 401, 404, 405, 413, 415, 421, 431)
    assert status(place, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n") == 200


@pytest.mark.timeout(60)
def test_a_range_is_not_kept_to_and_nobody_is_left_waiting_for_a_word_to_go_on(place: tuple[str, int]) -> None:
    ranges = b"Range: bytes=" + b",".join(b"%d-%d" % (at, at + 1) for at in range(1_000)) + b"\r\n"
    assert status(place, b"GET /healthz HTTP/1.1\r\n" + HOST + ranges + b"\r\n") == 200
    assert status(place, POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n") in (100, 401)


@pytest.mark.timeout(60)
def test_who_goes_in_the_middle_of_a_body_leaves_nothing_behind(place: tuple[str, int]) -> None:
    for _ in range(50):
        with socket.create_connection(place, timeout=15) as connection:
            connection.sendall(POST + b"Content-Length: 1000\r\n\r\n{")
    assert status(place, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n") == 200


async def test_an_answer_is_not_held_back_until_its_head_is_acknowledged() -> None:
    """Clients put acknowledging off for 40 ms; here the listening socket names no protocol, as that of `serve`."""
    state, config = ServerState(), uvicorn.Config(FastAPI(), http=Connection, lifespan="off")
    config.load()
    made = partial(Connection, config=config, server_state=state, app_state={})
    listening = socket.create_server(("127.0.0.1", 0))
    async with await asyncio.get_running_loop().create_server(made, sock=listening):
        _, writer = await asyncio.open_connection(*listening.getsockname())
        await until(lambda: len(state.connections) == 1, "it to be accepted")
        [one] = state.connections
        there = cast("Connection", one).transport.get_extra_info("socket")
        assert there.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        writer.close()
        await until(lambda: not state.connections, "it to be closed")


@pytest.mark.timeout(60)
def test_a_thousand_at_once_are_all_answered(served: Place) -> None:
    with ExitStack() as stack:
        many = [stack.enter_context(socket.create_connection(served.address, timeout=30)) for _ in range(1_000)]
        for one in many:
            one.sendall(b"GET /api/v1/queue HTTP/1.1\r\n" + HOST + served.key + b"\r\n")
        answers = [one.recv(65_536).split()[1] for one in many]
    assert set(answers) == {b"200"}


HEALTH = b"GET /healthz HTTP/1.1\r\n" + HOST
# What is sent first, and what is sent again and again.
SLOW = {
    "nothing at all": (b"", b""),
    "headers, one by one": (HEALTH, b"X: 1\r\n"),
    "a second request": (HEALTH + b"\r\n" + HEALTH, b"X: 1\r\n"),
    "a body, byte by byte": (POST + b"KEYContent-Length: 1000\r\n\r\n{", b" "),
    "chunks without an end": (POST + b"KEYTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "a body of nobody": (POST + b"Content-Length: 1000\r\n\r\n{", b" "),
}
EACH = 50


@pytest.mark.timeout(90)
def test_who_is_slow_on_purpose_is_let_go_and_holds_up_nobody(served: Place) -> None:
    """Slow loris in each of its forms, all at the same moment."""
    longest = 0.0
    with ExitStack() as stack:
        slow = list[tuple[socket.socket, bytes]]()
        for first, more in [*SLOW.values()] * EACH:
            one = stack.enter_context(socket.create_connection(served.address, timeout=15))
            one.sendall(first.replace(b"KEY", served.key))
            one.setblocking(False)
            slow.append((one, more))
        began = time.monotonic()
        while slow:
            asked = time.monotonic()
            assert asked - began < max(SLOWEST_HEAD, SLOWEST) + 4, f"{len(slow)} are still waited for"
            assert status(served.address, HEALTH + b"\r\n") == 200
            longest = max(longest, time.monotonic() - asked)
            slow = [(one, more) for one, more in slow if not closed(one, more)]
            time.sleep(0.4)  # what comes slowly is the subject of this test
    assert longest < 2


def closed(connection: socket.socket, more: bytes) -> bool:
    """Whether the server has closed it; else a little more is sent."""
    try:
        while connection.recv(65_536):
            pass
    except BlockingIOError:
        with suppress(ConnectionError):
            connection.sendall(more)
        return False
    except ConnectionError:
        return True
    return True


@pytest.mark.timeout(60)
def test_who_is_slow_but_honest_is_served(served: Place) -> None:
    body = b'{"type": "later", "delay": 60}'
    with socket.create_connection(served.address, timeout=15) as connection:
        connection.sendall(HEALTH + b"\r\n")
        while b"}" not in connection.recv(65_536):  # its last byte
            pass
        for piece in (POST, served.key, b"Content-Length: %d\r\n\r\n" % len(body), body[:9], body[9:]):
            time.sleep(0.2)  # slower than one write, far from the bounds
            connection.sendall(piece)
        assert connection.recv(65_536).split()[1] in (b"201", b"422")
