from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.steps import BOOM, HOUR, get, last_entry, put, settle, start, told
from tests.support.drafts import draft, want
from windlass.core.history import Happened
from windlass.core.job import Error, Job, Progress
from windlass.core.outcome import Failed, Snoozed, Succeeded
from windlass.core.status import Status
from windlass.core.transition import Transition, decide
from windlass.core.values import MAX_BYTES, canonical
from windlass.stores.contract import Action, Duplicate, Filter, Lease, Order, Report, Store

# One store for all examples is meant: each has a job of its own.
on_one_store = settings(
    max_examples=settings().max_examples // 2, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=50)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=20,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=5)

ODD = [
    "",
    " ",
    "x" * 65_536,
    "\ufeffbom",
    "\u202ertl",
    "zero\u200bwidth",
    "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324a\u030a\u0364",
    "caf\u00e9",
    "cafe\u0301",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "'onmouseover='alert(1)",
    "javascript:alert(1)",
    "</script><script>",
    "{{7*7}}",
    "${7*7}",
    "<%= 7*7 %>",
    "=cmd|' /C calc'!A0",
    "\x1b[2J\x1b]0;pwn\x07",
    "\r\nSet-Cookie: a=b",
    "%s%n",
    "../../etc/passwd",
    "..%2f",
    "..\\",
    "C:\\con",
    "\\\\host\\share",
    "'; DROP TABLE jobs;--",
    "%' OR '1'='1",
    "admin'/*",
    "__proto__",
    "constructor",
    "None",
    "null",
    "true",
    "NaN",
    "\u2028\u2029",
    "\x7f\x80\x9f",
    "\uffff",
    "1.0",
    "1e400",
]
ODD_NAMES = sorted({text.strip() for text in ODD if text.isprintable() and 0 < len(text.strip()) < 200})
ODD_VALUES: list[Any] = [
    {"$gt": ""},
    {"$where": "sleep(5000)"},
    {"$regex": "(a+)+$"},
    {"$oid": "507f1f77bcf86cd799439011"},
    {"$date": "2020-01-01T00:00:00Z"},
    {"a.b": 1, ".": 2, "a..b": 3, "$": 4, "$a.b": {"$set": {"x": 1}}},
    {"": "", "_id": 1, "id": 2, "__proto__": {"x": 1}},
    {"x" * 10_240: 1},
    {"a": [], "b": {}, "c": [[]], "d": [{}], "e": None},
    {"n": [0, -0.0, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 1e308, 1e-308, 1.0, 1, True, False]},
    {f"k{n}": n for n in range(5_000)},
]


def failed(job: Job, error: Error, note: str) -> Transition:
    """A failure in exactly these words: the law would tidy them up before a store sees them."""
    return decide(job, Failed(BOOM, again=False))._replace(error=error, note=note)


@given(payload=OBJECTS, metadata=OBJECTS, result=JSON)
@on_one_store
async def test_any_json_comes_back_as_it_went_in(
    store: Store, payload: dict[str, Any], metadata: dict[str, Any], result: Any
) -> None:
    texts = [canonical(value) for value in (payload, metadata, result)]
    job = await start(store, draft(payload=texts[0], metadata_json=texts[1]))
    assert [job.payload_json, job.metadata_json] == texts[:2]
    await settle(store, job, Succeeded(texts[2]))
    found = await get(store, job.id)
    assert [found.payload_json, found.metadata_json, found.result_json] == texts
    assert (found.payload, found.metadata, found.result) == (payload, metadata, result)
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]


@given(error=st.builds(Error, type=TEXT, message=TEXT, traceback=TEXT | st.none()), reason=TEXT, note=TEXT)
@on_one_store
async def test_any_words_about_a_job_come_back_as_they_went_in(
    store: Store, error: Error, reason: str, note: str
) -> None:
    job = await start(store)
    progress = Progress(done=0.5, of=None, note=note)
    await store.jobs.report([Report(Lease(job.id, 1), progress)])
    await store.jobs.apply([failed(job, error, note)])
    found = await get(store, job.id)
    assert (found.error, found.progress) == (error, progress)
    assert (await last_entry(store, job.id)).note == note
    await store.jobs.operate([Order(id=job.id, action=Action.RETRY, actor="ann", reason=reason)])
    assert (await last_entry(store, job.id)).note == reason
    await store.jobs.operate([Order(id=job.id, action=Action.DELETE, actor="ann")])


async def test_odd_text_is_only_text(store: Store) -> None:
    for text in ODD:
        payload = canonical({"text": text, text: [text]})
        job = await start(store, draft(payload=payload, metadata_json=payload))
        error = Error(type=text, message=text, traceback=text)
        await store.jobs.apply([failed(job, error, text)])
        found = await get(store, job.id)
        assert (found.payload_json, found.metadata_json, found.error) == (payload, payload, error)
        assert (await last_entry(store, job.id)).note == text


async def test_odd_structures_are_only_values(store: Store) -> None:
    for value in ODD_VALUES:
        text = canonical(value)
        job = await start(store, draft(payload=text, metadata_json=text))
        await settle(store, job, Succeeded(text))
        found = await get(store, job.id)
        assert [found.payload_json, found.metadata_json, found.result_json] == [text] * 3
        assert found.payload == found.result == value
        assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]


async def test_odd_names_and_keys_are_only_names_and_keys(store: Store) -> None:
    for name in ODD_NAMES:
        one = draft(
            name,
            queue=name,
            unique=name,
            user_id=name,
            correlation_id=name,
            entity_name=name,
            entity_id=name,
            schedule=name,
            tags=(name, "x"),
        )
        one = one._replace(limit_key=name, limit=1)
        await put(store, one)
        filter_ = Filter(
            type=name, queue=name, user_id=name, correlation_id=name, entity_name=name, entity_id=name, schedule=name
        )
        assert [job.id for job in (await store.views.find(filter_, 5)).jobs] == [one.id]
        assert await store.jobs.insert([draft(unique=name)]) == [Duplicate(one.id, name)]
        [job] = await store.jobs.claim(want(worker=name, types={name}, queues={name: 1}))
        assert (job.worker_id, job.unique_key, job.limit_key, job.tags) == (name, name, name, (name, "x"))
        await put(store, draft()._replace(limit_key=name, limit=1))
        assert await store.jobs.claim(want()) == []
        await settle(store, job, Snoozed(HOUR, name))
        assert (await get(store, job.id)).status is Status.SCHEDULED
        assert [found.queue for found in await store.jobs.claim(want())] == ["default"]
        assert (await last_entry(store, job.id)).note == name


async def test_the_largest_payload_and_result_are_kept_whole(store: Store) -> None:
    text = canonical({"x": "\u00e9" * (MAX_BYTES // 2 - 10)})
    job = await start(store, draft(payload=text))
    await settle(store, job, Succeeded(text))
    found = await get(store, job.id)
    assert found.payload_json == text
    assert found.result_json == text
    assert await told(store, job.id) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]


async def test_what_cannot_be_stored_does_not_break_the_store(store: Store) -> None:
    lone = "\ud800"
    job = await start(store)
    with suppress(Exception):
        await store.jobs.insert([draft()._replace(payload_json=f'"{lone}"')])
    with suppress(Exception):
        await store.jobs.insert([draft(), draft()._replace(limit_key="k", limit=2**80)])
    with suppress(Exception):
        await store.jobs.apply([failed(job, Error(type=lone, message=lone), lone)])
    await put(store)
    assert (await get(store, job.id)).id == job.id
    assert (await told(store, job.id))[:2] == [Happened.ENQUEUED, Happened.CLAIMED]
