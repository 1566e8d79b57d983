from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.cli.support import Shop
from windlass import Job, Windlass


def stored(shop: Shop, job_id: str) -> Job:
    async def get(app: Windlass) -> Job:
        return await app.jobs.get(job_id)

    return shop.ask(get)


def test_it_prints_the_id_and_stores_the_payload(shop: Shop) -> None:
    job_id = shop.ok("enqueue", "send", "order=42", "to=a@example.com", "copy=true", 'items=["a"]')
    assert stored(shop, job_id).payload == {"order": 42, "to": "a@example.com", "copy": True, "items": ["a"]}


def test_a_payload_may_be_json_a_file_or_standard_input(shop: Shop) -> None:
    (shop.home / "payload.json").write_text('{"n": 1}')
    given = (
        shop.ok("enqueue", "send", '{"n": 1}'),
        shop.ok("enqueue", "send", f"@{shop.home / 'payload.json'}"),
        shop.process("enqueue", "send", "-", "--store", shop.url, stdin='{"n": 1}').out.strip(),
    )
    assert [stored(shop, one).payload for one in given] == [{"n": 1}] * 3


@pytest.mark.parametrize("words", [["{nope"], ["@missing.json"], ["word"], ["a=1", "word"], ["=1"]])
def test_an_unreadable_payload_is_a_usage_error(words: list[str], shop: Shop) -> None:
    said = shop.call("enqueue", "send", *words)
    assert said.code == 2
    assert said.err.startswith("error: the payload")


def test_options_reach_the_job(shop: Shop) -> None:
    words = "-q vip --priority high --in 5m --unique k --max-attempts 2 --timeout 10s --user u1"
    words += " --entity order:42 --correlation c1 --tag a --tag b"
    job = stored(shop, shop.ok("enqueue", "send", *words.split()))
    assert (job.queue, job.priority, job.max_attempts, job.user_id) == ("vip", 50, 2, "u1")
    assert (job.entity_name, job.entity_id, job.correlation_id, job.tags) == ("order", "42", "c1", ("a", "b"))
    assert job.timeout == timedelta(seconds=10)
    assert job.run_at - job.created_at == timedelta(minutes=5)
    assert job.unique_key == "k"


def test_a_job_that_expires_says_so(shop: Shop) -> None:
    job = stored(shop, job_id := shop.ok("enqueue", "send", "--expires", "10m"))
    assert job.expires_at is not None
    assert job.expires_at - job.created_at == timedelta(minutes=10)
    assert f"{job.expires_at:%Y-%m-%d %H:%M:%S} if no worker has taken it by then" in shop.ok("job", job_id)
    assert shop.call("job", job_id, "--json").fact["expires_at"] is not None
    assert "It expires in" in shop.ok("explain", job_id)


def test_a_negative_priority_and_a_time_are_understood(shop: Shop) -> None:
    job = stored(shop, shop.ok("enqueue", "send", "--priority=-5", "--at", "2100-01-01T00:00+00:00"))
    assert (job.priority, job.status, job.run_at.year) == (-5, "scheduled", 2100)


@pytest.mark.parametrize(
    "words",
    [
        ["--priority", "urgent"],
        ["--in", "soon"],
        ["--at", "soon"],
        ["--entity", "order"],
        ["--in", "1s", "--at", "2100-01-01"],
        ["--in", "10m", "--expires", "5m"],
        ["--expires", "2100-01-01"],
    ],
)
def test_a_bad_option_is_a_usage_error(words: list[str], shop: Shop) -> None:
    assert shop.call("enqueue", "send", *words).code == 2


def test_a_duplicate_says_that_nothing_was_enqueued(shop: Shop) -> None:
    first = shop.ok("enqueue", "send", "--unique", "k")
    again = shop.call("enqueue", "send", "--unique", "k", "--json").fact
    assert again == {"id": first, "created": False}
    assert "was there already" in shop.call("enqueue", "send", "--unique", "k").out
    assert shop.ok("enqueue", "send", "--unique", "k", "--quiet") == first
    assert shop.ok("enqueue", "same", "--idempotent") == shop.ok("enqueue", "same", "--idempotent").split()[0]


def test_a_payload_that_does_not_fit_the_handler_is_refused(shop: Shop) -> None:
    said = shop.process("enqueue", "hello", "name=[1]", "--app", "shop:app")
    assert said.code == 2
    assert "name" in said.err


def test_waiting_gives_up_when_told_to(shop: Shop) -> None:
    said = shop.call("enqueue", "send", "--wait", "--timeout-wait", "50ms")
    assert said.code == 1
    assert "gave up waiting" in said.err


@pytest.mark.timeout(60)
def test_waiting_ends_with_the_jobs_outcome(shop: Shop) -> None:
    shop.start("worker", "shop:app")
    good = shop.process("enqueue", "steps", "--follow", "--app", "shop:app")
    assert good.code == 0, good
    assert "claimed" in good.out
    assert "progress" in good.out
    assert good.out.splitlines()[-1].strip() == "3"
    assert "\x1b" not in good.out + good.err
    bad = shop.call("enqueue", "nasty", "text=no", "--wait", "-q", "mail")
    assert bad.code == 6, bad
    assert "Reject: no" in bad.out
    failed = bad.out.split()[0]
    assert shop.call("wait", failed).code == 6
    told = shop.call("wait", failed, good.out.split()[0], "--json")
    assert told.code == 6
    assert [one["status"] for one in told.facts] == ["failed", "succeeded"]
    assert told.facts[1]["result"] == 3
    events = shop.call("wait", failed, "--follow", "--json").facts
    assert [one["happened"] for one in events[:-1]] == ["enqueued", "claimed", "failed"]


def test_waiting_for_a_job_that_is_not_there(shop: Shop) -> None:
    assert shop.call("wait", "0190a3c4-5d6e-7f80-9123-456789abcdef").code == 4
    assert shop.call("wait", "nonsense").code == 2


def test_a_quiet_enqueue_prints_the_id_alone(shop: Shop) -> None:
    said = shop.call("enqueue", "send", "--quiet")
    assert len(said.out.split()) == 1
    assert json.loads(shop.call("enqueue", "send", "--json").out)["created"] is True
