"""A store that is away under `windlass serve`, with a stream open: what each asker is told, and that all goes on."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.support.servers import start_redis
from tests.support.serving import key_at, serving
from tests.support.until import until_sync

APP = """
from windlass import Windlass

app = Windlass()

@app.job(name="later")
async def later() -> None: ...
"""


@pytest.mark.timeout(90)
def test_a_store_that_stands_still_is_told_to_all_and_all_goes_on_after_it(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    with start_redis(own=True) as redis:
        key = {"Authorization": f"Bearer {key_at(redis.url)}"}
        with (
            serving(tmp_path, "shop:app", store=redis.url) as server,
            httpx.Client(base_url=server.url, headers=key, timeout=40) as client,
        ):
            job = client.post("/api/v1/queue/enqueue", json={"type": "later", "delay": 3600}).json()["id"]
            path, lines = f"/api/v1/queue/{job}", list[str]()
            listening = threading.Thread(target=listen, args=(f"{server.url}{path}/events", key, lines))
            listening.start()
            until_sync(lambda: any("event: via" in line for line in lines), "the stream to have begun")
            os.kill(redis.pid, signal.SIGSTOP)
            try:
                began = time.monotonic()
                assert client.get("/readyz").status_code == 503
                assert time.monotonic() - began < 5
                assert client.get("/healthz").status_code == 200
                refused = client.get(path)
                assert (refused.status_code, refused.headers["retry-after"].isdigit()) == (503, True)
                until_sync(lambda: any('"away"' in line for line in lines), "the stream to say so", within=20)
            finally:
                os.kill(redis.pid, signal.SIGCONT)
            until_sync(lambda: client.get("/readyz").status_code == 200, "the store to answer again", within=20)
            assert client.post(f"{path}/cancel", json={}).status_code == 200
            until_sync(lambda: any("event: end" in line for line in lines), "the stream to tell of it", within=20)
            listening.join(20)
            assert server.stopped() == 0
        assert "Task exception was never retrieved" not in server.log  # what failed is in the log, with where it did


def listen(url: str, key: dict[str, str], lines: list[str]) -> None:
    with httpx.stream("GET", url, headers=key, timeout=60) as stream:
        for line in stream.iter_lines():
            lines.append(line)  # noqa: PERF402  # each as it comes: others look at them meanwhile
