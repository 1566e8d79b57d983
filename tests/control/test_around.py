"""What an application lays around runs and enqueues, on every store."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from tests.contract.places import Place
from tests.contract.steps import everything
from tests.support.apps import Heard, until_status, working
from tests.support.until import until
from windlass import (
    Cancel,
    Ctx,
    DuplicateJob,
    Handler,
    HandlerError,
    Outgoing,
    Reject,
    Retry,
    SettingsError,
    Snooze,
    Status,
    Windlass,
    events,
)

pytestmark = pytest.mark.timeout(60)
TENANT: ContextVar[str | None] = ContextVar("tenant", default=None)


def with_tenants(app: Windlass) -> None:
    """From the caller's context into the job, and from the job into its run."""

    @app.around_enqueue
    async def take_along(job: Outgoing) -> AsyncIterator[Outgoing | None]:
        tenant = TENANT.get()
        yield None if tenant is None else job.using(metadata={**job.metadata, "tenant": tenant})

    @app.around_run
    async def restore(ctx: Ctx) -> AsyncIterator[None]:
        token = TENANT.set(ctx.job.metadata.get("tenant"))
        yield
        TENANT.reset(token)


async def test_a_tenant_goes_along_by_every_way_of_enqueueing(app: Windlass) -> None:
    with_tenants(app)

    @app.job
    async def who(n: int = 0) -> str | None:
        await asyncio.sleep(0)
        return TENANT.get()

    @app.job
    def who_in_a_thread() -> str | None:
        return TENANT.get()

    @app.job
    async def parent() -> str:
        return (await who.enqueue()).id

    TENANT.set(None)
    plain = await who.enqueue()
    TENANT.set("acme")
    one = await who.using(metadata={"own": 1}).enqueue()
    threaded = await who_in_a_thread.enqueue()
    many = await app.enqueue_many(who.bind(n) for n in range(3))
    named = await app.enqueue("who")
    flow = await app.group([who.bind(1), who.bind(2)]).then(who.bind(3)).enqueue()
    synced = await asyncio.to_thread(who.enqueue_sync)
    many_synced = await asyncio.to_thread(app.enqueue_many_sync, [who.bind(1), who.bind(2)])
    child = await parent.enqueue()
    TENANT.set(None)
    async with working(app):
        for handle in (one, threaded, *many, named, *flow.jobs, synced, *many_synced):
            assert await handle.result(20) == "acme"
        assert await plain.result(20) is None
        grandchild = await until_status(child, Status.SUCCEEDED)
        [found] = await app.store.views.get([str(grandchild.result)])
        assert found is not None
        assert found.metadata == {"tenant": "acme"}, "the run of its parent was in the tenant's context"
    assert (await one.job()).metadata == {"own": 1, "tenant": "acme"}
    await no_threads()


@pytest.mark.parametrize("commits", [True, False])
async def test_layers_are_around_enqueues_inside_a_transaction(app: Windlass, place: Place, commits: bool) -> None:
    with_tenants(app)

    @app.job
    async def who() -> None: ...

    if not app.store.capabilities.transactions:
        return
    TENANT.set("acme")
    async with place.transaction() as transaction:
        with app.within(transaction.tx):
            handle = await who.enqueue()
            flow = await who.bind().then(who.bind()).enqueue()
        await (transaction.commit() if commits else transaction.rollback())
    jobs = await everything(app.store)
    assert {job.id for job in jobs} == ({handle.id, *[one.id for one in flow.jobs]} if commits else set())
    assert all(job.metadata == {"tenant": "acme"} for job in jobs)


def test_a_synchronous_transaction_has_no_loop_to_wait_in(app: Windlass, place: Place) -> None:
    if not app.store.capabilities.transactions:
        return
    with_tenants(app)

    @app.job
    def who() -> None: ...

    TENANT.set("acme")
    with place.transaction_now() as transaction, app.within(transaction.tx):
        app.run_sync(_opened(app))
        who.enqueue_sync()
        app.enqueue_many_sync([who.bind()])
        who.bind().then(who.bind()).enqueue_sync()

        @app.around_enqueue
        async def waits(_: Outgoing) -> AsyncIterator[None]:
            await asyncio.sleep(0)
            yield

        with pytest.raises(SettingsError, match=r"waits waits for something.*no event loop on this thread"):
            who.enqueue_sync()


