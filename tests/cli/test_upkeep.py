from __future__ import annotations

import sqlite3
from contextlib import closing

from tests.cli.support import Shop
from windlass.stores.sqlite.schema import MIGRATIONS


def test_migrate_makes_the_store_and_may_be_repeated(shop: Shop) -> None:
    first = shop.process("migrate", "--store", "sqlite:///new.db", "--json")
    assert first.fact["version"] >= 1
    assert set(first.fact) == {"store", "version", "steps", "dry_run", "duration_ms"}
    again = shop.process("migrate", "--store", "sqlite:///new.db")
    assert f"is at schema version {first.fact['version']}" in again.out


def test_a_dry_run_makes_nothing(shop: Shop) -> None:
    said = shop.process("migrate", "--dry-run", "--store", "sqlite:///new.db")
    assert "would be made" in said.out
    assert not (shop.home / "new.db").exists()


def test_a_dry_run_names_the_steps_for_a_file_of_somebody_else_and_leaves_it_alone(shop: Shop) -> None:
    with closing(sqlite3.connect(shop.home / "theirs.db")) as db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        said = shop.process("migrate", "--dry-run", "--store", "sqlite:///theirs.db", "--json")
        steps = list(MIGRATIONS)
        assert (said.fact["version"], said.fact["steps"], said.fact["dry_run"]) == (0, steps, True)
        assert db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall() == [("orders",)]
        said = shop.process("migrate", "--store", "sqlite:///theirs.db")
        assert all(f"ran {step}" in said.out for step in steps)
        assert ("windlass_jobs",) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()


def test_the_statements_are_printed_and_not_run(shop: Shop) -> None:
    said = shop.process("migrate", "--sql", "--store", "sqlite:///new.db", "--namespace", "mine")
    assert "CREATE TABLE" in said.out
    assert "mine_jobs" in said.out
    assert not (shop.home / "new.db").exists()


def test_prune_counts_and_leaves_what_is_young(shop: Shop) -> None:
    shop.ok("cancel", shop.ok("enqueue", "send"))
    assert shop.ok("prune", "--dry-run") == "0 jobs would be pruned"
    assert shop.call("prune", "--json").fact == {"pruned": 0, "dry_run": False}


def test_stats_count_and_measure(shop: Shop) -> None:
    shop.ok("enqueue", "hello")
    assert "queued 1" in shop.ok("stats")
    assert "nothing ended" in shop.ok("stats")
    shop.process("worker", "shop:app", "--drain")
    said = shop.ok("stats", "--since", "1h")
    assert "hello" in said
    assert "1 runs" not in said
    assert "errors 0.0%  failed 0, 0 in the last hour" in said
    assert said.splitlines()[-2].split()[:2] == ["type", "waited"]
    told = shop.call("stats", "--by", "queue", "--json").fact
    assert {"at", "counted_at", "finished_counted_at", "since_ms", "by", "counts", "figures"} <= set(told)
    assert (told["failed_last_hour"], told["total"]["runs"], sum(one["succeeded"] for one in told["series"])) == (
        0,
        1,
        1,
    )
    assert [(one["queue"], one["type"], one["status"], one["runs"]) for one in told["kinds"]] == [
        ("default", "hello", "succeeded", 1)
    ]
    [figures] = told["figures"]
    assert (figures["queue"], figures["runs"], figures["succeeded"], figures["error_rate"]) == ("default", 1, 1, 0.0)
    assert {"run_p50_ms", "run_p95_ms", "run_p99_ms", "run_max_ms", "wait_avg_ms", "wait_p95_ms", "per_minute"} <= set(
        figures
    )
    assert shop.call("stats", "--user", "ann", "--json").fact["total"]["runs"] == 0
    shop.ok("enqueue", "hello", "--user", "ann")
    shop.process("worker", "shop:app", "--drain")
    hers = shop.call("stats", "--user", "ann", "--json").fact
    assert (hers["user"], hers["total"]["runs"], shop.call("stats", "--json").fact["total"]["runs"]) == ("ann", 1, 2)
    assert shop.call("stats", "--since", "ever").code == 2
    assert shop.call("stats", "--by", "colour").code == 2
