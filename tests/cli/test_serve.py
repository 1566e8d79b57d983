"""`windlass serve` as a process of its own: it says where it is, answers, and ends well."""

from __future__ import annotations

import re
import signal
import socket
from contextlib import closing
from http.client import HTTPConnection

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
        request = answer.headers["x-request-id"]
        until_sync(lambda: f" ms {request}" in shop.log, "a line of the request")
        [line] = [one for one in shop.log.splitlines() if request in one]
        assert "request    POST /api/v1/queue/enqueue 201 " in line
    child.send_signal(signal.SIGTERM)
    assert child.wait(30) == 0


def test_the_word_to_stop_ends_it_when_what_is_under_way_is_answered(shop: Shop) -> None:
    child = shop.start("--store", shop.url, "serve", "shop:app", "--port", "0", "--worker", "--root-path", "//shop/")
    url, secret = served(shop)
    assert "which a proxy has at /shop/api/v1" in shop.log
    place, key = httpx.URL(url), {"Authorization": f"Bearer {secret}"}
    body = b'{"type": "hello"}'
    with closing(HTTPConnection(place.host, place.port, timeout=30)) as slow, httpx.Client(timeout=30) as client:
        assert client.get(f"{url}/queue", headers={**key, "Host": "evil.example"}).status_code == 421
        slow.putrequest("POST", "/api/v1/queue/enqueue")
        for name, value in {**key, "Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            slow.putheader(name, value)
        slow.endheaders(body[:5])
        with client.stream("GET", f"{url}/live", headers=key) as stream:
            lines = stream.iter_lines()
            assert next(lines)
            child.send_signal(signal.SIGTERM)
            assert any("closing" in line for line in lines)  # and then it ends, with a word to come again
        until_sync(lambda: refuses(place.host, place.port), "nothing new to be accepted")
        assert child.poll() is None
        slow.send(body[5:])
        answer = slow.getresponse()
        assert (answer.status, str(answer.headers["Location"])[:19]) == (201, "/shop/api/v1/queue/")
        answer.read()
    assert child.wait(30) == 0
    assert "Traceback" not in shop.log


def test_a_second_word_hurries(shop: Shop) -> None:
    child = shop.start("--store", shop.url, "serve", "shop:app", "--port", "0", "--worker")
    url, secret = served(shop)
    place = httpx.URL(url)
    with closing(HTTPConnection(place.host, place.port, timeout=30)) as slow:
        slow.putrequest("POST", "/api/v1/queue/enqueue")
        for name, value in {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}.items():
            slow.putheader(name, value)
        slow.putheader("Content-Length", "100")
        slow.endheaders(b"{")
        child.send_signal(signal.SIGTERM)
        until_sync(lambda: refuses(place.host, place.port), "nothing new to be accepted")
        assert child.poll() is None  # it waits for the rest
        child.send_signal(signal.SIGTERM)
        assert child.wait(8) == 0


def refuses(host: str, port: int | None) -> bool:
    try:
        socket.create_connection((host, port or 80), 1).close()
    except OSError:
        return True
    return False


def test_who_vouches_for_users_takes_the_place_of_keys(shop: Shop) -> None:
    proxies = {"WINDLASS_HTTP_PROXY_USER": "X-User", "WINDLASS_HTTP_PROXIES": "10.0.0"}
    wrong = shop.process("--store", shop.url, "serve", "--port", "0", env=proxies)
    assert (wrong.code, "WINDLASS_HTTP_PROXIES has '10.0.0'" in wrong.err) == (2, True)
    assert shop.process("--store", shop.url, "serve", "--root-path", "/a b").code == 2


def test_it_listens_beyond_this_machine_only_where_there_are_keys(shop: Shop) -> None:
    refused = shop.process("--store", shop.url, "serve", "--host", "0.0.0.0", "--port", "0")
    assert (refused.code, "there are no keys yet" in refused.err) == (5, True)


def test_a_place_that_is_taken_is_told_in_a_line_and_no_key_is_made(shop: Shop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = shop.process("--store", shop.url, "serve", "--port", port)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: cannot listen at 127.0.0.1, port ")
    assert len(refused.err.splitlines()) == 1
    assert "no keys yet" in shop.ok("keys")


def test_it_carries_out_orders_for_many_without_a_worker_and_goes_on_after_a_restart(shop: Shop) -> None:
    first = shop.start("--store", shop.url, "serve", "--port", "0")
    url, secret = served(shop)
    headers = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=url, headers=headers) as client:
        assert client.post("/queue/enqueue", json={"type": "hello", "delay": 3600}).status_code == 201
        client.post("/queues/windlass/pause")
        order = {"action": "cancel", "filter": {"status": "scheduled"}}
        begun = client.post("/queue/bulk", json=order).json()["id"]
    first.kill()
    first.wait(30)
    shop.ok("queues", "resume", "windlass")
    second = shop.start("--store", shop.url, "serve", "--port", "0")
    until_sync(lambda: '"succeeded"' in shop.ok("--json", "job", begun), "nobody has to ask for it to go on", within=20)
    second.send_signal(signal.SIGTERM)
    assert second.wait(30) == 0
