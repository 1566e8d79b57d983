"""The law of one file, alone: whatever comes in whatever order, what is committed moves only forward."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.apps.files.state import (
    Ended,
    Overtaken,
    State,
    Superseded,
    TooManyWait,
    Unmet,
    Write,
    before,
    begin,
    check,
    commit,
    dump,
    issue,
    load,
    withdraw,
)

SHA = "0" * 64


def placed(state: State, n: int = 1) -> State:
    for _ in range(n):
        state, _ = issue(state, size=1, sha256=SHA, at=0, disk=None, most=1000)
    return state


def write(seq: int, token: int = 1, **more: Any) -> Write:
    return Write(seq=seq, token=token, job=f"job {seq}", sha256=f"{seq:064}", size=seq, who=None, **more)


def made(state: State, *seqs: int) -> State:
    for seq in seqs:
        state, _ = commit(state, write(seq), at=0, keep=10)
    return state


STEPS = st.lists(
    st.one_of(
        st.just(("issue",)),
        st.tuples(st.sampled_from(["begin", "commit", "withdraw"]), st.integers(1, 6), st.integers(1, 4)),
    ),
    max_size=40,
)


@given(STEPS)
def test_whatever_comes_what_is_committed_moves_only_forward(steps: list[Any]) -> None:
    state, begun = State(), dict[int, int]()
    for step in steps:
        before_it = state
        try:
            match step:
                case ("begin", seq, token):
                    state, done = begin(state, seq, token)
                    assert done is None or done.seq == seq
                    begun[seq] = max(begun.get(seq, 0), token)
                case ("commit", seq, token):
                    state, version = commit(state, write(seq, token), at=0, keep=3)
                    assert version.seq == seq
                    if state != before_it:
                        assert token >= begun.get(seq, 0)  # no attempt that is newer had begun
                        assert state.committed == seq > before_it.committed
                case ("withdraw", seq, token):
                    state = withdraw(state, seq, token)
                    if state != before_it:
                        begun[seq] = max(begun.get(seq, 0), token + 1)
                case _:
                    state = placed(state)
        except Ended:
            assert state == before_it
        assert state.committed >= before_it.committed
        assert state.issued >= before_it.issued
        order = [one.seq for one in state.versions]
        assert order == sorted(set(order))
        assert order[-1:] == ([state.committed] if state.committed else [])
        assert [one.at for one in state.versions] == sorted({one.at for one in state.versions})
        assert [one.seq for one in state.waiting] == sorted({one.seq for one in state.waiting})
        assert not {one.seq for one in state.waiting} & {one.seq for one in state.ended}
        assert all(one.seq > state.committed for one in state.ended)
        assert load(dump(state)) == state


def test_an_older_write_is_superseded_by_what_was_committed_after_it() -> None:
    state = made(placed(State(), 3), 2)
    with pytest.raises(Superseded, match="version 2") as refused:
        begin(state, 1, 9)
    assert refused.value.by.seq == 2
    with pytest.raises(Superseded):
        commit(state, write(1, 9), at=0, keep=10)
    assert commit(state, write(3), at=0, keep=10)[0].committed == 3


def test_an_older_attempt_of_the_same_job_commits_nothing_once_a_newer_has_begun() -> None:
    state, _ = begin(placed(State()), 1, 2)
    with pytest.raises(Overtaken):
        commit(state, write(1, 1), at=0, keep=10)
    with pytest.raises(Overtaken):
        begin(state, 1, 1)
    assert commit(state, write(1, 2), at=0, keep=10)[0].committed == 1


def test_what_an_attempt_before_has_committed_is_found_and_not_written_again() -> None:
    state = made(placed(State(), 2), 1, 2)
    assert begin(state, 1, 7) == (state, state.versions[0])
    assert commit(state, write(1, 7), at=99, keep=10) == (state, state.versions[0])


def test_the_late_attempt_of_a_job_that_has_ended_commits_nothing_but_one_that_an_operator_asks_for_does() -> None:
    state = withdraw(placed(State()), 1, token=3)
    with pytest.raises(Overtaken):
        begin(state, 1, 3)
    with pytest.raises(Overtaken):
        commit(state, write(1, 3), at=0, keep=10)
    again, _ = begin(state, 1, 4)
    assert commit(again, write(1, 4), at=0, keep=10)[0].committed == 1


def test_conditions_are_looked_at_when_it_is_committed() -> None:
    state = placed(State(), 9)
    with pytest.raises(Unmet, match="no such file"):
        commit(state, write(1, if_match=["*"]), at=0, keep=10)
    state, _ = commit(state, write(1, if_none_match=True), at=0, keep=10)
    with pytest.raises(Unmet):
        commit(state, write(2, if_none_match=True), at=0, keep=10)
    state, _ = commit(state, write(2, if_match=[f"{1:064}"]), at=0, keep=10)
    with pytest.raises(Unmet) as refused:
        commit(state, write(3, if_match=[f"{1:064}", "other"]), at=0, keep=10)
    assert refused.value.found == f"{2:064}"
    check(state, ["*"], if_none_match=False)


def test_only_the_newest_versions_are_kept() -> None:
    state = placed(State(), 5)
    for seq in range(1, 6):
        state, _ = commit(state, write(seq), at=0, keep=2)
    assert [one.seq for one in state.versions] == [4, 5]
    assert state.bytes == 9


def test_as_many_writes_wait_as_may() -> None:
    state, _ = issue(State(), size=1, sha256=SHA, at=0, disk="a", most=1)
    with pytest.raises(TooManyWait):
        issue(state, size=1, sha256=SHA, at=0, disk=None, most=1)
    assert [one.seq for one in before(placed(state, 2), 3)] == [1, 2]
    assert placed(state).disk == "a"
