from __future__ import annotations

import pickle

import pytest

from tests.core.making import NOON, a_job
from windlass.core import errors
from windlass.core.errors import (
    DuplicateJob,
    JobFailed,
    JobNotFound,
    LockHeld,
    LockLost,
    MoveRefused,
    QueueFull,
    ScheduleNotFound,
    SignalExists,
    SignalTooMuch,
    WindlassError,
)
from windlass.core.job import Error
from windlass.core.status import Status


def test_everything_windlass_raises_is_one_tree_and_drawn() -> None:
    drawn = errors.__doc__ or ""
    for name, found in vars(errors).items():
        if isinstance(found, type) and issubclass(found, Exception):
            assert issubclass(found, WindlassError)
            assert name in drawn


def test_a_signal_that_is_refused_names_job_and_signal() -> None:
    for kind, words in ((SignalExists, "has had the signal 'approved'"), (SignalTooMuch, "no room for the signal")):
        error = kind("j1", "approved")
        assert (error.job_id, error.signal) == ("j1", "approved")
        assert words in str(error)
        again = pickle.loads(pickle.dumps(error))  # our own
        assert (type(again), str(again), again.signal) == (kind, str(error), "approved")


def test_a_missing_job_is_named() -> None:
    error = JobNotFound("j1")
    assert error.job_id == "j1"
    assert "no job has the id 'j1'" in str(error)


def test_a_duplicate_names_the_job_that_is_there() -> None:
    error = DuplicateJob("j1", "receipt:42")
    assert (error.existing, error.key) == ("j1", "receipt:42")
    assert "job j1 already holds the key 'receipt:42'" in str(error)


def test_a_refused_move_says_what_stood_in_its_way() -> None:
    error = MoveRefused("j1", Status.SUCCEEDED, "cancelled")
    assert (error.job_id, error.status, error.wanted) == ("j1", Status.SUCCEEDED, "cancelled")
    assert str(error) == "job j1 is succeeded: it cannot be moved to cancelled"


@pytest.mark.parametrize(
    ("error", "why"), [(Error(type="ValueError", message="boom"), "ValueError: boom"), (None, "no reason was recorded")]
)
def test_a_job_that_ended_without_a_result_says_why(error: Error | None, why: str) -> None:
    job = a_job(status=Status.FAILED, error=error, attempts=5)
    found = JobFailed(job)
    assert found.job is job
    assert str(found) == f"job {job.id} (mail.send) failed after 5 attempts: {why}"


def test_a_full_queue_says_how_full() -> None:
    error = QueueFull("mail", 1000)
    assert (error.queue, error.depth) == ("mail", 1000)
    assert "queue 'mail' already holds 1000 waiting jobs" in str(error)


def test_a_held_lock_says_until_when() -> None:
    error = LockHeld("report", NOON)
    assert (error.name, error.until) == ("report", NOON)
    assert "lock 'report' is held until 2024-05-06T12:00:00+00:00" in str(error)


def test_a_lost_lock_says_under_which_token_it_was_held() -> None:
    error = LockLost("report", 7)
    assert (error.name, error.token) == ("report", 7)
    assert "lock 'report' is no longer held under token 7" in str(error)


def test_a_missing_schedule_is_named() -> None:
    error = ScheduleNotFound("nightly")
    assert error.name == "nightly"
    assert "no schedule is called 'nightly'" in str(error)


@pytest.mark.parametrize(
    "error",
    [
        WindlassError("plain"),
        JobNotFound("j1"),
        DuplicateJob("j1", "receipt:42"),
        MoveRefused("j1", Status.SUCCEEDED, "cancelled"),
        JobFailed(a_job(status=Status.FAILED)),
        QueueFull("mail", 1000),
        LockHeld("report", NOON),
        LockLost("report", 7),
        ScheduleNotFound("nightly"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_travels_between_processes_with_its_message_and_facts(error: WindlassError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))
