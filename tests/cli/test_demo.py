from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tests.cli.support import Shop

pytestmark = pytest.mark.timeout(90)


def test_the_demo_shows_nine_things_and_ends_well(shop: Shop) -> None:
    said = shop.process("demo")
    assert said.code == 0, said
    assert "9 steps as promised" in said.out
    assert "\x1b" not in said.out + said.err
    assert said.err == ""


def test_the_demo_on_a_given_store_leaves_its_jobs_to_look_at(shop: Shop) -> None:
    said = shop.process("demo", "--store", shop.url, "--json")
    assert said.code == 0, said
    assert len(said.fact["steps"]) == 9
    assert said.fact["jobs"]["hopeless"] == {"succeeded": 0, "failed": 1, "cancelled": 0}
    assert shop.call("jobs", "--status", "failed", "--namespace", "windlass_demo", "--json").fact["type"] == "hopeless"


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
