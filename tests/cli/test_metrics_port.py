"""`windlass worker --metrics-port`: one page for all processes of a command, whatever becomes of them."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import httpx
import pytest

from tests.cli.support import Shop
from tests.observability.test_prometheus import Samples, samples
from tests.support.processes import descendants, ended
from tests.support.until import until_sync

pytestmark = pytest.mark.timeout(90)
TOKEN = "a token of thirty-two characters"


def page_of(shop: Shop) -> str:
    """Where the metrics are, once it is told."""
    until_sync(lambda: "metrics at http" in shop.log, "the port to be told", within=20)
    [url] = re.findall(r"metrics at (http://\S+/metrics)", shop.log)
    return str(url)


def read(url: str) -> Samples:
    return samples(httpx.get(url).text)


def total(url: str, name: str, **labels: str) -> float:
    return sum(n for (one, found), n in read(url).items() if one == name and labels.items() <= dict(found).items())


def test_processes_are_counted_together_and_a_killed_one_once(shop: Shop) -> None:
    for _ in range(6):
        shop.ok("enqueue", "hello")
    parent = shop.start("worker", "shop:app", "--processes", "2", "--concurrency", "3", "--metrics-port", "0")
    url = page_of(shop)
    shop.says("succeeded", times=6)
    done = ("windlass_jobs_ended_total", "hello", "succeeded")
    until_sync(lambda: total(url, done[0], type=done[1], outcome=done[2]) == 6, "all six to be counted")
    until_sync(lambda: total(url, "windlass_slots") == 6, "both processes to tell of their slots")
    assert total(url, "windlass_processes") == 2

    first, second = (one for one in descendants(parent.pid) if not ended(one))
    os.kill(first.pid, signal.SIGKILL)
    shop.says("was ended by SIGKILL; starting another in")
    until_sync(lambda: total(url, "windlass_slots") == 3, "its slots to be gone")
    assert total(url, done[0], type=done[1], outcome=done[2]) == 6
    os.kill(second.pid, signal.SIGKILL)
    shop.says("ready", times=4)
    assert total(url, done[0], type=done[1], outcome=done[2]) == 6
    shop.ok("enqueue", "hello")
    until_sync(lambda: total(url, done[0], type=done[1], outcome=done[2]) == 7, "the next one to be counted")
    assert total(url, "windlass_queue_jobs", status="succeeded") >= 6
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(20) == 0


def test_a_blocked_event_loop_keeps_nobody_from_the_metrics(shop: Shop) -> None:
    (shop.home / "mud.py").write_text(
        "import time\nfrom shop import app\n@app.job\nasync def stand() -> None:\n"
        "    print('stands', flush=True)\n    time.sleep(3)\n"
    )
    shop.ok("enqueue", "stand")
    child = shop.start("worker", "mud:app", "--metrics-port", "0")
    url = page_of(shop)
    shop.says("stands")
    until_sync(lambda: total(url, "windlass_jobs_started_total", type="stand") == 1, "the job to be counted", within=2)
    assert "succeeded stand" not in shop.log
    assert total(url, "windlass_store_up") == 1
    child.send_signal(signal.SIGTERM)
    assert child.wait(20) == 0


def test_who_may_read_it(shop: Shop) -> None:
    """On this machine anybody, but no page of another site; elsewhere who has the token."""
    child = shop.start("worker", "shop:app", "--metrics-port", "0", "--log-format", "json")
    url = page_of(shop)
    assert httpx.get(url).status_code == 200
    assert httpx.get(url, headers={"Host": "evil.example"}).status_code == 421
    assert httpx.post(url).status_code == 405
    assert httpx.get(url.replace("/metrics", "/")).status_code == 404
    assert httpx.get(url, headers={"X": "x" * 20_000}).status_code == 431
    openmetrics = httpx.get(url, headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert openmetrics.text.endswith("# EOF\n")
    child.send_signal(signal.SIGTERM)
    assert child.wait(20) == 0

    words = ("worker", "shop:app", "--metrics-port", "0", "--metrics-host", "0.0.0.0", "--drain")
    refused = shop.process(*words)
    assert (refused.code, "set WINDLASS_METRICS_TOKEN" in refused.err) == (5, True), refused
    (shop.home / "windlass.toml").write_text(f'metrics_token = "{TOKEN}"\n')
    (shop.home / "log").unlink()
    child = shop.start(*words[:-1])
    url = page_of(shop).replace("0.0.0.0", "127.0.0.1")
    assert httpx.get(url).status_code == 401
    assert httpx.get(url, headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert httpx.get(url, headers={"Authorization": f"Bearer {TOKEN}", "Host": "worker-1"}).status_code == 200
    assert TOKEN not in shop.log
    child.send_signal(signal.SIGTERM)
    assert child.wait(20) == 0


def test_a_port_that_is_taken_is_told(shop: Shop, tmp_path: Path) -> None:
    child = shop.start("worker", "shop:app", "--metrics-port", "0")
    port = page_of(shop).rpartition(":")[2].partition("/")[0]
    said = shop.process("worker", "shop:app", "--metrics-port", port)
    assert said.code == 1
    assert "choose another --metrics-host or --metrics-port" in said.err
    child.send_signal(signal.SIGTERM)
    assert child.wait(20) == 0
