"""Jobs that make jobs, on every store: what a child takes over, and how a whole tree is told of."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.steps import finish
from tests.control.conftest import Crew
from tests.support.apps import working
from tests.support.drafts import draft
from tests.support.until import until
from windlass import Handler, Job, SettingsError, Status, Windlass

pytestmark = pytest.mark.timeout(60)


def context(job: Job) -> tuple[object, ...]:
    return job.parent_id, job.correlation_id, job.user_id, job.entity_name, job.entity_id


class Leaf(Handler[str, None], name="class_leaf"):
    async def perform(self, data: str) -> None: ...


def family(app: Windlass) -> Any:
    """A handler for each way to enqueue, all of which make one child; and the parent that runs them."""

    @app.job
    async def leaf(name: str) -> None: ...

    app.add(Leaf)

    @app.job
    async def parent(way: str) -> list[str]:
        match way:
            case "typed":
                return [(await leaf.enqueue("x")).id]
            case "name":
                return [(await app.enqueue("leaf", {"name": "x"})).id]
            case "unknown name":
                return [(await app.enqueue("elsewhere", {"name": "x"})).id]
            case "class":
                return [(await app.enqueue(Leaf, "x")).id]
            case "many":
                return [one.id for one in await app.enqueue_many(leaf.bind(str(n)) for n in range(1_500))]
            case _:
                raise AssertionError(way)

    @app.job
    def in_a_thread(way: str) -> list[str]:
        match way:
            case "typed":
                return [leaf.enqueue_sync("x").id]
            case "name":
                return [app.enqueue_sync("leaf", {"name": "x"}).id]
            case "many":
                return [one.id for one in app.enqueue_many_sync(leaf.bind(str(n)) for n in range(1_500))]
            case "group":
                return [one.id for one in app.group([leaf.bind("x")]).enqueue_sync()]
            case "awaited elsewhere":
                return [app.run_sync(leaf.enqueue("x")).id]
            case _:
                raise AssertionError(way)

    return parent, in_a_thread


@pytest.mark.parametrize(
    "way",
    [
        *["typed", "name", "unknown name", "class", "many"],
        *[f"thread {way}" for way in ("typed", "name", "many", "group", "awaited elsewhere")],
    ],
)
async def test_a_child_takes_over_the_context_of_its_parent_whichever_way_it_is_enqueued(
    app: Windlass, way: str
) -> None:
    parent, in_a_thread = family(app)
    kind, word = (in_a_thread, way.removeprefix("thread ")) if way.startswith("thread") else (parent, way)
    handle = await kind.using(user="ada", entity=("order", 42), correlation="request-7").enqueue(word)
    async with working(app):
        children = await handle.result(20)
    for child in children[:3]:
        assert context(await app.jobs.get(child)) == (handle.id, "request-7", "ada", "order", "42")
    found = await app.jobs.of(correlation="request-7")
    assert [job.id for job in found] == [handle.id, *children]
    assert (await app.jobs.count(parent=handle.id)).n == len(children)


async def test_each_parent_hands_on_its_own(app: Windlass) -> None:
    parent, _ = family(app)
    handles = [await parent.using(user=f"user{n}").enqueue("typed") for n in range(5)]
    async with working(app):
        for n, handle in enumerate(handles):
            [child] = await handle.result(20)
            assert context(await app.jobs.get(child)) == (handle.id, handle.id, f"user{n}", None, None)


async def test_outside_a_job_nothing_is_taken_over(app: Windlass) -> None:
    parent, _ = family(app)
    first = await parent.using(user="ada", correlation="request-7").enqueue("typed")
    async with working(app):
        await first.result(20)
    after = await app.enqueue("leaf", {"name": "x"})
    assert context(await after.job()) == (None, None, None, None, None)


async def test_what_the_caller_decides_is_not_taken_over(app: Windlass) -> None:
    @app.job
    async def leaf() -> None: ...

    @app.job
    async def parent() -> list[str]:
        return [
            (await leaf.using(user="system").enqueue()).id,
            (await leaf.using(user="grace", entity=("file", "f"), correlation="mine").enqueue()).id,
            (await app.enqueue("plain", user=None, entity=None, correlation=None)).id,
            (await app.enqueue("plain", queue="other")).id,
            (await leaf.using(user=None, entity=None, correlation=None).using(queue="other").enqueue()).id,
            (await app.enqueue_many([leaf.using(user=None).bind()]))[0].id,
        ]

    handle = await parent.using(user="ada", entity=("order", 42), correlation="c").enqueue()
    async with working(app):
        ids = await handle.result(20)
    assert [context(await app.jobs.get(one)) for one in ids] == [
        (handle.id, "c", "system", "order", "42"),
        (handle.id, "mine", "grace", "file", "f"),
        (handle.id, None, None, None, None),
        (handle.id, "c", "ada", "order", "42"),
        (handle.id, None, None, None, None),
        (handle.id, "c", None, "order", "42"),
    ]


async def test_the_id_of_a_root_tells_its_whole_tree_in_order_of_creation(app: Windlass) -> None:
    @app.job
    async def grow(depth: int) -> None:
        if depth:
            await app.enqueue_many([grow.bind(depth - 1), grow.bind(depth - 1)])

    root = await grow.enqueue(3)
    stranger = await grow.enqueue(0)
    async with working(app):

        async def ended() -> bool:
            return (await app.jobs.count(type="grow", status=Status.SUCCEEDED)).n == 16

        await until(ended, "the tree to be grown", within=20)
    tree = await app.jobs.of(correlation=root.id)
    assert len(tree) == 15
    assert tree[0].id == root.id
    assert tree[0].correlation_id is None
    assert [job.id for job in tree] == sorted(job.id for job in tree)
    assert stranger.id not in {job.id for job in tree}
    parents = {job.parent_id for job in tree[1:]}
    assert parents < {job.id for job in tree}


async def test_everything_about_a_thing_is_told_in_order_beyond_a_page_and_bounded_if_asked(app: Windlass) -> None:
    drafts = [draft(entity_name="order", entity_id="42", correlation_id="c") for _ in range(2_300)]
    await app.store.jobs.insert(drafts)
    await app.store.jobs.insert([draft(entity_name="order", entity_id="43")])
    ids = [one.id for one in drafts]
    assert [job.id for job in await app.jobs.about("order", 42)] == ids
    assert [job.id for job in await app.jobs.of(correlation="c")] == ids
    assert [job.id for job in await app.jobs.about("order", 42, most=1_200)] == ids[-1_200:], "the newest"
    assert [job.id async for job in app.jobs.each(entity=("order", 42))] == ids[::-1]
    assert [job.id async for job in app.jobs.each(after=ids[3], entity=("order", 42))] == ids[2::-1]
    for wrong in (0, True, "all"):
        bad: Any = wrong
        with pytest.raises(SettingsError, match="most is"):
            await app.jobs.about("order", 42, most=bad)


async def test_a_correlation_that_is_the_id_of_a_job_with_another_is_no_root(app: Windlass) -> None:
    inner = await finish(app.store, draft(correlation_id="c"))
    assert await app.jobs.of(correlation=inner.id) == []


@pytest.mark.timeout(90)
async def test_a_handler_in_a_process_of_its_own_hands_its_context_on(app: Windlass, crew: Crew) -> None:
    handle = await app.enqueue("leave_a_child", {"name": "x"}, user="ada", correlation="c")
    worker = crew.run("windlass", "worker", "tests.control.handlers:app", "--drain", "--quiet")
    assert worker == 0
    child = await app.jobs.get(await handle.result(1))
    assert context(child) == (handle.id, "c", "ada", None, None)
