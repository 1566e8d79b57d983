"""`windlass audit`: whatever an operator does on the command line is written down, with who it was."""

from __future__ import annotations

import getpass
from typing import Any

import pytest

from tests.cli.support import Shop
from windlass import Windlass


def trail(shop: Shop, *words: str) -> list[dict[str, Any]]:
    """The entries, the oldest first."""
    return shop.call("--json", "audit", *words).facts[::-1]


def enqueued(shop: Shop, *words: str) -> str:
    id_: str = shop.call("--json", "enqueue", "hello", "--delay", "1h", *words).fact["id"]
    return id_


def test_what_is_done_to_one_thing_is_written_down_by_name(shop: Shop) -> None:
    first, second, third = enqueued(shop), enqueued(shop), enqueued(shop)
    key = shop.call("--json", "keys", "create", "x", "--owner", "ada").fact["id"]
    orders: list[tuple[list[str], str, str]] = [
        (["cancel", first, "--reason", "a slip"], "job.cancel", f"job:{first}"),
        (["retry", first], "job.retry", f"job:{first}"),
        (["delete", second], "job.delete", f"job:{second}"),
        (["signal", third, "go", "1"], "job.signal", f"job:{third}"),
        (["queues", "pause", "mail"], "queue.pause", "queue:mail"),
        (["queues", "resume", "mail"], "queue.resume", "queue:mail"),
        (["keys", "revoke", key], "key.revoke", f"key:{key}"),
        (["schedules", "put", "s", "--type", "hello", "--every", "1h"], "schedule.put", "schedule:s"),
        (["schedules", "pause", "s"], "schedule.pause", "schedule:s"),
        (["schedules", "resume", "s"], "schedule.resume", "schedule:s"),
        (["schedules", "run", "s"], "schedule.run", "schedule:s"),
        (["schedules", "remove", "s"], "schedule.remove", "schedule:s"),
    ]
    for words, _, _ in orders:
        assert shop.call("--actor", "ada", *words).code in (0, 4), words  # of a queue without jobs nothing is shown
    told = trail(shop)
    assert [(one["action"], one["object"]) for one in told] == [
        ("key.create", f"key:{key}"),
        *((action, object_) for _, action, object_ in orders),
    ]
    assert {one["actor"] for one in told[1:]} == {"ada"}
    assert told[0]["actor"] == getpass.getuser()
    assert all(one["origin"].startswith("cli") for one in told)
    assert told[1]["details"] == {"before": {"status": "cancelled"}, "reason": "a slip"} | told[1]["details"]
    assert told[5]["details"] == {"before": {"paused": False}, "after": {"paused": True}}


def test_what_is_done_to_many_is_written_down_once_with_its_filter_and_its_end(shop: Shop) -> None:
    for _ in range(3):
        enqueued(shop)
    shop.ok("cancel", "--status", "scheduled", "--dry-run")
    assert trail(shop) == []
    shop.ok("cancel", "--status", "scheduled", "--created-since", "1h", "--yes", "--limit", "2")
    [one] = trail(shop)
    assert (one["action"], one["object"]) == ("bulk.cancel.ended", "jobs")
    assert (one["details"]["done"], one["details"]["limit"]) == (2, 2)
    assert {"status", "created_since"} <= set(one["details"]["filter"])


def test_dead_letters_are_replayed_and_discarded_in_the_trail_without_their_payloads(shop: Shop) -> None:
    async def fail(app: Windlass) -> None:
        @app.job(name="nasty")
        async def nasty(text: str) -> None:
            raise ValueError(text)

        await app.enqueue_many(nasty.using(max_attempts=1).bind(text=f"s3cret{n}") for n in range(3))
        await app.worker(drain=True).run()

    shop.ask(fail)
    [first, *_] = [one["id"] for one in shop.call("--json", "jobs", "--status", "failed").facts]
    shop.ok("replay", first, "--edit", "text=s3cret9")
    shop.ok("replay", "--all", "--yes")
    shop.ok("discard", "--all", "--yes", "--reason", "a test")
    told = trail(shop)
    assert [one["action"] for one in told] == ["job.replay", "bulk.replay.ended", "bulk.discard.ended"]
    assert (told[0]["details"]["edited"], told[1]["details"]["replayed"]) == (["text"], 3)
    assert told[2]["details"]["discarded"] == 3
    assert "s3cret" not in str(told)


def test_entries_are_found_by_who_what_to_what_and_when(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_ACTOR", "eve")
    shop.call("queues", "pause", "mail")
    shop.call("--actor", "ada", "queues", "resume", "mail")
    shop.call("--actor", "ada", "queues", "pause", "other")
    assert [one["actor"] for one in trail(shop)] == ["eve", "ada", "ada"]
    assert [one["object"] for one in trail(shop, "--by", "ada")] == ["queue:mail", "queue:other"]
    assert len(trail(shop, "--action", "queue.pause", "--object", "queue:mail", "--since", "1h")) == 1
    assert trail(shop, "--until", "1h") == []
    assert [one["object"] for one in trail(shop, "--limit", "1")] == ["queue:other"]
    shown = shop.ok("audit")
    assert "queue.resume" in shown
    assert "ada" in shown
    refused = shop.call("--actor", "a\nb", "queues", "pause", "mail")
    assert (refused.code, "the actor" in refused.err) == (2, True)


def test_what_others_have_written_is_only_text_on_a_terminal(shop: Shop) -> None:
    async def write(app: Windlass) -> None:
        await app.audit.record("ada", "job.cancel", "job:1", details={"reason": "\x1b[2Jgone\nforged"})

    shop.ask(write)
    assert "\x1b" not in shop.ok("audit")
    assert len(shop.ok("audit").splitlines()) == 2
