"""`windlass serve` as a process of its own: it says where it is, answers, and ends well."""

from __future__ import annotations

import re
import signal
import socket

import httpx
import pytest

from tests.cli.support import Shop
from tests.support.until import until_sync

pytestmark = pytest.mark.timeout(60)


def served(shop: Shop) -> tuple[str, str]:
    """The address and the first key, once it has said both."""
    until_sync(lambda: "/api/v1" in shop.log, "the server to say where it is", within=30)
    [url], [secret] = re.findall(r"http://\S+/api/v1", shop.log), re.findall(r"wl_[0-9a-f]{12}_\S+", shop.log)
    return url, secret


def test_it_serves_with_a_worker_until_it_is_told_to_stop(shop: Shop) -> None:
    child = shop.start("--store", shop.url, "serve", "shop:app", "--port", "0", "--worker")
    url, secret = served(shop)
    assert url.startswith("http://127.0.0.1:")
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}) as client:
        answer = client.post("/queue/enqueue", json={"type": "hello", "payload": {"name": "ada"}})
        assert answer.status_code == 201, answer.text
        path = answer.headers["location"].removeprefix("/api/v1")
        until_sync(lambda: client.get(path).json()["status"] == "succeeded", "the job to be done", within=20)
        assert client.get(path).json()["result"] == "hello ada"
        assert client.get("/queue", headers={"Authorization": "Bearer wl_x_y"}).status_code == 401
        assert httpx.get(url.replace("/api/v1", "/readyz")).json() == {"status": "ready"}
    child.send_signal(signal.SIGTERM)
    assert child.wait(30) == 0


def test_it_listens_beyond_this_machine_only_where_there_are_keys(shop: Shop) -> None:
    refused = shop.process("--store", shop.url, "serve", "--host", "0.0.0.0", "--port", "0")
    assert (refused.code, "there are no keys yet" in refused.err) == (5, True)
    assert shop.process("--store", shop.url, "serve", "--worker").code == 2


def test_a_place_that_is_taken_is_told_in_a_line_and_no_key_is_made(shop: Shop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = shop.process("--store", shop.url, "serve", "--port", port)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: cannot listen at 127.0.0.1, port ")
    assert len(refused.err.splitlines()) == 1
    assert "no keys yet" in shop.ok("keys")
