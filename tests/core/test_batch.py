from __future__ import annotations

from typing import Any

import pytest

from tests.core.making import a_job
from windlass.core.batch import MOST, Batched, alone, context_of
from windlass.core.context import Ctx
from windlass.core.draft import Options
from windlass.core.errors import HandlerError, SettingsError
from windlass.core.handler import Declaration, declare_batch
from windlass.core.job import Progress
from windlass.core.retry import DEFAULT_POLICY
from windlass.core.unique import Unique


def a_batched(data: Any = 1, reports: list[Progress] | None = None) -> Batched[Any, Any]:
    told: list[Progress] = [] if reports is None else reports
    return Batched(Ctx(a_job(attempts=2), told.append, lambda: True), data)


def declared(function: Any, batch: Any = 5, *, process: bool = False, **options: Any) -> Declaration:
    return declare_batch(
        function, batch, name="index", options=Options(**options), policy=DEFAULT_POLICY, process=process
    )


async def index(jobs: list[Batched[dict[str, int], str]]) -> None: ...


def in_thread(jobs: list[Batched[int, None]]) -> None: ...


# one job of a batch


def test_a_job_of_a_batch_shows_what_it_is() -> None:
    reports: list[Progress] = []
    one = a_batched(7, reports)
    assert (one.id, one.job, one.data, one.attempt, one.cancelled) == (a_job().id, a_job(attempts=2), 7, 2, True)
    one.progress(1, of=2, note="half")
    assert reports == [Progress(done=1, of=2, note="half")]
    assert context_of(one).id == one.id
    assert repr(one) == f"<mail.send {a_job().id} of a batch>"


def test_at_first_nothing_is_said_of_its_end() -> None:
    one = a_batched()
    assert (one.is_done, one.result, one.error) == (False, None, None)


def test_the_last_word_on_a_job_counts() -> None:
    one, error = a_batched(), ValueError("no")
    one.done(3)
    assert (one.is_done, one.result, one.error) == (True, 3, None)
    one.fail(error)
    assert (one.is_done, one.result, one.error) == (False, None, error)
    one.done(4)
    assert (one.is_done, one.result, one.error) == (True, 4, None)


def test_only_an_exception_is_a_failure() -> None:
    wrong: Any = "no"
    with pytest.raises(SettingsError, match="fail was given 'no': expected an exception"):
        a_batched().fail(wrong)


# alone


async def test_alone_it_gives_its_result_or_raises_its_error() -> None:
    async def done(jobs: list[Batched[int, int]]) -> None:
        jobs[0].done(jobs[0].data + 1)

    async def failed(jobs: list[Batched[int, int]]) -> None:
        jobs[0].fail(ValueError("no"))

    assert await alone(done, a_batched(1), awaits=True) == 2
    with pytest.raises(ValueError, match="no"):
        await alone(failed, a_batched(1), awaits=True)
    assert alone(in_thread, a_batched(), awaits=False) is None


# declarations


def test_the_data_of_a_job_is_its_whole_payload() -> None:
    found = declared(index)
    assert (found.mode, found.batch, found.wants_ctx) == ("coroutine", 5, False)
    assert found.codec.encode(({"id": 3},), {}) == '{"id":3}'
    assert found.arguments('{"id":3}') == {"data": {"id": 3}}
    assert found.codec.encode_result("x") == '"x"'
    assert declared(in_thread).mode == "thread"


def test_it_is_described_with_its_size() -> None:
    assert declared(index, 7).described().options["batch"] == 7
    assert declared(index, 7).described().fingerprint != declared(index, 8).described().fingerprint


def test_keys_may_name_members_of_the_data_where_its_type_says_them() -> None:
    assert declared(index, unique=Unique.of("row:{id}")).options.unique is not None


@pytest.mark.parametrize("batch", [0, -1, MOST + 1, 1.0, True, "5", None])
def test_a_size_that_is_no_number_of_jobs_is_refused(batch: Any) -> None:
    with pytest.raises(HandlerError, match=r"the batch of .*index is .*: expected a number of jobs from 1 to 10,000"):
        declared(index, batch)


def test_a_process_of_its_own_is_refused() -> None:
    with pytest.raises(HandlerError, match="cannot take batches in a process of its own"):
        declared(in_thread, process=True)


async def rows(rows: list[int]) -> None: ...
async def untyped(jobs: Any) -> None: ...
async def two(jobs: list[Batched[int, None]], more: int) -> None: ...
async def nothing() -> None: ...
async def returns(jobs: list[Batched[int, int]]) -> list[int]:
    return [job.data for job in jobs]


@pytest.mark.parametrize("function", [rows, untyped, two, nothing, returns])
def test_any_other_form_is_refused_with_the_one_that_is_meant(function: Any) -> None:
    with pytest.raises(HandlerError, match=r"as a batch: write def .*\(jobs: list\[Batched\[Row, None\]\]\) -> None"):
        declared(function)
