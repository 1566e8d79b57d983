from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.making import a_job
from windlass.core.history import Happened
from windlass.core.job import LONGEST_NOTE, Error
from windlass.core.outcome import (
    Cancelled,
    Crashed,
    Failed,
    Gathering,
    Lost,
    Outcome,
    Released,
    Snoozed,
    Succeeded,
    Unfit,
    Waiting,
)
from windlass.core.retry import Retry
from windlass.core.status import Status, allowed
from windlass.core.transition import (
    LONGEST_MESSAGE,
    LONGEST_TRACEBACK,
    LONGEST_TYPE,
    WORKER_DIED,
    Transition,
    decide,
    go_on,
    honour_cancel,
    needs_proof,
    refuse,
)

BOOM = Error(type="ValueError", message="boom", traceback="Traceback\nValueError: boom")
STEADY = Retry(5, base=10, factor=1, cap=10, jitter=False)
A_CENTURY = timedelta(days=36_500)

durations = st.timedeltas(min_value=timedelta(0), max_value=A_CENTURY)
errors = st.builds(Error, type=st.text(), message=st.text(), traceback=st.none() | st.text())
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Succeeded, st.just("1")),
    st.builds(Failed, errors, st.booleans(), st.none() | durations),
    st.builds(Snoozed, durations, st.none() | st.text()),
    st.builds(Cancelled, st.text()),
    st.builds(Released, st.text()),
    st.builds(Unfit, errors),
    st.builds(Waiting, st.sampled_from(["approved", "paid"]), durations),
    st.builds(Gathering, st.just("sizes")),
    st.builds(Crashed, st.text()),
    st.builds(Lost, st.booleans()),
)
counts = st.integers(1, 2**31 - 1)
jobs = st.builds(a_job, attempts=counts, max_attempts=counts, crashes=st.integers(0, 2**31 - 2), max_crashes=counts)
policies = st.builds(
    Retry,
    st.integers(1, 1_000_000),
    base=st.floats(0, 1e9),
    factor=st.floats(1, 1e9),
    cap=st.floats(0, 1e9),
    jitter=st.booleans(),
)
spreads = st.floats(0, 1, exclude_max=True)


# each outcome


def test_a_payload_that_cannot_be_read_puts_the_job_aside_and_spends_no_attempt() -> None:
    transition = decide(a_job(attempts=5, max_attempts=5), Unfit(BOOM), STEADY)
    assert (transition.to, transition.happened, transition.give_back) == (Status.BLOCKED, Happened.BLOCKED, True)
    assert transition.blocked_by == f"payload:{a_job().type}"
    assert (transition.error, transition.crashed, transition.delay) == (BOOM, False, None)
    assert transition.note == f"{transition.blocked_by}: boom"
    assert honour_cancel(transition).blocked_by is None


def test_a_job_that_waits_for_a_signal_is_put_aside_until_its_time_is_up_and_spends_no_attempt() -> None:
    transition = decide(a_job(attempts=5, max_attempts=5), Waiting("approved", A_CENTURY), STEADY)
    assert transition == Transition(
        id=a_job().id,
        token=7,
        to=Status.BLOCKED,
        happened=Happened.SUSPENDED,
        delay=A_CENTURY,
        give_back=True,
        note="waits for the signal approved",
        blocked_by="signal:approved",
    )


def test_a_job_whose_signal_is_there_goes_on_at_once() -> None:
    waits = decide(a_job(), Waiting("approved", A_CENTURY))
    assert go_on(waits) == waits._replace(
        to=Status.QUEUED, delay=None, note="waits for the signal approved, which is there", blocked_by=None
    )


def test_a_job_that_gathers_waits_for_those_that_name_it_and_has_no_time_limit() -> None:
    transition = decide(a_job(), Gathering("sizes"))
    assert (transition.to, transition.happened, transition.give_back) == (Status.BLOCKED, Happened.SUSPENDED, True)
    assert (transition.blocked_by, transition.delay) == (f"flow:{a_job().id}", None)
    assert transition.note == "waits for what it gathers as sizes"


@pytest.mark.parametrize("outcome", [Waiting("approved", A_CENTURY), Gathering("sizes")])
def test_a_job_that_was_asked_to_cancel_does_not_wait(outcome: Outcome) -> None:
    instead = honour_cancel(decide(a_job(), outcome))
    assert (instead.to, instead.happened) == (Status.CANCELLED, Happened.CANCELLED)
    assert (instead.blocked_by, instead.delay) == (None, None)


