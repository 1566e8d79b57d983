from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.making import NOON, a_job
from windlass.core.history import Entry, Happened
from windlass.core.job import LONGEST_NOTE, PRIORITIES, Error, Progress, storable
from windlass.core.status import Status


def test_a_job_shows_its_payload_result_and_metadata_as_values() -> None:
    job = a_job(payload_json='{"order_id":42}', result_json='["sent"]', metadata_json='{"by":"web"}')
    assert job.payload == {"order_id": 42}
    assert job.result == ["sent"]
    assert job.metadata == {"by": "web"}


def test_a_job_without_a_result_or_metadata_says_so() -> None:
    assert a_job().result is None
    assert a_job().metadata == {}


def test_a_job_names_its_trace_where_its_context_is_one() -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    assert a_job(trace=f"00-{trace}-00f067aa0ba902b7-01 a=1").trace_id == trace
    assert [a_job(trace=text).trace_id for text in (None, "- a=1", trace, f"00-{trace}", "")] == [None] * 5


def test_a_job_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        a_job().status = Status.FAILED  # type: ignore[misc]  # the refusal is tested


def test_an_entry_of_the_history_cannot_be_changed() -> None:
    entry = Entry(number=1, at=NOON, happened=Happened.ENQUEUED, status=Status.QUEUED)
    assert (entry.actor, entry.token, entry.note) == (None, None, None)
    with pytest.raises(AttributeError):
        entry.number = 2  # type: ignore[misc]  # the refusal is tested


def test_errors_and_progress_are_values() -> None:
    assert Error(type="E", message="m") == Error(type="E", message="m", traceback=None)
    assert Progress(done=1) == Progress(done=1, of=None, note=None)


def test_the_named_priorities_run_in_the_order_of_their_names() -> None:
    assert PRIORITIES == {"critical": 10, "high": 50, "normal": 100, "low": 200}


def test_words_that_fit_are_kept_as_they_are() -> None:
    assert storable("Grüße, 世界 👩‍💻\n\ttabs") == "Grüße, 世界 👩‍💻\n\ttabs"


def test_long_words_are_cut_with_a_sign_that_they_were() -> None:
    assert storable("a" * LONGEST_NOTE) == "a" * LONGEST_NOTE
    assert storable("a" * (LONGEST_NOTE + 1)) == "a" * (LONGEST_NOTE - 3) + "..."


@given(st.text(st.characters()), st.integers(3, 50))
def test_storable_words_are_no_longer_than_asked_and_hold_no_nul_and_no_lone_surrogate(text: str, longest: int) -> None:
    found = storable(text, longest)
    assert len(found) <= longest
    assert "\x00" not in found
    assert found.encode().decode() == found
    assert storable(found, longest) == found
