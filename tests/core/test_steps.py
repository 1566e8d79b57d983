from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Annotated, Any, TypeVar, cast

import pytest

from tests.core.making import a_job, declared
from windlass.core.context import Ctx
from windlass.core.draft import Draft, Options, ids_after, make_id
from windlass.core.errors import (
    ChildFailed,
    HandlerError,
    PayloadInvalid,
    SettingsError,
    StepInvalid,
    TransactionRefused,
    WindlassError,
)
from windlass.core.handler import Declaration
from windlass.core.job import Error, Job
from windlass.core.kept import LARGEST, MOST, MOST_BYTES
from windlass.core.outcome import Gathering, Released, Waiting
from windlass.core.remembers import Gatherable, Remembers
from windlass.core.returned import codec_of
from windlass.core.signals import LONGEST, Cancel, Suspend, suspension_in
from windlass.core.status import Status
from windlass.core.steps import gathered_as

T = TypeVar("T")
FIRST = make_id(1_700_000_000_000, 5)


@dataclass
class Book:
    """Where a job's values are kept, as far as its context can tell."""

    kept: dict[str, str] = field(default_factory=dict[str, str])
    written: list[str] = field(default_factory=list[str])
    stopping: bool = False
    children: dict[str, Job] = field(default_factory=dict[str, Job])
    inserted: list[Draft] = field(default_factory=list[Draft])
    in_threads: int = 0
    transactions: list[object] = field(default_factory=list[object])

    async def keep(self, name: str, text: str) -> None:
        self.kept[name] = text
        self.written.append(name)

    async def keep_in(self, tx: object, name: str, text: str) -> None:
        self.keep_in_now(tx, name, text)

    def keep_in_now(self, tx: object, name: str, text: str) -> None:
        self.transactions.append(tx)
        self.kept[name] = text

    async def insert(self, drafts: Sequence[Draft]) -> None:
        self.inserted += drafts

    async def look(self, ids: Sequence[str]) -> list[Job | None]:
        return [self.children.get(id_) for id_ in ids]

    async def in_thread(self, function: Callable[[], T]) -> T:
        self.in_threads += 1
        return function()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(call)

    def new_id(self) -> str:
        return FIRST

    def attempt(self, *, cancelled: bool = False) -> Ctx:
        """A new attempt of the job, which finds what was kept."""
        job = a_job(kept_json=json.dumps(self.kept) if self.kept else None)
        return Ctx(job, lambda _: None, lambda: cancelled, remembers=self)


def alone() -> Ctx:
    """Of a handler that was called directly."""
    return Ctx(a_job(), lambda _: None, lambda: False)


async def double(n: int) -> int:
    return n * 2


def halve(n: int) -> int:
    return n // 2


def test_the_doubles_here_are_what_steps_ask_for() -> None:
    book: Remembers = Book()
    bound: Gatherable[Any] = Bound(1)
    assert (book.stopping, bound.type) == (False, "squares")


# Steps.


async def test_a_step_runs_once_and_is_remembered_in_later_attempts() -> None:
    book, calls = Book(), list[int]()

    async def create(n: int) -> dict[str, int]:
        calls.append(n)
        return {"id": n}

    assert await book.attempt().step("account", create, 7) == {"id": 7}
    assert await book.attempt().step("account", create, 8) == {"id": 7}
    assert calls == [7]
    assert book.kept == {"step:account": '{"id":7}'}


async def test_a_function_that_is_not_asynchronous_runs_in_a_thread() -> None:
    book = Book()
    ctx = book.attempt()
    assert await ctx.step("half", halve, 10) == 5
    assert await ctx.step("later", lambda: double(4)) == 8
    assert book.in_threads == 2
    assert await ctx.step("double", double, 4) == 8
    assert await ctx.step("object", Doubling(), 4) == 8
    assert book.in_threads == 2


class Doubling:
    async def __call__(self, n: int) -> int:
        return n * 2


def test_a_step_of_a_handler_in_a_thread_runs_where_the_handler_does() -> None:
    book = Book()
    assert book.attempt().step_now("half", halve, 10) == 5
    assert book.attempt().step_now("half", halve, 99) == 5
    assert (book.in_threads, book.written) == (0, ["step:half"])


