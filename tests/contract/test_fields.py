"""Every field of a job comes back as it was given, from every store: a field that one of them forgets is named here.

Values are made from the table of fields, so that a new field is tested from the moment it has a line in `Job`.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.contract.steps import AGAIN_SOON, BOOM, CRASHED, NEVER_AGAIN, cancel, get, put, settle, start
from tests.support.drafts import draft, new_id, want
from windlass.core.draft import Draft, Options
from windlass.core.fields import FIELDS, Field, Kind, Origin
from windlass.core.job import Job, Progress
from windlass.core.outcome import Succeeded
from windlass.core.rate import Rate
from windlass.stores.contract import Filter, Keep, Lease, Report, Store

HALFWAY = Progress(done=1, of=2, note="ein Stück")
OPTIONS = {field.name for field in fields(Options)}
ASKED = [field for field in FIELDS if field.origin in (Origin.DRAFT, Origin.OPTIONS)]
EMPTY = {"attempts": 0, "crashes": 0, **Job._field_defaults}
"""a field with one of these values could as well have been forgotten"""


def sample(field: Field) -> Any:
    """A value of the field's kind that no other field has."""
    n = FIELDS.index(field) + 1
    match field.kind:
        case Kind.TEXT:
            return f"{field.name}-ö"
        case Kind.JSON:
            return f'{{"of":"{field.name}"}}'
        case Kind.INTEGER:
            return 1000 + n
        case Kind.INSTANT:
            return datetime(2030, 1, 1, 0, 0, n, n * 1000, tzinfo=UTC)
        case Kind.DURATION:
            return timedelta(seconds=n, milliseconds=n)
        case Kind.TAGS:
            return (field.name, "another")
        case _:
            raise AssertionError(f"no draft can ask for a {field.kind}: {field.name}")


def filled(**given: Any) -> Draft:
    """A draft that asks for something in every field that can be asked for, but waits for no other job."""
    options = {field.name: sample(field) for field in ASKED if field.name in OPTIONS and field.origin is Origin.OPTIONS}
    options |= {"queue": "q", "rate": Rate(77, timedelta(seconds=88)), "awaits": None, "takes": None} | given
    own = {field.name: sample(field) for field in ASKED if field.origin is Origin.DRAFT}
    own |= {"id": new_id(), "type": "noop", "next_id": new_id()}
    return Draft(**own, options=Options(**options))


def asked_of(one: Draft) -> dict[str, Any]:
    """What the draft asks for, by the job's fields."""
    return {field.name: getattr(one if field.origin is Origin.DRAFT else one.options, field.name) for field in ASKED}


def kept_of(job: Job) -> dict[str, Any]:
    return {field.name: getattr(job, field.name) for field in ASKED}


async def test_whatever_is_asked_for_comes_back_as_it_was_given(store: Store) -> None:
    one = filled(awaits="end", takes="rows[2]")
    assert [name for name, value in asked_of(one).items() if value == EMPTY.get(name)] == []
    await put(store, one)
    assert kept_of(await get(store, one.id)) == asked_of(one)


async def test_every_way_of_reading_a_job_finds_the_same(store: Store) -> None:
    one = filled()
    claimed = await start(store, one)
    assert kept_of(claimed) == asked_of(one)
    assert await get(store, one.id) == claimed
    assert (await store.views.find(Filter(), 10)).jobs == (claimed,)


async def test_drafts_without_keys_are_inserted_with_all_they_ask_for(store: Store) -> None:
    keys: dict[str, Any] = dict.fromkeys(Draft._fields[Draft._fields.index("options") + 1 :])
    drafts = [filled(rate=None, schedule=f"s{n}")._replace(**keys) for n in range(3)]
    await put(store, *drafts)
    for one in drafts:
        assert kept_of(await get(store, one.id)) == asked_of(one)


async def test_no_field_of_a_job_is_left_out_by_the_store(store: Store) -> None:
    seen: dict[str, set[Any]] = {name: set() for name in Job._fields}

    async def look(job_id: str) -> Job:
        job = await get(store, job_id)
        for name, value in job._asdict().items():
            seen[name].add(value)
        return job

    waiting = filled(awaits="end", takes="rows[2]")
    await put(store, waiting)
    await look(waiting.id)
    job = await start(store, draft(expires=timedelta(hours=1)))
    lease = Lease(job.id, job.lease_token)
    await store.jobs.report([Report(lease, HALFWAY)])
    await store.jobs.keep([Keep(lease, "saved", "1")])
    await cancel(store, job.id)
    running = await look(job.id)
    assert (running.progress, running.worker_id) == (HALFWAY, "w1")
    ended = running
    for outcome in (CRASHED, AGAIN_SOON, NEVER_AGAIN, Succeeded('{"ä":1}')):
        job = await start(store, draft("other"), want(types={"other"}))
        await settle(store, job, outcome)
        ended = await look(job.id)
    assert BOOM in seen["error"]
    assert ended.result_json == '{"ä":1}'
    missing = [name for name, values in seen.items() if values <= {EMPTY.get(name)}]
    assert missing == [], "the store has never given these a value"
