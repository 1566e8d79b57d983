from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.making import a_job
from windlass.core.errors import PayloadInvalid, SettingsError
from windlass.core.kept import (
    LARGEST,
    MOST,
    MOST_BYTES,
    Received,
    Signal,
    check_fits,
    fits,
    gather_name,
    read_kept,
    receive,
    signal_name,
    size_of,
    step_name,
)
from windlass.core.status import FINISHED, Status

APPROVED = Signal("approved", "true")
LINE = "signal:approved"
FULL = {f"step:{n}": "1" for n in range(MOST)}
LIVE = sorted(set(Status) - FINISHED)


# names


def test_steps_signals_and_gathered_children_never_share_a_name() -> None:
    names = [step_name("a"), step_name("a", "b"), signal_name("a"), gather_name("a")]
    assert names == ["step:a", "step:a:b", "signal:a", "gather:a"]


@pytest.mark.parametrize("name_of", [step_name, signal_name, gather_name])
@pytest.mark.parametrize("name", ["", " a", "a\n", "x" * 300])
def test_a_name_that_nobody_can_type_is_refused(name_of: Callable[[str], str], name: str) -> None:
    with pytest.raises(SettingsError, match="expected 1 to 200 printable characters"):
        name_of(name)


def test_a_step_is_not_named_like_a_round_of_another() -> None:
    with pytest.raises(SettingsError, match="the step's name is 'a:b': expected one without a colon"):
        step_name("a:b")


def test_the_key_of_a_round_is_refused_when_it_is_empty() -> None:
    with pytest.raises(SettingsError, match="the key of the step"):
        step_name("page", "")


# values


def test_a_job_that_keeps_nothing_has_no_values() -> None:
    assert read_kept(None) == {}
    assert a_job().kept == {}


@given(st.dictionaries(st.text(min_size=1), st.none() | st.integers() | st.lists(st.text())))
def test_kept_values_are_read_back_as_text_and_as_values(values: dict[str, object]) -> None:
    texts = {name: json.dumps(value) for name, value in values.items()}
    assert read_kept(json.dumps(texts)) == texts
    assert a_job(kept_json=json.dumps(texts)).kept == values


def test_bytes_are_counted_and_not_characters() -> None:
    assert size_of("é", '"€"') == 2 + 5


@pytest.mark.parametrize(("size", "room"), [(LARGEST, True), (LARGEST + 1, False)])
def test_one_value_is_bounded(size: int, room: bool) -> None:
    assert fits({}, "saved", "1" * size) is room


def test_the_number_of_names_is_bounded_and_an_old_name_may_have_a_new_value() -> None:
    assert not fits(FULL, "saved", "1")
    assert fits(FULL, "step:0", "2")
    del (fewer := dict(FULL))["step:0"]
    assert fits(fewer, "saved", "1")


def test_the_bytes_of_all_values_are_bounded() -> None:
    kept = {f"step:{n}": "1" * (LARGEST - 6) for n in range(4)}
    assert sum(size_of(name, text) for name, text in kept.items()) == MOST_BYTES
    assert not fits(kept, "saved", "1")
    assert fits(kept, "step:0", "1" * (LARGEST - 6))
    assert not fits(kept, "step:0", "1" * (LARGEST - 5))


def test_a_value_that_fits_is_accepted() -> None:
    check_fits({}, "saved", "1", "j1")


def test_a_value_that_is_too_large_is_named_with_its_size() -> None:
    with pytest.raises(PayloadInvalid, match=r"job j1 would keep 262,145 bytes as step:a, at most 262,144 are allowed"):
        check_fits({}, "step:a", "1" * (LARGEST + 1), "j1")


def test_a_value_too_many_is_named_with_what_is_there() -> None:
    with pytest.raises(PayloadInvalid, match=r"job j1 keeps 256 values and has no room for saved: expected at most"):
        check_fits(FULL, "saved", "1", "j1")


# signals


def test_the_signal_that_a_job_waits_for_lets_it_go_on() -> None:
    assert receive(Status.BLOCKED, LINE, {}, APPROVED) is Received.DONE


@pytest.mark.parametrize("status", LIVE)
@pytest.mark.parametrize("line", [None, "signal:approve", "signal:approved2", "limit:approved", "flow:approved"])
def test_a_signal_that_nobody_waits_for_is_kept(status: Status, line: str | None) -> None:
    assert receive(status, line, {}, APPROVED) is Received.KEPT


def test_a_line_without_the_status_is_no_wait() -> None:
    assert receive(Status.QUEUED, LINE, {}, APPROVED) is Received.KEPT


@pytest.mark.parametrize("status", LIVE)
@pytest.mark.parametrize("kept", [{LINE: "null"}, {**FULL, LINE: "1"}])
def test_the_second_of_a_name_is_a_duplicate_even_where_there_is_no_room(status: Status, kept: dict[str, str]) -> None:
    assert receive(status, None, kept, APPROVED) is Received.DUPLICATE


@pytest.mark.parametrize("status", LIVE)
def test_a_signal_without_room_is_not_kept(status: Status) -> None:
    assert receive(status, LINE, FULL, APPROVED) is Received.FULL
    assert receive(status, LINE, {}, Signal("approved", "1" * (LARGEST + 1))) is Received.FULL


@pytest.mark.parametrize("status", sorted(FINISHED))
@pytest.mark.parametrize("kept", [{}, {LINE: "1"}, FULL])
def test_a_job_that_has_ended_takes_no_signal(status: Status, kept: dict[str, str]) -> None:
    assert receive(status, None, kept, APPROVED) is Received.REFUSED