def test_a_result_ends_the_job_as_succeeded() -> None:
    found = decide(a_job(), Succeeded('{"n":1}'))
    assert found == Transition(
        id=a_job().id, token=7, to=Status.SUCCEEDED, happened=Happened.SUCCEEDED, result_json='{"n":1}'
    )


@pytest.mark.parametrize(
    ("attempts", "most", "to"),
    [
        (1, 1, Status.FAILED),
        (1, 2, Status.RETRYING),
        (4, 5, Status.RETRYING),
        (5, 5, Status.FAILED),
        (6, 5, Status.FAILED),
        (2**31 - 2, 2**31 - 1, Status.RETRYING),
        (2**31 - 1, 2**31 - 1, Status.FAILED),
    ],
)
def test_a_failed_attempt_is_tried_again_until_the_attempts_are_spent(attempts: int, most: int, to: Status) -> None:
    found = decide(a_job(attempts=attempts, max_attempts=most), Failed(BOOM))
    assert found.to is to
    assert found.error == BOOM
    assert found.note == "ValueError: boom"
    assert not found.give_back
    assert (found.delay is not None) is (to is Status.RETRYING)


def test_an_error_the_policy_does_not_retry_fails_the_job_at_once() -> None:
    found = decide(a_job(), Failed(BOOM, again=False))
    assert (found.to, found.happened, found.delay) == (Status.FAILED, Happened.FAILED, None)


def test_a_failed_attempt_waits_as_the_policy_says() -> None:
    assert decide(a_job(), Failed(BOOM), STEADY).delay == timedelta(seconds=10)


def test_a_handler_that_says_when_is_tried_again_then_and_not_when_the_policy_says() -> None:
    assert decide(a_job(), Failed(BOOM, after=timedelta(hours=3)), STEADY).delay == timedelta(hours=3)
    assert decide(a_job(), Failed(BOOM, after=timedelta(0)), STEADY).delay == timedelta(0)


def test_a_handler_that_says_when_still_runs_out_of_attempts() -> None:
    assert decide(a_job(attempts=5), Failed(BOOM, after=timedelta(hours=3))).to is Status.FAILED


def test_a_snooze_gives_the_attempt_back_and_runs_later() -> None:
    found = decide(a_job(attempts=5), Snoozed(timedelta(minutes=5), "not yet"))
    assert (found.to, found.happened) == (Status.SCHEDULED, Happened.SNOOZED)
    assert found.delay == timedelta(minutes=5)
    assert found.give_back
    assert not found.crashed
    assert found.note == "not yet"


def test_a_cancelled_attempt_ends_the_job() -> None:
    found = decide(a_job(), Cancelled("enough"))
    assert (found.to, found.happened, found.note) == (Status.CANCELLED, Happened.CANCELLED, "enough")


def test_a_release_gives_the_attempt_back_and_queues_the_job_at_once() -> None:
    found = decide(a_job(attempts=5), Released("worker w1 stopped"))
    assert (found.to, found.happened, found.delay) == (Status.QUEUED, Happened.RELEASED, None)
    assert found.give_back
    assert not found.crashed


@pytest.mark.parametrize("outcome", [Lost(confirmed=True), Crashed("exit code -9")])
@pytest.mark.parametrize(
    ("crashes", "most", "fails"), [(0, 1, True), (0, 2, False), (1, 3, False), (2, 3, True), (3, 3, True)]
)
def test_a_job_that_kills_its_worker_fails_after_its_crashes_whatever_attempts_are_left(
    outcome: Outcome, crashes: int, most: int, fails: bool
) -> None:
    found = decide(a_job(crashes=crashes, max_crashes=most), outcome)
    assert (found.to is Status.FAILED) is fails
    assert found.give_back
    assert found.crashed
    assert found.error is not None
    assert found.error.type == "WorkerDied"
    assert f"(crash {crashes + 1} of {most})" in found.error.message


def test_a_lost_job_is_queued_at_once_and_says_whose_lease_it_was() -> None:
    found = decide(a_job(), Lost(confirmed=True))
    assert (found.to, found.happened, found.delay) == (Status.QUEUED, Happened.LOST, None)
    assert found.note == "lease 7 expired, worker w1 is presumed dead (crash 1 of 3)"


def test_a_job_whose_process_died_waits_before_it_runs_again() -> None:
    found = decide(a_job(crashes=1), Crashed("exit code -9"), STEADY)
    assert (found.to, found.happened) == (Status.RETRYING, Happened.CRASHED)
    assert found.delay == timedelta(seconds=10)
    assert found.note == "exit code -9 (crash 2 of 3)"