def test_a_handler_in_a_thread_cannot_take_a_step_that_is_asynchronous() -> None:
    def handed_over() -> Awaitable[int]:
        return Given()

    book = Book()
    for function in (functools.partial(double, 1), handed_over):
        with pytest.raises(HandlerError, match=r"step:double of job .* which is asynchronous"):
            _ = book.attempt().step_now("double", function)
    assert book.kept == {}


class Given:
    def __await__(self) -> Any:
        yield


async def test_a_step_that_raises_is_not_remembered() -> None:
    book = Book()

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await book.attempt().step("a", fail)
    assert book.kept == {}


async def test_steps_go_by_name_and_key_and_a_name_stands_once() -> None:
    ctx = Book().attempt()
    for key in ("a", "b"):
        assert await ctx.step("row", double, 1, key=key) == 2
    with pytest.raises(StepInvalid, match=r"step:row:a of job .* was asked for twice in one attempt") as error:
        await ctx.step("row", double, 1, key="a")
    assert (error.value.job_id, error.value.step) == (a_job().id, "step:row:a")


async def test_what_a_step_gives_reads_alike_in_every_attempt() -> None:
    def pair() -> Any:
        return (1, 2)

    def typed() -> tuple[int, ...]:
        return (1, 2)

    book = Book()
    for _ in range(2):
        ctx = book.attempt()
        assert await ctx.step("plain", pair) == [1, 2]
        assert await ctx.step("typed", typed) == (1, 2)


async def test_a_kept_value_that_no_longer_fits_names_step_and_job() -> None:
    book = Book(kept={"step:account": '"seven"'})
    with pytest.raises(StepInvalid, match=rf"step:account of job {a_job().id} was kept in a form that no longer fits"):
        await book.attempt().step("account", double, 7)


async def test_what_cannot_be_kept_is_refused_before_it_is_written() -> None:
    book = Book(kept={f"step:{n}": "1" for n in range(MOST)})
    with pytest.raises(PayloadInvalid, match="has no room for step:one-more"):
        await book.attempt().step("one-more", double, 7)
    with pytest.raises(StepInvalid, match=r"step:huge of job .* cannot be kept: .* bytes of JSON"):
        await Book().attempt().step("huge", lambda: "x" * 300_000)
    assert book.written == []


