from __future__ import annotations

import pytest

from tests.cli.support import Shop
from tests.support.drafts import draft, want
from windlass import Windlass
from windlass.core.job import Error
from windlass.core.outcome import Failed
from windlass.core.transition import decide


def fail(shop: Shop, *messages: str, type_: str = "hello", payload: str = '{"name":"ada"}') -> list[str]:
    """Failed jobs with these errors, in order; their ids."""

    async def work(app: Windlass) -> list[str]:
        ids: list[str] = []
        for message in messages:
            one = draft(type_, payload, queue="mail", max_attempts=1)
            await app.store.jobs.insert([one])
            [job] = await app.store.jobs.claim(want(1, types={type_}))
            await app.store.jobs.apply([decide(job, Failed(Error(type="Oops", message=message)))])
            ids.append(one.id)
        return ids

    return shop.ask(work)


def test_failed_jobs_are_shown_by_what_went_wrong(shop: Shop) -> None:
    assert shop.ok("dead") == "no failed jobs"
    ids = fail(shop, "order 1 is gone", "order 2 is gone", "closed \x1b[31m")
    said = shop.ok("dead")
    assert all(part in said for part in ("fingerprint", "Oops: order 2 is gone", ids[1], "3 failed jobs of 2 kinds"))
    assert "\x1b" not in said
    [first, second] = shop.call("dead", "--json").facts
    assert (first["count"], first["example"], first["error"]["message"]) == (2, ids[1], "order 2 is gone")
    assert (first["complete"], first["looked_at"], second["count"]) == (True, 3, 1)
    assert "not looked at: see --most" in shop.ok("dead", "--most", "1")
    assert shop.ok("dead", "--queue", "other") == "no failed jobs"

    found = shop.call("dead", "--fingerprint", first["fingerprint"], "--json").facts
    assert [one["id"] for one in found] == ids[1::-1]
    said = shop.ok("dead", "-f", first["fingerprint"], "-n", "1")
    assert ids[1] in said
    assert "there are more" in said
    assert "no failed job among 3 jobs" in shop.ok("dead", "-f", "0" * 12)
    assert shop.call("dead", "-f", "boom").code == 2


def test_jobs_are_replayed_by_id_once(shop: Shop) -> None:
    [one] = fail(shop, "no")
    told = shop.call("replay", one, "--json").fact
    assert (told["id"], told["created"]) == (one, True)
    again = shop.call("replay", one, "--json").fact
    assert (again["replay"], again["created"]) == (told["replay"], False)
    assert "not replayed" in shop.ok("replay", one)
    edited = shop.call("replay", one, "--edit", "name=grace", "--json").fact
    assert edited["created"]
    assert shop.call("job", edited["replay"], "--json").fact["payload"] == {"name": "grace"}
    whole = shop.call("replay", one, "--payload", '{"name": "x"}', "--app", "shop:app", "--json").fact
    assert shop.call("job", whole["replay"], "--json").fact["replay_of"] == one
    assert shop.call("replay", one, "--edit", "colour=red", "--app", "shop:app").code == 2
    assert shop.call("replay", one, "--payload", "text").code == 2


def test_each_of_several_ids_is_tried_and_the_code_tells_of_the_worst(shop: Shop) -> None:
    [one] = fail(shop, "no")
    waiting = shop.ok("enqueue", "hello")
    missing = "0190a3c4-5d6e-7f80-9123-456789abcdef"
    said = shop.call("replay", missing, waiting, one)
    assert said.code == 4
    assert "no job has the id" in said.out
    assert "is queued: it cannot be moved to replayed" in said.out
    assert f"{one}  replayed as job" in said.out
    assert shop.call("discard", waiting, one).code == 5
    assert shop.call("job", one).code == 4
    assert shop.call("job", waiting).code == 0


def test_jobs_are_replayed_by_filter_after_a_question(shop: Shop) -> None:
    fail(shop, *[f"order {n} is gone" for n in range(4)])
    fail(shop, "closed")
    print_ = shop.call("dead", "--json").facts[0]["fingerprint"]
    assert shop.ok("replay", "-f", print_, "--dry-run") == "4 failed jobs would be replayed"
    said = shop.call("replay", "-f", print_)
    assert (said.code, "this would replay 4 failed jobs: add --yes" in said.err) == (5, True)
    told = shop.call("replay", "-f", print_, "--rate", "2/s", "--yes", "--json").fact
    assert (told["matched"], told["replayed"], told["takes_ms"], len(told["ids"])) == (4, 4, 1500, 4)
    assert shop.ok("replay", "--all", "--yes") == "1 job replayed; 4 skipped: already replayed"
    assert shop.ok("replay", "--type", "other") == "no failed jobs match"


@pytest.mark.parametrize(
    "words",
    [
        ("replay",),
        ("discard",),
        ("replay", "0190a3c4-5d6e-7f80-9123-456789abcdef", "--all"),
        ("replay", "0190a3c4-5d6e-7f80-9123-456789abcdef", "--dry-run"),
        ("replay", "--all", "--payload", "{}"),
        ("replay", "--all", "--rate", "fast"),
        ("replay", "--all", "--rate", "0/s"),
        ("replay", "--all", "--edit", "name"),
        ("discard", "0190a3c4-5d6e-7f80-9123-456789abcdef", "--limit", "3"),
        ("replay", "one-of-them"),
    ],
)
def test_what_is_not_clear_is_refused(shop: Shop, words: tuple[str, ...]) -> None:
    said = shop.call(*words)
    assert said.code == 2, said
    assert said.err.startswith("error: ")


def test_jobs_are_discarded_by_filter_after_a_question(shop: Shop) -> None:
    fail(shop, "no", "no")
    fail(shop, "no", type_="other")
    assert shop.ok("discard", "--type", "hello", "--dry-run") == "2 failed jobs would be discarded"
    assert shop.call("discard", "--type", "hello").code == 5
    assert shop.ok("discard", "--type", "hello", "--yes", "--reason", "a test") == "2 jobs discarded"
    told = shop.call("discard", "--all", "--yes", "--json").fact
    assert told == {"matched": 1, "discarded": 1, "left": 0, "dry_run": False}
    assert shop.ok("jobs") == "no jobs match"
