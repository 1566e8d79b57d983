"""After an outage a worker lets the living come back before it rescues."""

from __future__ import annotations

from datetime import timedelta

from windlass.worker.config import WorkerConfig
from windlass.worker.outage import Outage
from windlass.worker.recycling import PATIENCE, Judge

SECONDS = timedelta(seconds=1)


def outage(lease: int = 30, heartbeat: int = 10) -> Outage:
    return Outage(WorkerConfig(lease=lease * SECONDS, heartbeat=heartbeat * SECONDS), 0.0)


def test_while_the_store_answers_it_rescues() -> None:
    worker = outage()
    for now in (0.0, 9.5, 19.0, 29.0, 38.0):
        worker.answered(now)
        assert worker.over(now)
        assert worker.over(now + 10)


def test_while_the_store_is_away_it_does_not_and_for_as_long_after_at_most_a_lease() -> None:
    worker = outage()
    assert not worker.over(16.0), "nobody has heard of the store for longer than between two heartbeats"
    worker.answered(22.0)
    assert not worker.over(23.0)
    worker.answered(32.0)
    assert not worker.over(43.9)
    worker.answered(42.0)
    assert worker.over(44.0), "it was away for 22 seconds"
    worker.answered(500.0)
    assert not worker.over(501.0)
    for now in range(510, 531, 10):
        worker.answered(now)
    assert worker.over(530.0), "one lease at most"


def test_late_heartbeats_are_no_outage_and_a_silence_of_a_lease_always_is() -> None:
    for lease, heartbeat in ((30, 10), (30, 15), (60, 1), (2, 1)):
        worker = outage(lease, heartbeat)
        assert worker.over(1.4 * heartbeat)
        assert not worker.over(lease - 0.1)


def test_all_slots_stuck_for_long_make_room_for_a_fresh_process_also_where_nobody_said_so() -> None:
    looking = Judge(WorkerConfig(concurrency=2))

    def cause(now: float, stuck: int) -> str | None:
        return looking.cause(now, started=9, memory_mb=9.0, stuck={"a": stuck})

    assert [cause(0, 1), cause(1000, 2), cause(1000 + PATIENCE - 1, 2)] == [None, None, None]
    assert cause(1000 + PATIENCE, 2) == "stuck"
    assert [cause(2000, 1), cause(2001, 2)] == [None, None], "one of them has ended: counted anew"


def test_so_many_as_were_said_do_at_once() -> None:
    looking = Judge(WorkerConfig(concurrency=20, max_stuck=3, max_jobs=10, max_memory_mb=100))
    assert looking.cause(0, started=9, memory_mb=9.0, stuck={"a": 1, "b": 1}) is None
    assert looking.cause(0, started=9, memory_mb=9.0, stuck={"a": 1, "b": 2}) == "stuck"
    assert looking.cause(0, started=10, memory_mb=9.0, stuck={}) == "jobs"
    assert looking.cause(0, started=9, memory_mb=101.0, stuck={}) == "memory"


def test_a_queue_all_of_whose_slots_are_stuck_is_enough() -> None:
    looking = Judge(WorkerConfig(queues={"a": 10, "b": 10}, concurrency=20))

    def cause(now: float, **stuck: int) -> str | None:
        return looking.cause(now, started=9, memory_mb=9.0, stuck=stuck)

    assert [cause(0, a=9, b=9), cause(PATIENCE, a=9, b=9)] == [None, None]
    assert [cause(100, a=10), cause(100 + PATIENCE, a=10)] == [None, "stuck"]
    assert [cause(200, a=9), cause(201, b=10), cause(202 + PATIENCE, b=10)] == [None, None, "stuck"]