async def test_what_is_saved_in_place_of_another_takes_no_more_room() -> None:
    large, book = "x" * (LARGEST - 100), Book()
    ctx = book.attempt()
    for _ in range(10):
        await ctx.save(large)
    for n in range(MOST_BYTES // LARGEST - 1):
        await ctx.step("large", lambda: large, key=str(n))
    with pytest.raises(PayloadInvalid, match="has no room for step:large:one-more"):
        await ctx.step("large", lambda: large, key="one-more")
    await ctx.save(large)
    assert len(book.kept) == MOST_BYTES // LARGEST
    with pytest.raises(PayloadInvalid, match="has no room for step:large:again"):
        await book.attempt().step("large", lambda: large, key="again")


def test_the_type_of_a_step_is_the_return_annotation_whatever_is_called() -> None:
    class Called:
        def __call__(self) -> set[int]:
            return {1}

    def listed() -> Annotated[int, []]:
        return 1

    def nothing() -> None: ...

    def promised() -> Awaitable[set[int]]:
        raise NotImplementedError

    assert codec_of(Called()).decode("[1]") == {1}
    assert codec_of(functools.partial(promised)).decode("[1]") == {1}
    assert codec_of(listed).decode("1") == 1
    assert codec_of(nothing).encode(None) == "null"
    assert codec_of(lambda: 1).decode("[1]") == [1]
    assert codec_of(double) is codec_of(halve)
    assert codec_of(Listed([1])).decode("[1]") == {1}
    assert codec_of(Listed).decode('{"values":[1]}') == Listed([1])
    assert codec_of(Listed([1]).method) is codec_of(Listed([2]).method)


@dataclass
class Listed:
    """Something to call that cannot be looked up by: its fields make it unhashable."""

    values: list[int]

    def __call__(self) -> set[int]:
        return {*self.values}

    def method(self) -> float:
        return len(self.values)


def test_an_annotation_that_cannot_be_read_says_so() -> None:
    def unknown() -> Missing:  # type: ignore[name-defined]  # noqa: F821  # the subject
        raise NotImplementedError

    with pytest.raises(HandlerError, match=r"the return annotation of .*unknown.* import the name at run time"):
        codec_of(cast("Callable[[], object]", unknown))


# A cursor.


async def test_what_is_saved_is_there_at_once_and_in_the_next_attempt() -> None:
    book = Book()
    ctx = book.attempt()
    seen = [ctx.saved]
    for row in (3, 4):
        await ctx.save({"row": row})
        seen.append(ctx.saved)
    assert seen == [None, {"row": 3}, {"row": 4}]
    assert book.attempt().saved == {"row": 4}


def test_a_handler_in_a_thread_saves_too() -> None:
    book = Book()
    book.attempt().save_now(5)
    book.attempt().save_now(6, tx="the transaction")
    assert book.attempt().saved == 6
    assert book.transactions == ["the transaction"]


async def test_what_is_saved_in_a_transaction_goes_there_and_is_no_safe_point() -> None:
    book = Book(stopping=True)
    ctx = book.attempt(cancelled=True)
    await ctx.save(6, tx="the transaction")
    assert (ctx.saved, book.transactions, book.written) == (6, ["the transaction"], [])


@pytest.mark.parametrize("by", ["step", "save", "step_now", "save_now"])
def test_a_job_that_was_asked_to_cancel_ends_where_it_is_safe(by: str) -> None:
    book = Book()
    with pytest.raises(Cancel, match="cancelled on request"):
        safe_point(book.attempt(cancelled=True), by)
    assert len(book.kept) == 1


@pytest.mark.parametrize("by", ["step", "save", "step_now", "save_now"])
def test_a_worker_that_stops_gets_the_job_handed_back_where_it_is_safe(by: str) -> None:
    book = Book(stopping=True)
    with pytest.raises(Suspend) as suspended:
        safe_point(book.attempt(), by)
    assert isinstance(suspended.value.outcome, Released)
    assert len(book.kept) == 1


def safe_point(ctx: Ctx, by: str) -> None:
    match by:
        case "step":
            asyncio.run(ctx.step("a", double, 1))
        case "save":
            asyncio.run(ctx.save(1))
        case "step_now":
            ctx.step_now("a", halve, 1)
        case _:
            ctx.save_now(1)


# Signals.


async def test_a_wait_suspends_until_the_signal_is_there_and_then_gives_its_value() -> None:
    book = Book()
    with pytest.raises(Suspend) as suspended:
        await book.attempt().wait("approved", 60)
    assert suspended.value.outcome == Waiting("approved", timedelta(minutes=1))
    book.kept["signal:approved"] = '{"by":"eve"}'
    ctx = book.attempt()
    assert await ctx.wait("approved") == {"by": "eve"}
    assert ctx.wait_now("approved") == {"by": "eve"}


async def test_a_wait_without_a_timeout_is_for_ever_and_one_whose_time_was_up_gives_none() -> None:
    with pytest.raises(Suspend) as suspended:
        Book().attempt().wait_now("approved")
    assert suspended.value.outcome == Waiting("approved", LONGEST)
    assert await Book(kept={"signal:approved": "null"}).attempt().wait("approved", 1) is None
    with pytest.raises(SettingsError, match="the timeout of the wait is -1"):
        await Book().attempt().wait("approved", -1)


# Children.


@dataclass(frozen=True)
class Bound:
    """A job not yet enqueued, as far as gathering can tell."""

    n: int
    options: Options = field(default_factory=Options)

    @property
    def type(self) -> str:
        return self.declaration.name

    @property
    def declaration(self) -> Declaration:
        return declared(squares, name="squares")

    def draft(self) -> Draft:
        return Draft("own", self.type, json.dumps({"n": self.n}), self.options)

    async def enqueue(self, tx: object | None = None) -> Any:
        raise NotImplementedError


def squares(n: int) -> set[int]:
    return {n * n}


def child(number: int, **changes: Any) -> Job:
    ended = {"type": "squares", "status": Status.SUCCEEDED, "result_json": f"[{number}]"}
    return a_job(id=ids_after(FIRST, 3)[number], **{**ended, **changes})


JOBS = [Bound(n) for n in range(3)]


async def gathering(book: Book, jobs: Sequence[Bound] = JOBS, **options: Any) -> list[Any]:
    results: list[Any] = await book.attempt().gather("all", jobs, **options)
    return results


async def suspended_for_children(book: Book, jobs: Sequence[Bound] = JOBS) -> None:
    with pytest.raises(Suspend) as suspended:
        await gathering(book, jobs)
    assert suspended.value.outcome == Gathering("all")


async def test_children_are_known_before_they_are_inserted_and_their_results_come_in_order() -> None:
    book = Book()
    await suspended_for_children(book)
    assert book.kept == {"gather:all": json.dumps([FIRST, 3])}
    assert [draft.id for draft in book.inserted] == ids_after(FIRST, 3)
    assert {draft.next_id for draft in book.inserted} == {a_job().id}
    book.children = {one.id: one for one in (child(2), child(0), child(1))}
    assert await gathering(book) == [{0}, {1}, {2}]
    assert await gathering(book, []) == [[0], [1], [2]]


def test_a_handler_in_a_thread_gathers_too() -> None:
    book = Book(kept={"gather:all": json.dumps([FIRST, 1])}, children={child(0).id: child(0)})
    assert book.attempt().gather_now("all", JOBS[:1]) == [{0}]


async def test_an_attempt_that_died_inserting_is_made_good_by_the_next() -> None:
    book = Book()
    await suspended_for_children(book)
    book.inserted.clear()
    book.children = {one.id: one for one in (child(0), child(2, status=Status.QUEUED))}
    await suspended_for_children(book)
    assert [draft.id for draft in book.inserted] == [child(1).id]
    with pytest.raises(StepInvalid, match=r"gather:all of job .* was begun with 3 jobs, of which some are missing"):
        await gathering(book, JOBS[:2])


async def test_children_that_still_run_are_waited_for_again() -> None:
    book = Book()
    await suspended_for_children(book)
    book.inserted.clear()
    book.children = {one.id: one for one in (child(0), child(1), child(2, status=Status.PROCESSING))}
    await suspended_for_children(book)
    assert book.inserted == []


async def test_a_child_that_failed_raises_or_stands_in_its_place() -> None:
    book = Book()
    await suspended_for_children(book)
    error = Error(type="ValueError", message="no")
    failed = child(1, status=Status.FAILED, result_json=None, error=error)
    book.children = {one.id: one for one in (child(0), failed, child(2))}
    with pytest.raises(ChildFailed, match=rf"of what was gathered as all, job {failed.id} .* ValueError: no") as raised:
        await gathering(book)
    assert (raised.value.name, raised.value.job) == ("all", failed)
    first, second, third = await gathering(book, errors="return")
    assert (first, third) == ({0}, {2})
    assert isinstance(second, ChildFailed)


async def test_nothing_gathered_is_nothing_waited_for() -> None:
    book = Book()
    assert await gathering(book, []) == []
    assert book.kept == {}


async def test_a_child_does_not_replace_a_job_that_names_another_as_its_next() -> None:
    book = Book()
    await suspended_for_children(book, [replace(JOBS[0], options=Options(on_conflict="replace"))])
    assert [draft.options.on_conflict for draft in book.inserted] == ["raise"]


async def test_gathering_is_bounded_and_says_what_it_was_given() -> None:
    with pytest.raises(SettingsError, match="gather:all has 10,001 jobs: expected at most 10,000"):
        await gathering(Book(), JOBS[:1] * 10_001)
    with pytest.raises(SettingsError, match="errors is 'ignore': expected 'raise' or 'return'"):
        await gathering(Book(), errors="ignore")


def test_ids_of_children_follow_from_the_first_and_stand_in_order() -> None:
    ids = ids_after(FIRST, 10_000)
    assert ids == sorted(set(ids))
    assert ids[:3] == ids_after(FIRST, 3)
    assert {id_[:13] for id_ in ids} == {FIRST[:13]}
    assert ids[0] != ids_after(make_id(1_700_000_000_000, 6), 1)[0]


def test_a_child_is_known_by_what_its_parent_gathers_it_as() -> None:
    kept = {"saved": "1", "gather:few": json.dumps([make_id(1, 1), 2]), "gather:all": json.dumps([FIRST, 3])}
    job = a_job(kept_json=json.dumps(kept))
    assert gathered_as(job, child(2).id) == ("all", 3)
    assert gathered_as(job, FIRST) is None


# Without a worker.


async def test_without_a_worker_steps_just_run_and_what_is_saved_is_in_memory() -> None:
    ctx = alone()
    assert await ctx.step("double", double, 2) == 4
    assert await ctx.step("half", halve, 4) == 2
    await ctx.save(3)
    assert ctx.saved == 3
    ctx.save_now(4)
    assert ctx.saved == 4
    assert ctx.step_now("now", halve, 4) == 2
    assert ctx.gather_now("none", []) == []


async def test_without_a_worker_there_is_nothing_to_wait_for() -> None:
    with pytest.raises(WindlassError, match="no worker here to wait for a signal: the handler was called directly"):
        await alone().wait("approved")
    with pytest.raises(WindlassError, match="no worker here to gather jobs"):
        await alone().gather("all", JOBS)
    with pytest.raises(TransactionRefused, match="no store here to save in"):
        await alone().save(1, tx="the transaction")


# Suspending.


async def test_a_handler_that_was_suspended_goes_nowhere_any_more() -> None:
    book = Book()
    ctx = book.attempt()
    with pytest.raises(Suspend):
        await ctx.wait("first")
    for go_on in (ctx.wait("second"), ctx.step("a", double, 1), ctx.save(1), ctx.save(1, tx="t")):
        with pytest.raises(Suspend) as suspended:
            await go_on
        assert suspended.value.outcome == Waiting("first", LONGEST)
    with pytest.raises(Suspend):
        ctx.save_now(1, tx="t")
    assert book.kept == {}


async def test_a_handler_that_swallowed_its_suspension_is_told_so() -> None:
    ctx = Book().attempt()
    ctx.left()
    with pytest.raises(Suspend) as suspended:
        await ctx.wait("first")
    ctx.left(suspended.value)
    ctx.left(BaseExceptionGroup("tasks", [suspended.value, ValueError("beside it")]))
    ctx.left(asyncio.CancelledError())
    with pytest.raises(StepInvalid, match="was suspended as waiting and returned instead: let Suspend pass"):
        ctx.left()
    with pytest.raises(StepInvalid, match="was suspended as waiting and raised ValueError instead"):
        ctx.left(ValueError("no"))


async def test_a_handler_that_went_on_without_being_suspended_is_left_alone() -> None:
    ctx = Book().attempt()
    await ctx.save(1)
    ctx.left(ValueError("its own"))


def test_a_suspension_is_found_in_groups_unless_an_error_is_beside_it() -> None:
    suspend, other = Suspend(Gathering("a")), Suspend(Gathering("b"))
    assert suspension_in(suspend) is suspend
    assert suspension_in(BaseExceptionGroup("g", [BaseExceptionGroup("h", [suspend]), other])) is suspend
    mixed = BaseExceptionGroup("g", [suspend, ValueError("no")])
    assert suspension_in(mixed) is None
    assert not isinstance(mixed, Exception)
    assert suspension_in(ValueError("no")) is None
    assert not isinstance(suspend, Exception)


def test_the_origin_of_a_job_is_its_own_id_or_that_of_the_first_it_replays() -> None:
    assert alone().origin == a_job().id
    assert Ctx(a_job(origin="first"), lambda _: None, lambda: False).origin == "first"
