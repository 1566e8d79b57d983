from __future__ import annotations

import contextvars
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.making import a_job
from windlass.core.context import MOST_PROGRESS, Ctx, enter, running
from windlass.core.errors import SettingsError, TransactionRefused, WindlassError
from windlass.core.job import LONGEST_NOTE, Progress
from windlass.core.signals import Cancel

HUGE = pytest.param(10**5000, id="5,001 digits")


def a_ctx(reports: list[Progress] | None = None, *, cancelled: bool = False) -> Ctx:
    return Ctx(a_job(attempts=3), (reports if reports is not None else []).append, lambda: cancelled)


def test_a_context_tells_of_its_job() -> None:
    ctx = a_ctx()
    assert (ctx.id, ctx.attempt, ctx.token) == (a_job().id, 3, 7)
    assert ctx.job == a_job(attempts=3)


def test_a_job_nobody_cancelled_goes_on_past_its_checks() -> None:
    ctx = a_ctx()
    assert not ctx.cancelled
    ctx.check()


def test_a_cancelled_job_ends_at_its_next_check() -> None:
    ctx = a_ctx(cancelled=True)
    assert ctx.cancelled
    with pytest.raises(Cancel, match=r"cancelled on request"):
        ctx.check()


def test_a_context_asks_anew_each_time_whether_it_was_cancelled() -> None:
    answers = iter([False, True])
    ctx = Ctx(a_job(), lambda _: None, lambda: next(answers))
    assert [ctx.cancelled, ctx.cancelled] == [False, True]


def test_progress_is_reported_as_it_is_told() -> None:
    reports: list[Progress] = []
    ctx = a_ctx(reports)
    ctx.progress(1)
    ctx.progress(2.5, 10, "halfway")
    ctx.progress(0, 0)
    assert reports == [
        Progress(done=1),
        Progress(done=2.5, of=10, note="halfway"),
        Progress(done=0, of=0),
    ]


@given(st.integers(-MOST_PROGRESS, MOST_PROGRESS) | st.floats(-(2.0**53), 2.0**53))
def test_any_number_of_that_size_is_progress_and_stays_what_it_is(number: float) -> None:
    reports: list[Progress] = []
    a_ctx(reports).progress(number, number)
    assert (reports[0].done, reports[0].of) == (number, number)
    assert type(reports[0].done) is type(number)


def test_other_kinds_of_numbers_become_floats() -> None:
    reports: list[Progress] = []
    done: Any = Decimal("2.5")
    a_ctx(reports).progress(done, True)
    assert reports == [Progress(done=2.5, of=1.0)]
    assert [type(reports[0].done), type(reports[0].of)] == [float, float]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf"), 2**53 + 1, 1e300, HUGE, Decimal("nan")])
def test_progress_that_no_store_can_keep_is_refused(number: Any) -> None:
    reports: list[Progress] = []
    ctx = a_ctx(reports)
    with pytest.raises(SettingsError, match=r"progress is .*: expected a number from"):
        ctx.progress(number)
    with pytest.raises(SettingsError, match=r"progress is .*: expected a number from"):
        ctx.progress(1, number)
    assert reports == []


def test_a_note_is_cut_and_cleaned() -> None:
    reports: list[Progress] = []
    ctx = a_ctx(reports)
    ctx.progress(1, note="row \x00\ud800")
    ctx.progress(1, note="a" * 10_000)
    assert reports[0].note == "row \ufffd\ufffd"
    assert len(reports[1].note or "") == LONGEST_NOTE


def test_outside_a_running_job_there_is_no_context() -> None:
    with pytest.raises(WindlassError, match=r"outside a running job"):
        contextvars.Context().run(Ctx.current)


def test_inside_a_running_job_its_context_is_at_hand() -> None:
    def running(ctx: Ctx) -> Ctx:
        enter(ctx)
        return Ctx.current()

    one, other = a_ctx(), a_ctx()
    assert contextvars.Context().run(running, one) is one
    assert contextvars.Context().run(running, other) is other


def test_code_may_ask_whether_a_job_runs_here() -> None:
    one = a_ctx()

    def inside() -> Ctx | None:
        enter(one)
        return running()

    assert contextvars.Context().run(running) is None
    assert contextvars.Context().run(inside) is one


class Ends:
    """Keeps what it was told to end, and how."""

    def __init__(self) -> None:
        self.told: list[tuple[str, object, Any]] = []

    async def later(self, tx: object, result: Any) -> None:
        self.told.append(("later", tx, result))

    def now(self, tx: object, result: Any) -> None:
        self.told.append(("now", tx, result))


async def test_a_job_can_be_completed_in_a_transaction_of_its_handler() -> None:
    ends = Ends()
    ctx = Ctx(a_job(), list[Progress]().append, lambda: False, ends)
    await ctx.complete_in("a transaction", 7)
    ctx.complete_in_now("another")
    assert ends.told == [("later", "a transaction", 7), ("now", "another", None)]


async def test_without_a_store_at_hand_there_is_nothing_to_complete_in() -> None:
    with pytest.raises(TransactionRefused, match=r"end by returning"):
        await a_ctx().complete_in("a transaction")
    with pytest.raises(TransactionRefused, match=r"end by returning"):
        a_ctx().complete_in_now("a transaction")
