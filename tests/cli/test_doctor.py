from __future__ import annotations

from datetime import timedelta

from tests.cli.support import Shop
from tests.support.drafts import draft, want
from windlass import Windlass
from windlass.client.checking import connections, file, memory, snapshots
from windlass.stores.contract import WorkerInfo


def levels(shop: Shop) -> dict[str, str]:
    told = shop.call("doctor", "--json").facts
    assert all(set(one) == {"check", "level", "found", "fix"} for one in told)
    assert all((one["fix"] is None) == (one["level"] == "PASS") for one in told)
    return {one["check"]: one["level"] for one in told}


async def beat(app: Windlass) -> None:
    one = WorkerInfo(id="w1", host="h", pid=1, version="1", queues=(), types=("noop",), slots=2, running=0)
    await app.store.workers.beat(one)


def test_a_sound_store_passes(shop: Shop) -> None:
    shop.ask(beat)
    said = shop.call("doctor")
    assert said.code == 0
    assert "PASS store reachable" in said.out
    found = levels(shop)
    assert {found[name] for name in ("store reachable", "clock", "schema", "durability", "notices", "workers")} == {
        "PASS"
    }


def test_a_type_that_no_live_worker_handles_fails(shop: Shop) -> None:
    shop.ok("enqueue", "send_fax")
    assert levels(shop)["types have workers"] == "WARN"
    shop.ask(beat)
    said = shop.call("doctor")
    assert said.code == 1
    assert "FAIL types have workers" in said.out
    assert "send_fax: 1 waiting" in said.out


def test_paused_queues_and_silent_workers_are_warned_of(shop: Shop) -> None:
    shop.ok("enqueue", "noop", "-q", "mail")
    shop.ok("queues", "pause", "mail")
    found = levels(shop)
    assert found["queues"] == "WARN"
    assert found["workers"] == "WARN"


def test_running_jobs_within_their_lease_pass(shop: Shop) -> None:
    async def claim(app: Windlass) -> None:
        await app.store.jobs.insert([draft()])
        await app.store.jobs.claim(want(1, lease=timedelta(minutes=1)))

    shop.ask(claim)
    assert levels(shop)["leases"] == "PASS"


def test_a_transaction_open_for_more_than_a_minute_is_warned_of() -> None:
    assert list(snapshots({})) == []
    assert list(snapshots({"oldest_snapshot_seconds": 60})) == []
    [found] = snapshots({"oldest_snapshot_seconds": 150})
    assert found.level == "WARN"
    assert "open for 2 m 30 s" in found.found
    assert found.fix is not None
    assert "pg_stat_activity" in found.fix


def test_a_store_in_memory_is_warned_of_before_it_is_full() -> None:
    assert list(memory({})) == list(memory({"maxmemory": 0, "bytes": 5})) == []
    assert [one.level for one in memory({"maxmemory": 100, "bytes": 79})] == ["PASS"]
    [found] = memory({"maxmemory": 100, "bytes": 80})
    assert (found.level, found.found) == ("WARN", "80% of maxmemory is used: when it is full, enqueues are refused")
    assert found.fix


def test_workers_that_may_take_most_of_a_servers_connections_are_warned_of() -> None:
    bound = {"worker_connections": 7, "max_connections": 100}
    assert list(connections({}, 50)) == list(connections({**bound, "pooler": True}, 50)) == []
    assert [one.level for one in connections(bound, 11)] == ["PASS"]
    [found] = connections(bound, 12)
    assert found.level == "WARN"
    assert found.found.startswith("12 live workers of up to 7 each, 84 of the server's 100: ")
    assert found.fix is not None
    assert "max_connections" in found.fix


def test_a_store_that_cannot_write_its_file_fails() -> None:
    assert list(file({})) == list(file({"last write": "ok"})) == []
    assert [one.level for one in file({"last write": "err"})] == ["FAIL"]


def test_a_store_that_is_not_there_fails(shop: Shop) -> None:
    said = shop.process("doctor", "--store", "sqlite:///typo.db")
    assert said.code == 1
    assert said.out.startswith("FAIL store reachable")
    assert shop.process("doctor", "--store", "sqlite:///no/dir/x.db", "--json").fact["level"] == "FAIL"
