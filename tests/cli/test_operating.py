from __future__ import annotations

import pytest

from tests.cli.support import Shop

NOBODY = "0190a3c4-5d6e-7f80-9123-456789abcdef"


def status(shop: Shop, job_id: str) -> str:
    found: str = shop.call("job", job_id, "--json").fact["status"]
    return found


def test_one_job_is_cancelled_retried_and_deleted(shop: Shop) -> None:
    job_id = shop.ok("enqueue", "send")
    assert shop.ok("cancel", job_id, "--reason", "wrong") == f"{job_id}  cancelled"
    assert shop.call("job", job_id, "--json").fact["history"][-1]["note"] == "wrong"
    assert shop.call("cancel", job_id).code == 5
    assert shop.ok("retry", job_id) == f"{job_id}  queued again"
    assert status(shop, job_id) == "queued"
    assert shop.call("delete", job_id, "--json").fact == {
        "id": job_id,
        "verdict": "done",
        "status": "queued",
        "holder": None,
    }
    assert shop.call("delete", job_id).code == 4


def test_a_retry_that_meets_a_held_key_names_the_holder(shop: Shop) -> None:
    old = shop.ok("enqueue", "send", "--unique", "k")
    shop.ok("cancel", old)
    holder = shop.ok("enqueue", "send", "--unique", "k")
    said = shop.call("retry", old)
    assert said.code == 5
    assert holder in said.out


@pytest.mark.parametrize("command", ["retry", "cancel", "delete"])
def test_a_bulk_command_needs_a_filter_and_a_word(command: str, shop: Shop) -> None:
    shop.ok("enqueue", "send", "--in", "1h")
    assert shop.call(command).code == 2
    assert shop.call(command, NOBODY, "--all").code == 2
    said = shop.process(command, "--status", "scheduled", "--store", shop.url, stdin="")
    assert said.code == 5
    assert f"this would {command} 1 job: add --yes" in said.err
    assert shop.call("jobs", "--json").fact["status"] == "scheduled"


@pytest.mark.parametrize("command", ["retry", "cancel", "delete", "discard", "replay"])
def test_a_filter_that_is_empty_by_accident_is_refused(command: str, shop: Shop) -> None:
    job_id = shop.ok("enqueue", "send", "--in", "1h")
    for option in ("--user", "--queue", "--type", "--correlation", "--entity"):
        said = shop.call(command, option, "", "--yes")
        assert said.code == 2
        assert "is ''" in said.err
    assert shop.call(command, "--colour", "red", "--yes").code == 2
    assert status(shop, job_id) == "scheduled"


def test_a_bulk_command_does_all_that_match_and_says_how_many(shop: Shop) -> None:
    for number in range(7):
        shop.ok("enqueue", "send" if number < 5 else "other")
    assert shop.ok("cancel", "--type", "send", "--yes") == "5 jobs cancelled"
    told = shop.call("cancel", "--all", "--yes", "--json").fact
    assert told == {
        "action": "cancel",
        "matched": 7,
        "exact": True,
        "done": 2,
        "requested": 0,
        "refused": 5,
        "duplicate": 0,
        "missing": 0,
        "dry_run": False,
    }
    assert shop.ok("retry", "--status", "cancelled", "--type", "other", "-y") == "2 jobs queued again"
    assert shop.ok("delete", "--all", "--yes") == "7 jobs deleted"
    assert shop.ok("delete", "--all", "--yes") == "no jobs match"
    assert shop.call("delete", "--all", "--yes", "--json").fact["matched"] == 0


def test_a_dry_run_only_counts_and_a_limit_takes_the_newest(shop: Shop) -> None:
    ids = [shop.ok("enqueue", "send") for _ in range(3)]
    assert shop.ok("cancel", "--type", "send", "--dry-run") == "3 jobs match; nothing was changed"
    assert shop.ok("delete", "--type", "send", "--limit", "1", "--dry-run") == "1 job matches; nothing was changed"
    told = shop.call("retry", "--type", "send", "--dry-run", "--json").fact
    assert (told["matched"], told["exact"], told["done"], told["dry_run"]) == (3, True, 0, True)
    assert [status(shop, one) for one in ids] == ["queued"] * 3
    assert shop.ok("cancel", "--all", "-n", "2", "-y") == "2 jobs cancelled"
    assert [status(shop, one) for one in ids] == ["queued", "cancelled", "cancelled"]
    assert shop.call("cancel", ids[0], "--dry-run").code == 2


@pytest.mark.parametrize(("typed", "code", "status"), [("n\n", 5, "queued"), ("y\n", 0, "cancelled")])
def test_on_a_terminal_it_asks(typed: str, code: int, status: str, shop: Shop) -> None:
    shop.ok("enqueue", "send")
    said = shop.terminal("cancel", "--all", typed=typed)
    assert said.code == code, said
    assert "cancel 1 job? [y/N]" in said.out
    assert shop.call("jobs", "--json").fact["status"] == status


def test_queues_are_listed_paused_and_resumed(shop: Shop) -> None:
    assert "no queues" in shop.ok("queues")
    shop.ok("enqueue", "send", "-q", "mail")
    told = shop.call("queues", "--json").fact
    assert set(told) == {"name", "paused_at", "max_depth", "depth", "depth_exact", "processing", "oldest_ms"}
    assert (told["name"], told["depth"], told["paused_at"]) == ("mail", 1, None)
    assert "paused" in shop.ok("queues", "pause", "mail")
    assert shop.call("queues", "list", "--json").fact["paused_at"] is not None
    assert "open" in shop.ok("queues", "resume", "mail")
    assert shop.call("queues", "pause").code == 2
    assert shop.call("queues", "empty", "mail").code == 2
    assert shop.call("queues", "list", "nope").code == 4
