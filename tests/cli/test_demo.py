from __future__ import annotations

import logging
import re
import signal
import sqlite3
from contextlib import closing

import httpx
import pytest

from tests.cli.support import Shop
from tests.support.until import until_sync
from windlass.cli.demo_shop.serving import tell_what_fails

pytestmark = pytest.mark.timeout(90)


def test_the_demo_shows_ten_things_and_ends_well(shop: Shop) -> None:
    said = shop.process("demo")
    assert said.code == 0, said
    assert "10 steps as promised" in said.out
    assert "rows inserted, 52 refused, such as row 98: email: not a valid address (grace@)" in said.out
    assert "\x1b" not in said.out + said.err
    assert said.err == ""


def test_the_demo_on_a_given_store_leaves_its_jobs_to_look_at(shop: Shop) -> None:
    said = shop.process("demo", "--store", shop.url, "--json")
    assert said.code == 0, said
    assert len(said.fact["steps"]) == 10
    assert said.fact["jobs"]["hopeless"] == {"succeeded": 0, "failed": 1, "cancelled": 0}
    assert shop.call("jobs", "--status", "failed", "--namespace", "windlass_demo", "--json").fact["type"] == "hopeless"


def test_the_shop_can_be_looked_at_until_it_is_told_to_stop(shop: Shop) -> None:
    child = shop.start("demo", "--serve", "--port", "0", "--hours", "0.3")
    until_sync(lambda: "/open?token=" in shop.log, "the link", within=30)
    assert re.search(r"last 0.3 hours: \d+ jobs", shop.log)
    [link] = re.findall(r"http://\S+token=\S+", shop.log)
    with httpx.Client(follow_redirects=True, timeout=20) as client:
        assert client.get(link).status_code == 200
        api = link.partition("/dashboard")[0] + "/api/v1"
        queues = {one["name"]: one for one in client.get(f"{api}/queues").json()["items"]}
        assert {"mail", "orders", "imports", "newsletter", "fax"} <= queues.keys()
        assert queues["newsletter"]["pausedAt"]

        def jobs(status: str) -> int:
            return len(client.get(f"{api}/queue", params={"status": status, "limit": 100}).json()["items"])

        assert jobs("succeeded") > 20  # of the past, and from now on of the present
        until_sync(lambda: jobs("processing") > 0, "jobs to run")
        until_sync(lambda: jobs("blocked") > 2, "suppliers to wait for a person")
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == 0, shop.log
    assert "Traceback" not in shop.log


def test_the_bench_measures_and_cleans_up(shop: Shop) -> None:
    said = shop.process("bench", "--jobs", "400", "--store", shop.url, "--json")
    assert said.code == 0, said
    assert said.fact["run_per_s"] > 0
    assert set(said.fact) == {
        *(
            [
                "store",
                "jobs",
                "bulk_enqueue_per_s",
                "single_enqueue_per_s",
                "run_per_s",
                "pickup_p50_ms",
                "pickup_p99_ms",
            ]
        )
    }
    assert "measured" in shop.process("bench", "--jobs", "100").out
    assert not (shop.home / "windlass.db").exists()


def tables(shop: Shop) -> set[str]:
    with closing(sqlite3.connect(shop.home / "shop.db")) as db:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_master")}


def test_the_bench_leaves_nothing_behind_and_touches_nothing_else(shop: Shop) -> None:
    mine = ("--namespace", "mine")
    job_id = shop.ok("enqueue", "wait", *mine)
    before = tables(shop)
    assert shop.call("bench", "--jobs", "100", *mine).code == 0
    assert shop.call("jobs", *mine, "--json").fact["id"] == job_id
    assert tables(shop) == before


def test_a_request_that_fails_beside_the_shop_is_told_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("windlass.web")
    before = logger.handlers[:]
    try:
        tell_what_fails()
        logger.error("request 7: GET /imports failed: %s", "no such tag")
        logging.getLogger("windlass").error("a job of the shop failed")
    finally:
        logger.handlers[:] = before
    told = capsys.readouterr().err
    assert "GET /imports failed: no such tag" in told
    assert "a job of the shop" not in told
