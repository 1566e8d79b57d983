"""Search words on every store: each narrows the search down, or is refused. None is ignored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.contract.steps import put
from tests.control.test_dead_letters import dead
from tests.support.drafts import draft
from windlass import SettingsError, Status, Windlass
from windlass.client.searching import DEAD_WORDS, SEARCH_WORDS

pytestmark = pytest.mark.timeout(60)

LONG_AGO, LONG_HENCE = datetime(2020, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)
ID = "0190a3c4-5d6e-7f80-9123-456789abcdef"
UNKNOWN: tuple[dict[str, Any], ...] = (
    {"users": "u1"},
    {"colour": "red"},
    {"id": ID},
    {"user": "u1", "uesr": "u1"},
    {"user": "u1", "user_id": "u1"},
    {"entity_name": "order"},
    {"user": None},
    {"user_id": None},
    {"type": "send", "user": None},
    {"entity": ("order", None)},
    {"entity_name": "order", "entity_id": None},
    {"user": ""},
    {"queue": "a\0b"},
    {"parent": "x"},
    {"tags": []},
    {"tags": 7},
    {"tags": ["red", ""]},
    {"type": "*"},
    {"worker": None},
    {"attempts_at_least": -1},
    {"attempts_at_most": "2"},
    {"created_since": "yesterday"},
    {"finished_before": datetime(2026, 1, 1)},  # noqa: DTZ001  # of no zone, which is what is refused
    {"fingerprint": "x"},
    {"where": "colour:red"},
    {"where": "user:u1", "user": "u2"},
    {"where": None},
    {"where": 7},
)
BY_LOOKING: tuple[dict[str, Any], ...] = (
    {"tags": "red"},
    {"tags": ["red", "round"]},
    {"type": "sen*"},
    {"attempts_at_least": 1, "attempts_at_most": 1, "tags": "red"},
    {"created_since": LONG_AGO, "created_before": LONG_HENCE, "tags": "red"},
    {"finished_since": LONG_AGO, "finished_before": LONG_HENCE, "tags": ("red",)},
    {"worker": "w1", "tags": "red"},
    {"worker_id": "w1", "tags": "red"},
    {"where": "tag:red tag:round -user:u2"},
    {"where": "status:failed tag:red", "tags": "round"},
    {"where": "error:E type:se*", "user": "u1"},
)


async def counted(app: Windlass, words: dict[str, Any]) -> Any:
    return await app.jobs.count(**words)


async def walked(app: Windlass, words: dict[str, Any]) -> Any:
    return [job async for job in app.jobs.each(**words)]


SEARCHES: dict[str, Callable[[Windlass, dict[str, Any]], Awaitable[Any]]] = {
    "find": lambda app, words: app.jobs.find(**words),
    "count": counted,
    "each": walked,
    "groups": lambda app, words: app.dead_letters.groups(**words),
    "dead": lambda app, words: app.dead_letters.find(**words),
    "replay_all": lambda app, words: app.dead_letters.replay_all(**words),
    "replay_everything": lambda app, words: app.dead_letters.replay_all(everything=True, **words),
    "discard_all": lambda app, words: app.dead_letters.discard_all(**words),
    "discard_everything": lambda app, words: app.dead_letters.discard_all(everything=True, **words),
    "discard_dry": lambda app, words: app.dead_letters.discard_all(dry_run=True, **words),
}


@pytest.mark.parametrize("search", SEARCHES)
async def test_a_word_that_narrows_nothing_down_is_refused_and_changes_nothing(app: Windlass, search: str) -> None:
    jobs = await dead(app, draft("send", user_id="u1"), draft("send", user_id="u2"))
    for words in UNKNOWN:
        with pytest.raises(SettingsError):
            await SEARCHES[search](app, words)
    found = await app.jobs.find()
    assert {one.id for one in found.jobs} == {one.id for one in jobs}
    assert {one.status for one in found.jobs} == {Status.FAILED}


async def test_dead_letters_have_one_status_only(app: Windlass) -> None:
    await dead(app, draft("send"))
    words: Any = {"status": "cancelled"}
    with pytest.raises(SettingsError, match="'status' is no search word"):
        await app.dead_letters.discard_all(**words)
    assert (await app.jobs.count(status="failed")).n == 1


async def test_either_name_of_a_word_finds_the_same(app: Windlass) -> None:
    mine: dict[str, Any] = {
        "user_id": "u1",
        "entity_name": "order",
        "entity_id": "7",
        "correlation_id": "c1",
        "parent_id": ID,
        "schedule": "nightly",
    }
    other = {**mine, "user_id": "u2", "entity_id": "8", "correlation_id": "c2", "parent_id": ID[:-1] + "0"}
    waiting = [draft("wait", awaits="end") for _ in range(2)]
    await put(app.store, *waiting)
    jobs = await dead(
        app,
        draft("send", queue="mail", next_id=waiting[0].id, tags=("red", "round"), **mine),
        draft("fetch", next_id=waiting[1].id, **{**other, "schedule": "hourly"}),
    )
    print_ = (await app.dead_letters.groups(type="send")).groups[0].fingerprint
    same: tuple[dict[str, Any], ...] = (
        {"user": "u1"},
        {"user_id": "u1"},
        {"entity": ("order", 7)},
        {"entity_name": "order", "entity_id": 7},
        {"correlation": "c1"},
        {"correlation_id": "c1"},
        {"parent": ID},
        {"parent_id": ID.upper()},
        {"next": waiting[0].id},
        {"next_id": waiting[0].id.upper()},
        {"schedule": "nightly"},
        {"type": "send"},
        {"queue": "mail"},
        {"fingerprint": print_},
        *BY_LOOKING,
    )
    for words in same:
        assert [one.id for one in (await app.jobs.find(**words)).jobs] == [jobs[0].id], words
        assert (await app.jobs.count(**words)).n == 1, words
        assert (await app.dead_letters.discard_all(dry_run=True, **words)).matched == 1, words
    assert (await app.dead_letters.replay_all(dry_run=True, fingerprint=print_)).matched == 1
    asked = {name.removesuffix("_id").removesuffix("_name") for words in same for name in words}
    assert asked | {"status", "unique_key"} == set(SEARCH_WORDS)
    assert asked | {"unique_key"} == set(DEAD_WORDS)


async def test_any_of_several_statuses_is_found(app: Windlass) -> None:
    await dead(app, draft("send"))
    waiting = await app.enqueue("send", unique="k1")
    assert {job.status for job in (await app.jobs.find(status=["failed", Status.QUEUED])).jobs} == {"failed", "queued"}
    assert (await app.jobs.count(status={"queued", "scheduled"})).n == 1
    assert [job.id for job in (await app.jobs.find(unique_key="k1")).jobs] == [waiting.id]
    wrong: tuple[dict[str, Any], ...] = (
        {"status": []},
        {"status": ["failed", "asleep"]},
        {"status": "queued", "fingerprint": "a" * 12},
    )
    for words in wrong:
        with pytest.raises(SettingsError):
            await counted(app, words)


async def test_a_fingerprint_is_found_by_pages_among_failed_jobs(app: Windlass) -> None:
    jobs = await dead(app, *[draft("send") for _ in range(5)], draft("other"))
    print_ = (await app.dead_letters.groups(type="send")).groups[0].fingerprint
    wanted = sorted((job.id for job in jobs if job.type == "send"), reverse=True)
    page = await app.jobs.find(fingerprint=print_, limit=2)
    assert [job.id for job in page.jobs] == wanted[:2]
    assert page.complete
    rest = await app.jobs.find(fingerprint=print_, limit=50, after=page.next)
    assert [job.id for job in rest.jobs] == wanted[2:]
    assert (rest.next, rest.complete) == (None, True)
    first = await app.jobs.find(fingerprint=print_, limit=1, oldest_first=True)
    assert [job.id for job in first.jobs] == wanted[-1:]
    assert (await app.jobs.count(fingerprint=print_)).n == 5


async def test_only_what_was_named_is_discarded(app: Windlass) -> None:
    [mine, other] = await dead(app, draft("send", user_id="u1"), draft("send", user_id="u2"))
    told = await app.dead_letters.discard_all(user_id="u1")
    assert (told.matched, told.discarded) == (1, 1)
    assert [one.id for one in (await app.jobs.find()).jobs] == [other.id]
    assert mine.id != other.id


async def test_a_number_is_found_as_it_was_enqueued(app: Windlass) -> None:
    asked: Any = {"user": 7}
    handle = await app.enqueue("send", **asked)
    assert [one.id for one in (await app.jobs.find(**asked)).jobs] == [handle.id]


async def test_options_go_by_either_name_and_no_other(app: Windlass) -> None:
    by_name = await app.enqueue("send", user="u1", entity=("order", 7), correlation="c1")
    by_field = await app.enqueue("send", user_id="u1", entity_name="order", entity_id=7, correlation_id="c1")
    one, two = await by_name.job(), await by_field.job()
    assert (one.user_id, one.entity_name, one.entity_id, one.correlation_id) == ("u1", "order", "7", "c1")
    assert (two.user_id, two.entity_name, two.entity_id, two.correlation_id) == ("u1", "order", "7", "c1")
    wrong: tuple[dict[str, Any], ...] = (
        {"users": "u1"},
        {"user": "u1", "user_id": "u1"},
        {"entity_id": 7},
        {"entity": ("order", None)},
        {"parent": ID},
    )
    for words in wrong:
        with pytest.raises(SettingsError):
            await app.enqueue("send", **words)
    assert (await app.jobs.count()).n == 2


async def test_what_a_running_job_hands_down_is_decided_by_either_name(app: Windlass) -> None:
    @app.job
    async def child() -> None: ...

    @app.job
    async def parent() -> list[str]:
        nobody: Any = {"user_id": None}
        return [(await child.enqueue()).id, (await child.using(**nobody).enqueue()).id]

    handle = await parent.using(user="u1").enqueue()
    await app.worker(drain=True).run()
    taken, decided = [await app.jobs.get(one) for one in await handle.result(10)]
    assert (taken.user_id, decided.user_id) == ("u1", None)


async def test_turns_are_shared_by_either_name(app: Windlass) -> None:
    for fair_by in ("user", "user_id"):
        job = await (await app.enqueue("send", user="u1", fair_by=fair_by)).job()
        assert job.fair_key == "u1"


async def test_a_line_is_searched_by_pages_both_ways_and_counted(app: Windlass) -> None:
    jobs = [await app.enqueue("send", {"n": n}, tags=("odd",) if n % 2 else ()) for n in range(9)]
    odd = [job.id for job in jobs[1::2]]
    line = "payload.n>0 -payload.n:2,4,6,8"
    first = await app.jobs.find(where=line, limit=2)
    rest = await app.jobs.find(where=line, limit=2, after=first.next)
    assert [job.id for job in (*first.jobs, *rest.jobs)] == odd[::-1]
    assert (rest.next, rest.complete) == (None, True)
    assert rest.previous is not None
    assert await app.jobs.find(where=line, limit=2, after=rest.previous) == first
    oldest = await app.jobs.find(where=f"{line} sort:created", limit=3)
    assert [job.id for job in oldest.jobs] == odd[:3]
    assert (await app.jobs.count(where=line)).n == 4
    assert [job.id async for job in app.jobs.each(where=f"id:{odd[0][:13]} tag:odd")][-1] == odd[0]
    done = await app.jobs.cancel_all(where=f"{line} age<1h")
    assert (done.of, done.done) == (4, 4)
    assert {job.id for job in (await app.jobs.find(where="status:cancelled")).jobs} == set(odd)


async def test_a_line_that_leaves_no_job_out_is_no_filter_for_an_order(app: Windlass) -> None:
    await dead(app, draft("send"))
    for line in ("", "  ", "sort:created"):
        with pytest.raises(SettingsError, match="no filter was given"):
            await app.jobs.delete_all(where=line)
        with pytest.raises(SettingsError, match="no filter was given"):
            await app.dead_letters.discard_all(where=line)
    assert (await app.jobs.count(where="")).n == 1


async def test_a_line_of_a_users_room_finds_nothing_of_others(app: Windlass) -> None:
    mine = await app.enqueue("send", {"n": 1}, user="u1")
    await app.enqueue("send", {"n": 1}, user="u2")
    room = app.jobs.only("u1")
    for line in ("payload.n:1", "-user:u1 payload.n:1", "user:u1,u2"):
        assert {job.id for job in (await room.find(where=line)).jobs} <= {mine.id}
    with pytest.raises(SettingsError, match="only the jobs of"):
        await room.find(where="user:u2")