async def _opened(app: Windlass) -> None:
    await app.client.ready()


async def test_layers_are_entered_in_order_the_applications_outside_the_handlers(app: Windlass) -> None:
    steps: list[str] = []

    def noting(name: str) -> Any:
        def layer(_: object) -> Iterator[None]:
            steps.append(f"{name} in")
            yield
            steps.append(f"{name} out")

        return layer

    async def later(_: object) -> AsyncIterator[None]:
        steps.append("later in")
        yield
        steps.append("later out")

    app.around_run(noting("first"))
    app.around_run(later)
    app.around_enqueue(noting("enqueue"))

    @app.job(around_run=[noting("own")], around_enqueue=[noting("own enqueue")])
    async def step() -> None:
        steps.append("run")

    class Step(Handler[int, None], around_run=[noting("class")]):
        async def perform(self, data: int) -> None:
            steps.append("run class")

    add = app.add(Step)
    await step.enqueue()
    assert steps == ["enqueue in", "own enqueue in", "own enqueue out", "enqueue out"]
    steps.clear()
    await app.worker(drain=True).run()
    assert steps == ["first in", "later in", "own in", "run", "own out", "later out", "first out"]
    steps.clear()
    await add.enqueue(1)
    await app.worker(drain=True).run()
    assert steps[2:] == ["first in", "later in", "class in", "run class", "class out", "later out", "first out"]


async def test_of_a_def_handler_synchronous_layers_share_the_thread(app: Windlass) -> None:
    threads: dict[str, list[str]] = defaultdict(list)

    @app.around_run
    def here(_: Ctx) -> Iterator[None]:
        threads["sync"].append(threading.current_thread().name)
        yield

    @app.around_run
    async def in_the_loop(_: Ctx) -> AsyncIterator[None]:
        threads["async"].append(threading.current_thread().name)
        yield

    @app.job
    def work() -> None:
        threads["handler"].append(threading.current_thread().name)

    await work.enqueue()
    await app.worker(drain=True).run()
    assert threads["sync"] == threads["handler"] != threads["async"] == [threading.current_thread().name]
    assert len(threads["sync"]) == 1, "entered once, and not in the loop as well"
    await no_threads()


RAISED: dict[str, tuple[Exception, Status, int]] = {
    "error": (ValueError("no session"), Status.RETRYING, 1),
    "retry": (Retry(after=60), Status.RETRYING, 1),
    "snooze": (Snooze(60), Status.SCHEDULED, 0),
    "cancel": (Cancel("not now"), Status.CANCELLED, 1),
    "reject": (Reject("never"), Status.FAILED, 1),
}


@pytest.mark.parametrize("when", ["before", "after", "instead"])
@pytest.mark.parametrize("mode", ["async", "thread"])
async def test_what_a_layer_raises_is_the_outcome_of_the_attempt(app: Windlass, when: str, mode: str) -> None:
    ran: list[str] = []

    @app.around_run
    def layer(ctx: Ctx) -> Iterator[None]:
        raised = RAISED[ctx.job.payload["how"]][0]
        if when == "before":
            raise raised
        try:
            yield
        except KeyError:
            raise raised from None
        raise raised

    def body(how: str) -> None:
        ran.append(how)
        if when == "instead":
            raise KeyError("the handler's own")

    async def later(how: str) -> None:
        body(how)

    job = app.job(name="job", retry=Retry(3, base=60, jitter=False))(later if mode == "async" else body)
    handles = {how: await job.enqueue(how) for how in RAISED}
    async with working(app):
        for how, (_, status, attempts) in RAISED.items():
            found = await until_status(handles[how], status)
            assert (found.status, found.attempts) == (status, attempts)
    assert sorted(ran) == ([] if when == "before" else sorted(RAISED))
    error = (await handles["error"].job()).error
    assert error is not None
    assert error.message == "no session"
    assert "raised by the layer" in (error.traceback or "")
    await no_threads()


