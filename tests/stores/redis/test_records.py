"""Records as they lie in Redis: their layout never changes, because stores that are in use have them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from windlass.core.fields import FIELDS as JOB_FIELDS
from windlass.core.fields import Field
from windlass.core.job import Error, Job, Progress
from windlass.core.status import Status
from windlass.stores.redis.records import FIELDS, KEPT, PARTS, entries_of, job_of, unpacked

OWN = "p|1000|2000|3000|4000|5|{}|key|queued|running|limit|rate^fair^next^16000^first"
SHARED = (
    "mail|send|7|1|2|9|w1|6000|7000|8000|9000|10|11|limit:x|nightly"
    '|{"done":1,"of":2,"note":null}|{"type":"E","message":"m","traceback":null}|2|5|3|12|13^14^end^rows[2]^1|'
)
REST = '15|parent|user|order|42|trail|same|{"a":1}|other|["a","b"]|{"b":2}|00-1|4000,eq,,\n7000,kp,9,["w1",null]'


def record(own: str = OWN, shared: str = SHARED, rest: str = REST) -> bytes:
    piece = shared.replace("|", "\0").replace("^", "\x1e")
    own, rest = own.replace("|", "\0").replace("^", "\x1e"), rest.replace("|", "\0")
    return f"{own}\0{len(piece.encode())}\0{piece}\0{rest}".encode()


def at(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def test_every_field_of_a_record_is_read_from_its_place() -> None:
    assert job_of("id", record(), {}, kept_json='{"a":"1"}') == Job(
        id="id",
        type="send",
        queue="mail",
        payload_json='{"a":1}',
        status=Status.PROCESSING,
        priority=7,
        run_at=at(1000),
        attempts=1,
        max_attempts=5,
        crashes=2,
        max_crashes=3,
        timeout=timedelta(milliseconds=12),
        created_at=at(4000),
        updated_at=at(3000),
        queued_at=at(2000),
        cancel_requested_at=at(8000),
        worker_id="w1",
        lease_token=9,
        lease_expires_at=at(6000),
        started_at=at(7000),
        result_json="{}",
        error=Error(type="E", message="m"),
        progress=Progress(done=1, of=2),
        finished_at=at(9000),
        duration_ms=10,
        wait_ms=5,
        unique_key="key",
        unique_queued="queued",
        unique_running="running",
        idempotency_key="same",
        limit_key="limit",
        limit=11,
        blocked_by="limit:x",
        schedule="nightly",
        tick=at(15),
        parent_id="parent",
        replay_of="other",
        correlation_id="trail",
        user_id="user",
        entity_name="order",
        entity_id="42",
        tags=("a", "b"),
        metadata_json='{"b":2}',
        trace="00-1",
        rate_key="rate",
        rate_n=13,
        rate_ms=14,
        fair_key="fair",
        next_id="next",
        awaits="end",
        takes="rows[2]",
        kept_json='{"a":"1"}',
        origin="first",
        expires_at=at(16000),
    )


def test_a_record_without_the_newest_parts_is_read_all_the_same() -> None:
    older = record(OWN.replace("^fair^next^16000^first", ""), SHARED.replace("^end^rows[2]^1", ""))
    job = job_of("id", older, {}, kept_json="{}")
    assert (job.rate_key, job.fair_key, job.next_id, job.expires_at, job.origin) == ("rate", None, None, None, None)
    assert (job.rate_n, job.rate_ms, job.awaits, job.takes, job.kept_json) == (13, 14, None, None, None)


def test_a_payload_that_lies_apart_takes_its_place() -> None:
    apart = record(rest=REST.replace('{"a":1}', ""))
    assert (job_of("id", apart, {}, '{"a":2}').payload_json, job_of("id", apart, {}).payload_json) == ('{"a":2}', "")


def test_the_history_is_the_last_field() -> None:
    assert [entry.number for entry in entries_of(unpacked(record()))] == [1, 2]


@pytest.mark.parametrize("field", JOB_FIELDS, ids=[field.name for field in JOB_FIELDS])
def test_every_field_of_a_job_has_one_place_in_a_record(field: Field) -> None:
    name = KEPT.names[JOB_FIELDS.index(field)]
    places = ["id", *FIELDS, *PARTS["more"], *PARTS["control"]]
    assert places.count(name) == 1, f"{name} has no place in OWN, SHARED, REST or PARTS of redis/records.py"