def test_the_wait_after_a_crash_grows_with_the_crashes_and_not_with_the_attempts() -> None:
    policy = Retry(5, base=1, factor=10, cap=1000, jitter=False)
    assert decide(a_job(attempts=5, crashes=1), Crashed("gone"), policy).delay == timedelta(seconds=10)


@pytest.mark.parametrize("outcome", [Snoozed(timedelta(0)), Released("stop"), Lost(confirmed=True), Crashed("gone")])
@pytest.mark.parametrize("attempts", [1, 5, 6])
def test_an_attempt_that_was_not_the_handlers_to_finish_is_given_back(outcome: Outcome, attempts: int) -> None:
    assert decide(a_job(attempts=attempts), outcome).give_back


@pytest.mark.parametrize("outcome", [Succeeded("1"), Failed(BOOM), Failed(BOOM, again=False), Cancelled("enough")])
def test_an_attempt_the_handler_finished_counts(outcome: Outcome) -> None:
    assert not decide(a_job(), outcome).give_back


# whatever happens


@given(jobs, outcomes, policies, spreads)
def test_every_decision_is_a_move_the_law_allows(job: Any, outcome: Outcome, policy: Retry, spread: float) -> None:
    found = decide(job, outcome, policy, spread)
    assert allowed(Status.PROCESSING, found.to)
    assert found.to is not Status.PROCESSING
    assert (found.id, found.token) == (job.id, job.lease_token)
    assert allowed(Status.PROCESSING, honour_cancel(found).to)


@given(jobs, outcomes, policies, spreads)
def test_no_delay_is_negative_and_none_overflows(job: Any, outcome: Outcome, policy: Retry, spread: float) -> None:
    delay = decide(job, outcome, policy, spread).delay
    assert delay is None or timedelta(0) <= delay <= A_CENTURY * 1.25


@given(jobs, policies, spreads)
def test_no_retry_comes_earlier_than_the_policy_asks(job: Any, policy: Retry, spread: float) -> None:
    failed = decide(job, Failed(BOOM), policy, spread)
    asked = timedelta(seconds=policy.delay_after(job.attempts, 0))
    assert failed.delay is None or failed.delay >= asked


@given(jobs, outcomes)
def test_what_only_waits_has_no_result_and_what_has_a_delay_waits(job: Any, outcome: Outcome) -> None:
    found = decide(job, outcome)
    waits = found.to in {Status.SCHEDULED, Status.RETRYING} or isinstance(outcome, Waiting)
    assert (found.delay is not None) is waits
    assert (found.result_json is not None) is (found.to is Status.SUCCEEDED)


def test_the_default_policy_stands_the_largest_number_of_attempts() -> None:
    found = decide(a_job(attempts=2**31 - 2, max_attempts=2**31 - 1), Failed(BOOM), spread=0.999)
    assert found.delay is not None
    assert timedelta(seconds=60) <= found.delay <= timedelta(seconds=75)


def test_a_negative_delay_means_now() -> None:
    assert decide(a_job(), Failed(BOOM, after=timedelta(seconds=-5))).delay == timedelta(0)
    assert decide(a_job(), Snoozed(timedelta(seconds=-5))).delay == timedelta(0)


# the words of a transition


def test_what_no_store_can_keep_is_replaced_in_every_word() -> None:
    error = Error(type="E\x00", message="m\ud800", traceback="t\x00\udfff")
    found = decide(a_job(), Failed(error))
    assert found.error == Error(type="E\ufffd", message="m\ufffd", traceback="t\ufffd\ufffd")
    assert found.note == "E\ufffd: m\ufffd"
    for outcome in (Cancelled("\x00"), Released("\x00"), Snoozed(timedelta(0), "\x00")):
        assert decide(a_job(), outcome).note == "\ufffd"


@given(jobs, outcomes)
def test_every_word_of_a_transition_can_be_stored(job: Any, outcome: Outcome) -> None:
    found = decide(job, outcome)
    words = [found.note, *((found.error.type, found.error.message, found.error.traceback) if found.error else ())]
    for word in words:
        assert word is None or ("\x00" not in word and word.encode()) is not None