async def no_threads() -> None:
    """An idle thread ends when its worker has, a moment later."""

    def ended() -> bool:
        return not any(thread.name.startswith("windlass-thread") for thread in threading.enumerate())

    await until(ended, "threads to end")


async def test_a_layer_sees_what_the_handler_raised_and_cannot_hide_it(app: Windlass) -> None:
    seen: list[BaseException] = []

    @app.around_run
    async def reports(_: Ctx) -> AsyncIterator[None]:
        try:
            yield
        except ValueError as error:
            seen.append(error)

    @app.job(retry=1)
    async def bad() -> None:
        raise ValueError("bad")

    handle = await bad.enqueue()
    async with working(app):
        await until_status(handle, Status.FAILED)
    assert [str(error) for error in seen] == ["bad"]


async def test_an_enqueue_is_refused_by_raising_and_nothing_is_written(app: Windlass) -> None:
    @app.around_enqueue
    def no_large_ones(job: Outgoing) -> Iterator[None]:
        if job.payload.get("n", 0) > 2:
            raise PermissionError(f"{job.type} {job.payload['n']}")
        yield

    @app.job
    async def step(n: int) -> None: ...

    heard = Heard(app)
    with pytest.raises(PermissionError, match="step 3"):
        await step.enqueue(3)
    with pytest.raises(PermissionError):
        await app.enqueue_many([step.bind(1), step.bind(3)])
    with pytest.raises(PermissionError):
        await step.bind(1).then(step.bind(3)).enqueue()
    with pytest.raises(PermissionError):
        await asyncio.to_thread(step.enqueue_sync, 3)
    assert await everything(app.store) == []
    assert heard.all(events.JobEnqueued) == []


async def test_a_layer_changes_options_but_no_keys_and_the_given_job_stays_as_it_was(app: Windlass) -> None:
    given: list[Outgoing] = []

    @app.around_enqueue
    def routes(job: Outgoing) -> Iterator[Outgoing]:
        given.append(job)
        yield job.using(queue="vip", priority="high", user="u1", tags=["routed"], max_attempts=7)

    @app.job(fair_by="user")
    async def step() -> None: ...

    job = await (await step.enqueue()).job()
    assert (job.queue, job.priority, job.user_id, job.tags, job.max_attempts) == ("vip", 50, "u1", ("routed",), 7)
    assert job.fair_key == "u1"
    assert (given[0].queue, given[0].options.user_id) == ("default", None)
    with pytest.raises(SettingsError, match="option that a layer may change"):
        given[0].using(unique="k")  # type: ignore[call-arg]  # the refusal is tested


async def test_a_layer_that_yields_something_else_is_told_so(app: Windlass) -> None:
    @app.around_enqueue
    def wrong(_: Outgoing) -> Iterator[str]:
        yield "vip"

    @app.job
    async def step() -> None: ...

    with pytest.raises(HandlerError, match=r"wrong yielded 'vip': expected the job that it was given"):
        await step.enqueue()


async def test_a_layer_sees_what_became_of_the_enqueue(app: Windlass) -> None:
    seen: list[str] = []

    @app.around_enqueue
    async def watches(_: Outgoing) -> AsyncIterator[None]:
        try:
            yield
            seen.append("in the store")
        except DuplicateJob:
            seen.append("duplicate")
            raise

    @app.job(unique="k")
    async def step() -> None: ...

    await step.enqueue()
    with pytest.raises(DuplicateJob):
        await step.using(on_conflict="raise").enqueue()
    assert seen == ["in the store", "duplicate"]


async def test_a_replay_and_a_tick_keep_what_they_have(app: Windlass) -> None:
    with_tenants(app)

    @app.job
    async def step() -> None: ...

    TENANT.set("acme")
    handle = await step.enqueue()
    await app.worker(drain=True).run()
    TENANT.set("operator")
    again = await app.jobs.replay(handle.id)
    assert (await again.job()).metadata == {"tenant": "acme"}
