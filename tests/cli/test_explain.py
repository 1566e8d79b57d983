from __future__ import annotations

import pytest

from tests.cli.support import Shop
from tests.support.drafts import draft, want
from windlass import Limit, Unique, Windlass
from windlass.core.job import Error
from windlass.core.outcome import Failed
from windlass.core.transition import decide
from windlass.stores.contract import WorkerInfo


def worker(shop: Shop, *types: str, queues: tuple[str, ...] = (), slots: int = 2, running: int = 0) -> None:
    async def beat(app: Windlass) -> None:
        one = WorkerInfo(
            id="w1", host="h", pid=1, version="1", queues=queues, types=types, slots=slots, running=running
        )
        await app.store.workers.beat(one)

    shop.ask(beat)


def reason(shop: Shop, job_id: str) -> str:
    told = shop.call("explain", job_id, "--json").fact
    sentence = shop.ok("explain", job_id)
    assert sentence.endswith(".")
    assert set(told) == {*("id", "status", "why", "sentence", "since", "until", "worker", "holders", "ahead", "exact")}
    assert told["sentence"].partition(" ")[0] == sentence.partition(" ")[0]
    why: str = told["why"]
    return why


def test_waiting_jobs(shop: Shop) -> None:
    job_id = shop.ok("enqueue", "send", "-q", "mail")
    assert reason(shop, job_id) == "no_worker"
    worker(shop, "other")
    assert reason(shop, job_id) == "no_handler"
    worker(shop, "send", queues=("default",))
    assert reason(shop, job_id) == "no_consumer"
    worker(shop, "send", queues=("mail",), running=2)
    assert reason(shop, job_id) == "busy"
    worker(shop, "send")
    assert reason(shop, job_id) == "in_line"
    shop.ok("queues", "pause", "mail")
    assert reason(shop, job_id) == "paused"


def test_jobs_of_another_time(shop: Shop) -> None:
    job_id = shop.ok("enqueue", "send", "--in", "1h")
    assert reason(shop, job_id) == "scheduled"
    assert "in 59 m" in shop.ok("explain", job_id) or "in 1 h" in shop.ok("explain", job_id)
    due = shop.ok("enqueue", "send", "--in", "1ms")
    assert reason(shop, due) in ("no_worker", "due")
    shop.ok("cancel", job_id)
    assert reason(shop, job_id) == "finished"
    assert "was cancelled" in shop.ok("explain", job_id)


@pytest.mark.parametrize("kind", ["limit", "running_key"])
def test_a_blocked_job_names_its_holder(kind: str, shop: Shop) -> None:
    async def fill(app: Windlass) -> tuple[str, str]:
        limit, unique = (Limit("acme", 1), None) if kind == "limit" else (None, Unique(running="r"))
        ids = [(await app.enqueue("noop", {}, limit=limit, unique=unique)).id for _ in range(2)]
        await app.store.jobs.claim(want(10))
        return ids[0], ids[1]

    holder, blocked = shop.ask(fill)
    assert reason(shop, holder) == "running"
    assert reason(shop, blocked) == kind
    assert f"{holder} on w1" in shop.ok("explain", blocked)
    assert shop.call("explain", blocked, "--json").fact["holders"] == [holder]
    shop.ok("cancel", holder)
    assert reason(shop, holder) == "cancelling"


def test_failed_and_retrying_jobs(shop: Shop) -> None:
    async def fail(app: Windlass) -> list[str]:
        await app.store.jobs.insert([draft(max_attempts=1), draft(max_attempts=3)])
        jobs = await app.store.jobs.claim(want(10))
        await app.store.jobs.apply([decide(one, Failed(Error(type="Oops", message="no"))) for one in jobs])
        return [one.id for one in jobs]

    failed, retrying = shop.ask(fail)
    assert reason(shop, failed) == "finished"
    assert "Oops: no" in shop.ok("explain", failed)
    assert reason(shop, retrying) in ("retrying", "no_worker")
