"""Below HTTP's good manners: what is no proper request is refused or hung up on, and the server goes on."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.until import until_sync
from windlass import Windlass

SOURCE = Path(__file__).parents[2] / "src"
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


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, int], None, None]:
    """Where a server listens."""
    home = tmp_path_factory.mktemp("raw")
    app = Windlass(f"sqlite:///{home / 'shop.db'}")
    app.run_sync(app.keys.create("a test", owner="*", scopes=["admin"]))
    app.close()
    log = home / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "windlass", "--store", "sqlite:///shop.db", "serve", "--port", "0"],
            cwd=home,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        until_sync(lambda: "/api/v1" in log.read_text(), "the server to say where it is", within=30)
        [port] = re.findall(r"http://127.0.0.1:(\d+)/api/v1", log.read_text())
        yield "127.0.0.1", int(port)
    finally:
        process.terminate()
        assert process.wait(30) == 0
    assert "Traceback" not in log.read_text()


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


@pytest.mark.timeout(60)
def test_many_that_say_nothing_hold_up_nobody(place: tuple[str, int]) -> None:
    slow = [socket.create_connection(place, timeout=15) for _ in range(100)]
    for one in slow:
        one.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n")  # chunked, and never an end
    assert status(place, b"GET /healthz HTTP/1.0\r\n" + HOST + b"\r\n") == 200
    for one in slow:
        one.close()
    assert status(place, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n") == 200
