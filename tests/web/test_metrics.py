"""`/metrics` of the HTTP API: closed like the rest, and counted from the first scrape on."""

from __future__ import annotations

import httpx

from tests.observability.test_prometheus import samples, value
from tests.web.conftest import Ask

PLACE = "http://windlass/metrics"


async def test_only_a_key_that_reads_and_sees_all_is_told(ask: Ask) -> None:
    async with ask(None) as nobody, ask("*", ("enqueue", "operate")) as deaf, ask("ann", ("read",)) as one:
        assert [(await client.get(PLACE)).status_code for client in (nobody, deaf, one)] == [401, 403, 403]
    async with ask("*", ("read",)) as reader:
        assert (await reader.post(PLACE)).status_code == 405
        answer = await reader.get(PLACE)
    assert (answer.status_code, answer.headers["content-type"][:10]) == (200, "text/plain")
    assert answer.headers["cache-control"] == "no-store"


async def test_it_tells_of_what_was_enqueued_here_and_of_the_store(ask: Ask) -> None:
    async with ask("*") as client:
        assert value(samples((await client.get(PLACE)).text), "windlass_store_up") == 1
        for to in ("ada", "bob"):
            await client.post("/queue/enqueue", json={"type": "mail.send", "payload": {"to": to}})
        found = await read(client)
        assert value(found, "windlass_jobs_enqueued_total", type="mail.send", queue="mail") == 2
        openmetrics = await client.get(PLACE, headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text")
    assert openmetrics.text.endswith("# EOF\n")


async def read(client: httpx.AsyncClient) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return samples((await client.get(PLACE)).text)