def test_long_words_are_cut_and_of_a_traceback_the_end_is_kept() -> None:
    error = Error(type="E" * 300, message="m" * 20_000, traceback="first" + "t" * 200_000 + "last")
    found = decide(a_job(), Failed(error))
    assert found.note is not None
    assert len(found.note) == LONGEST_NOTE
    assert found.error is not None
    assert found.error.traceback is not None
    assert len(found.error.type) == LONGEST_TYPE
    assert len(found.error.message) == LONGEST_MESSAGE
    assert len(found.error.traceback) == LONGEST_TRACEBACK
    assert found.error.traceback.endswith("last")


# a request to cancel


@pytest.mark.parametrize(
    "outcome", [Failed(BOOM), Snoozed(timedelta(hours=1)), Released("stop"), Lost(confirmed=True), Crashed("gone")]
)
def test_a_job_asked_to_cancel_does_not_run_another_time(outcome: Outcome) -> None:
    decided = decide(a_job(), outcome)
    found = honour_cancel(decided)
    assert (found.to, found.happened, found.delay) == (Status.CANCELLED, Happened.CANCELLED, None)
    assert found.note == "cancelled on request"
    assert (found.id, found.token, found.give_back, found.crashed, found.error) == (
        decided.id,
        decided.token,
        decided.give_back,
        decided.crashed,
        decided.error,
    )


@pytest.mark.parametrize("outcome", [Succeeded("1"), Failed(BOOM, again=False), Cancelled("enough")])
def test_a_job_that_ended_before_it_saw_the_request_keeps_its_end(outcome: Outcome) -> None:
    decided = decide(a_job(), outcome)
    assert honour_cancel(decided) is decided


@given(jobs, outcomes)
def test_after_a_request_to_cancel_every_end_is_final(job: Any, outcome: Outcome) -> None:
    assert honour_cancel(decide(job, outcome)).to.finished


def test_a_lease_that_was_never_confirmed_is_lost_without_a_crash_and_never_fails_its_job() -> None:
    found = decide(a_job(crashes=2, max_crashes=3), Lost(confirmed=False))
    assert (found.to, found.happened, found.delay) == (Status.QUEUED, Happened.LOST, None)
    assert found.give_back
    assert not found.crashed
    assert found.error is not None
    assert found.error.type == WORKER_DIED
    assert "not counted as a crash" in found.error.message


@pytest.mark.parametrize(
    ("crashes", "most", "error", "proof"),
    [
        (0, 3, None, False),
        (1, 3, None, False),
        (2, 3, None, True),
        (0, 1, None, True),
        (0, 3, BOOM, False),
        (0, 3, Error(type=WORKER_DIED, message="lost"), True),
    ],
)
def test_a_job_that_a_crash_could_fail_or_that_was_lost_before_is_confirmed_before_it_begins(
    crashes: int, most: int, error: Error | None, proof: bool
) -> None:
    assert needs_proof(a_job(crashes=crashes, max_crashes=most, error=error)) is proof


@pytest.mark.parametrize(("charged", "acquits"), [(None, False), (6, False), (7, True)])
def test_a_late_end_is_refused_and_takes_back_the_crash_that_its_own_lease_was_charged_with(
    charged: int | None, acquits: bool
) -> None:
    found = refuse(decide(a_job(), Released("stop")), 9, charged)
    assert found.acquits is acquits
    assert found.note.startswith("late queued of lease 7, the lease is 9 now: not applied")
    assert ("its worker lives" in found.note) is acquits


def one_over_zero(attempt: int) -> float:
    return attempt / 0


def backwards(_: int) -> float:
    return -1


@pytest.mark.parametrize(
    ("delay", "told"),
    [
        (one_over_zero, "its retry delay raised ZeroDivisionError('division by zero'), so the default wait stands in"),
        (backwards, "its retry delay said -1, which is no number of seconds, so the default wait stands in"),
    ],
)
def test_a_retry_delay_that_cannot_be_obeyed_is_told_of(delay: Callable[[int], float], told: str) -> None:
    job, policy = a_job(attempts=1, crashes=0, max_crashes=3), Retry.custom(5, delay, jitter=False)
    failed = decide(job, Failed(Error(type="ValueError", message="no")), policy)
    assert (failed.delay, failed.note) == (timedelta(seconds=1), f"{told}; ValueError: no")
    crashed = decide(job, Crashed("its process died"), policy)
    assert crashed.note == f"{told}; its process died (crash 1 of 3)"
    asked = decide(job, Failed(Error(type="ValueError", message="no"), after=timedelta(seconds=9)), policy)
    assert (asked.delay, asked.note) == (timedelta(seconds=9), "ValueError: no")
