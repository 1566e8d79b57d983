from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.status import FINISHED, LIVE, MOVES, WAITING, Status, allowed

DRAWN = {
    ("scheduled", "queued"),
    ("scheduled", "cancelled"),
    ("retrying", "queued"),
    ("retrying", "cancelled"),
    ("queued", "processing"),
    ("queued", "blocked"),
    ("queued", "cancelled"),
    ("blocked", "queued"),
    ("blocked", "cancelled"),
    ("processing", "processing"),
    ("processing", "succeeded"),
    ("processing", "retrying"),
    ("processing", "failed"),
    ("processing", "cancelled"),
    ("processing", "scheduled"),
    ("processing", "queued"),
    ("processing", "blocked"),
    ("succeeded", "queued"),
    ("failed", "queued"),
    ("cancelled", "queued"),
}
"""the design's table of moves, written out"""


def test_the_moves_are_exactly_those_of_the_design() -> None:
    assert {(str(a), str(b)) for a in Status for b in Status if allowed(a, b)} == DRAWN


def test_every_status_has_its_moves() -> None:
    assert MOVES.keys() == set(Status)


def test_a_status_is_waiting_processing_or_finished_and_never_two_of_them() -> None:
    assert WAITING | {Status.PROCESSING} | FINISHED == set(Status)
    assert not WAITING & FINISHED
    live = set(Status) - FINISHED
    assert live == LIVE


@pytest.mark.parametrize("status", Status)
def test_a_status_says_whether_it_is_finished(status: Status) -> None:
    assert status.finished is (status in {Status.SUCCEEDED, Status.FAILED, Status.CANCELLED})


@pytest.mark.parametrize("status", sorted(FINISHED))
def test_a_finished_job_can_only_be_queued_again(status: Status) -> None:
    assert MOVES[status] == {Status.QUEUED}


@given(st.sampled_from(Status), st.sampled_from(Status))
def test_only_a_queued_job_is_claimed_and_only_one_that_runs_succeeds(one: Status, other: Status) -> None:
    if allowed(one, Status.PROCESSING):
        assert one in {Status.QUEUED, Status.PROCESSING}
    if allowed(one, other) and other in {Status.SUCCEEDED, Status.FAILED, Status.RETRYING, Status.SCHEDULED}:
        assert one is Status.PROCESSING


def test_a_status_is_its_word() -> None:
    assert f"{Status.SCHEDULED}" == "scheduled"
    assert Status("failed") is Status.FAILED
