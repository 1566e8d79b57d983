from __future__ import annotations

import json
import sqlite3

import pytest

from tests.cli.support import Shop
from windlass import Windlass
from windlass.stores.contract import WorkerInfo

NASTY = "\x1b[2J\x1b]0;pwn\x07 \u202eevil\r\nerror: forged [bold red]x[/]"
NOBODY = "0190a3c4-5d6e-7f80-9123-456789abcdef"


def test_jobs_are_listed_newest_first_and_filtered(shop: Shop) -> None:
    first = shop.ok("enqueue", "send", "--user", "u1", "--entity", "order:1")
    second = shop.ok("enqueue", "report", "-q", "slow", "--correlation", "c")
    assert [one["id"] for one in shop.call("jobs", "--json").facts] == [second, first]
    for words in (["--type", "send"], ["--user", "u1"], ["--entity", "order:1"], ["--queue", "default"]):
        assert shop.call("jobs", "--json", *words).fact["id"] == first
    assert shop.call("jobs", "--json", "--correlation", "c", "--status", "queued").fact["id"] == second
    assert shop.call("jobs", "--status", "failed").out == "no jobs match\n"
    assert shop.call("jobs", "--status", "failed", "--json").out == ""


def test_jobs_are_found_by_every_filter_option(shop: Shop) -> None:
    first = shop.ok("enqueue", "mail.send")
    second = shop.ok("enqueue", "report", "--in", "1h")
    for words in (
        ["--type", "mail.*"],
        ["--status", "queued", "--status", "failed"],
        ["--status", "queued", "--attempts-at-most", "0", "--created-since", "1h", "--created-before", "2999-01-01"],
    ):
        assert shop.call("jobs", "--json", *words).fact["id"] == first
    for words in (["--tag", "x"], ["--worker", "w"], ["--unique-key", "k"], ["--finished-since", "1h"]):
        assert shop.call("jobs", "--json", *words).facts == []
    assert [one["id"] for one in shop.call("jobs", "--json", "--oldest-first").facts] == [first, second]
    assert shop.call("cancel", "--type", "mail.*", "--status", "queued", "--status", "scheduled", "--yes").code == 0
    assert shop.call("jobs", "--json", "--status", "cancelled").fact["id"] == first


def test_pages_follow_each_other(shop: Shop) -> None:
    ids = [shop.ok("enqueue", "send") for _ in range(3)][::-1]
    said = shop.call("jobs", "--limit", "2").out
    assert ids[0] in said
    assert f"2 jobs of 3; more with --after {ids[1]}" in said
    assert shop.call("jobs", "--after", ids[1], "--json").fact["id"] == ids[2]


@pytest.mark.parametrize(
    "words",
    [
        ["--status", "asleep"],
        ["--limit", "0"],
        ["--limit", "1001"],
        ["--after", "x"],
        ["--entity", "x"],
        ["--created-since", "soon"],
        ["--fingerprint", "x"],
        ["--type", "*"],
    ],
)
def test_a_bad_filter_is_a_usage_error(words: list[str], shop: Shop) -> None:
    assert shop.call("jobs", *words).code == 2


def test_the_keys_of_a_job_stay(shop: Shop) -> None:
    job_id = shop.ok("enqueue", "send", "a=1", "--in", "1h")
    assert set(shop.call("jobs", "--json").fact) == {
        *(
            [
                "id",
                "type",
                "queue",
                "status",
                "priority",
                "attempts",
                "max_attempts",
                "crashes",
                "max_crashes",
                "created_at",
                "run_at",
                "queued_at",
            ]
        ),
        *(
            [
                "started_at",
                "finished_at",
                "cancel_requested_at",
                "lease_expires_at",
                "wait_ms",
                "duration_ms",
                "timeout_ms",
            ]
        ),
        *(
            [
                "worker_id",
                "lease_token",
                "blocked_by",
                "unique_key",
                "limit_key",
                "schedule",
                "tick",
                "parent_id",
                "replay_of",
                "origin",
                "expires_at",
            ]
        ),
        *(["user", "entity", "correlation", "trace_id", "tags", "progress", "error"]),
    }
    told = shop.call("job", job_id, "--json").fact
    assert (told["payload"], told["result"], told["status"]) == ({"a": 1}, None, "scheduled")
    assert [one["happened"] for one in told["history"]] == ["enqueued"]
    assert set(told["history"][0]) == {"number", "at", "happened", "status", "actor", "token", "note"}


