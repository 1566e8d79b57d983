"""A store that is away under `windlass serve`, with a stream open: what each asker is told, and that all goes on."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.contract.places import Place
from tests.control.conftest import address
from tests.support.serving import key_at, serving
from tests.support.until import until_sync
from windlass.chaos.absence import absence

APP = """
from windlass import Windlass

app = Windlass()

@app.job(name="later")
async def later() -> None: ...
"""


WITHIN = 2
"""seconds that the store may take for an answer"""


@pytest.mark.timeout(90)
def test_a_store_that_is_away_is_told_to_all_and_all_goes_on_after_it(place: Place, tmp_path: Path) -> None:
    """Of a server no answer comes; the file of SQLite is held by somebody who writes, and can be read meanwhile."""
    url, namespace = address(place)
    written = url.startswith("sqlite")
    (tmp_path / "shop.py").write_text(APP)
    key = {"Authorization": f"Bearer {key_at(url, namespace=namespace)}"}
    with absence(url) as store, ExitStack() as stack:
        there = f"{store.url}{'&' if '?' in store.url else '?'}timeout={WITHIN}"
        environment = {"WINDLASS_NAMESPACE": namespace}
        server = stack.enter_context(serving(tmp_path, "shop:app", store=there, environment=environment))
        client = stack.enter_context(httpx.Client(base_url=server.url, headers=key, timeout=40))
        later = {"type": "later", "delay": 3600}
        job = client.post("/api/v1/queue/enqueue", json=later).json()["id"]
        path, lines = f"/api/v1/queue/{job}", list[str]()
        listening = threading.Thread(target=listen, args=(f"{server.url}{path}/events", key, lines))
        listening.start()
        until_sync(lambda: any("event: via" in line for line in lines), "the stream to have begun")
        store.begin()
        try:
            refused = client.post("/api/v1/queue/enqueue", json=later)
            assert (refused.status_code, refused.headers["retry-after"].isdigit()) == (503, True)
            assert client.get("/healthz").status_code == 200
            assert client.get("/readyz").status_code == (200 if written else 503)
            assert client.get(path).status_code == (200 if written else 503)
            if not written:
                until_sync(lambda: any('"away"' in line for line in lines), "the stream to say so", within=20)
        finally:
            store.end()
        until_sync(lambda: client.get("/readyz").status_code == 200, "the store to answer again", within=20)
        until_sync(lambda: client.post(f"{path}/cancel", json={}).status_code in (200, 409), "an order", within=20)
        until_sync(lambda: any("event: end" in line for line in lines), "the stream to tell of it", within=20)
        listening.join(20)
        assert server.stopped() == 0
        assert "Task exception was never retrieved" not in server.log  # what failed is in the log, with where it did


def listen(url: str, key: dict[str, str], lines: list[str]) -> None:
    with httpx.stream("GET", url, headers=key, timeout=60) as stream:
        for line in stream.iter_lines():
            lines.append(line)  # noqa: PERF402  # each as it comes: others look at them meanwhile