@pytest.mark.timeout(60)
def test_what_a_job_contains_cannot_steer_the_terminal(shop: Shop) -> None:
    job_id = shop.ok("enqueue", "nasty", json.dumps({"text": NASTY}), "-q", "mail", "--max-attempts", "1")
    shop.process("worker", "shop:app", "--drain")
    for words in (
        ["job", job_id],
        ["job", job_id, "--traceback", "--payload"],
        ["jobs"],
        ["explain", job_id],
        ["wait", job_id],
    ):
        said = shop.process(*words, "--store", shop.url)
        printed = said.out + said.err
        assert not any(one in printed for one in "\x1b\x07\u202e\r"), words
        assert "\nerror: forged" not in printed
    assert "[bold red]x[/]" in shop.ok("job", job_id)
    assert shop.call("job", job_id, "--json").fact["error"]["message"] == NASTY


@pytest.mark.timeout(60)
def test_a_job_is_shown_with_its_timeline(shop: Shop) -> None:
    job_id = shop.ok("enqueue", "hello", "name=Ann", "--user", "u1", "--tag", "vip", "--entity", "order:42")
    waiting = shop.ok("job", job_id)
    assert f"next: windlass explain {job_id}" in waiting
    shop.process("worker", "shop:app", "--drain")
    said = shop.ok("job", job_id)
    lines = said.splitlines()
    assert lines[0] == "hello  SUCCEEDED  queue=default  priority=100  user=u1  entity=order:42  attempts 1/5"
    assert '{"name":"Ann"}' in said
    assert '"hello Ann"' in said
    assert any(line.startswith("waited ") and " | ran " in line for line in lines)
    happened = lines[lines.index("TIMELINE (store clock, UTC)") + 1 :]
    assert [word for line in happened for word in line.split() if word in ("enqueued", "claimed", "succeeded")] == [
        "enqueued",
        "claimed",
        "succeeded",
    ]
    assert "lease 1" in happened[1]


@pytest.mark.timeout(60)
def test_a_traceback_is_shown_when_asked_for(shop: Shop) -> None:
    job_id = shop.ok("enqueue", "bad", "--max-attempts", "1")
    shop.process("worker", "shop:app", "--drain")
    assert "Traceback" not in shop.ok("job", job_id)
    assert "--traceback" in shop.ok("job", job_id)
    assert 'raise ValueError("no good")' in shop.ok("job", job_id, "--traceback")


def test_a_job_that_is_not_there_is_code_4(shop: Shop) -> None:
    for command in ("job", "explain"):
        said = shop.call(command, NOBODY)
        assert (said.code, said.out) == (4, "")
        assert said.err.startswith("error: no job has the id")
        assert shop.call(command, "01JCX7").code == 2


def test_workers_are_listed_with_what_they_are(shop: Shop) -> None:
    assert "no workers" in shop.ok("workers")

    async def beat(app: Windlass) -> None:
        one = WorkerInfo(
            id="w1", host="h", pid=1, version="1", queues=("mail",), types=("a", "b"), slots=4, running=2, stuck=1
        )
        await app.store.workers.beat(one)

    shop.ask(beat)
    said = shop.ok("workers")
    assert all(part in said for part in ("w1", "working", "2/4 (1 stuck)", "mail", "a, b"))
    told = shop.call("workers", "--json").fact
    assert (told["id"], told["alive"], told["slots"], told["types"]) == ("w1", True, 4, ["a", "b"])


def test_piped_output_has_no_control_codes(shop: Shop) -> None:
    shop.ok("enqueue", "send")
    for words in (["jobs"], ["queues"], ["doctor"], ["stats"], ["workers"], ["schedules"]):
        said = shop.process(*words, "--store", shop.url, env={"FORCE_COLOR": "", "TERM": "xterm-256color"})
        assert "\x1b" not in said.out + said.err, words


def test_workers_that_went_silent_are_forgotten_when_that_is_asked_for(shop: Shop) -> None:
    one = WorkerInfo(id="w1", host="h", pid=1, version="1", queues=(), types=(), slots=1, running=0)

    async def beat(app: Windlass) -> None:
        await app.store.workers.beat(one)

    shop.ask(beat)
    assert "0 silent workers forgotten" in shop.ok("workers", "--forget")
    with sqlite3.connect(shop.home / "shop.db") as db:
        db.execute("UPDATE windlass_workers SET beat_at = beat_at - 60000")
    db.close()
    assert shop.call("workers", "--json").fact["alive"] is False
    assert "dead?" in shop.ok("workers")
    said = shop.ok("workers", "--forget")
    assert "1 silent worker forgotten" in said
    assert "no workers" in said
