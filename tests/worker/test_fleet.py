"""Which of many workers follow a notice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.stores.contract import ANYTHING, About, Notice, Peer
from windlass.worker.fleet import BACKUPS, FEW, MANY, Fleet, turn

COUNTS = st.integers(1, 40)
DRAWS = st.integers(0, 2**24 - 1)


def claimable(n: int = 1, draw: int = 0, queue: str | None = None) -> Notice:
    return Notice(About.CLAIMABLE, queue, n, draw)


@given(size=COUNTS, n=COUNTS, draw=DRAWS)
def test_as_many_look_at_once_as_there_are_jobs_and_one_or_two_a_moment_later(size: int, n: int, draw: int) -> None:
    turns = [turn(place, size, claimable(n, draw)) for place in range(size)]
    if size <= FEW:
        assert turns == [0.0] * size
        return
    assert turns.count(0.0) == min(n, size)
    later = sorted(after for after in turns if after)
    assert later == list(BACKUPS[: max(0, min(size - n, 2 if size <= MANY else 1))])


@given(size=st.integers(FEW + 1, 30), n=COUNTS)
def test_each_is_chosen_as_often_as_any_other(size: int, n: int) -> None:
    chosen = [sum(turn(place, size, claimable(n, draw)) == 0.0 for draw in range(size)) for place in range(size)]
    assert set(chosen) == {min(n, size)}


def fleet_of(me: str, *peers: tuple[str, tuple[str, ...]]) -> Fleet:
    fleet = Fleet(me)
    fleet.meet([Peer(name, queues) for name, queues in peers])
    return fleet


def test_only_those_count_that_consume_the_queue() -> None:
    peers = [*((f"mail{n}", ("mail",)) for n in range(4)), *((f"other{n}", ("other",)) for n in range(20)), ("z", ())]
    fleets = [fleet_of(name, *peers) for name, queues in peers if queues != ("other",)]
    for draw in range(5):
        turns = [fleet.turn(claimable(1, draw, "mail")) for fleet in fleets]
        assert sorted(turns, key=str) == sorted([0.0, *BACKUPS, None, None], key=str)


@pytest.mark.parametrize("peers", [(), (("other", ()),) * 10], ids=["knows nobody", "is not among them"])
def test_one_who_does_not_know_its_place_follows_every_notice(peers: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
    assert fleet_of("me", *peers).turn(claimable(1, 7)) == 0.0


def test_a_notice_of_anything_is_everybodys() -> None:
    peers = [(f"w{n:02}", ()) for n in range(20)]
    assert {fleet_of(name, *peers).turn(ANYTHING) for name, _ in peers} == {0.0}


def test_who_beats_next_changes_the_places() -> None:
    names = [f"w{n}" for n in range(6)]
    fleet = fleet_of("w5", *((name, ()) for name in names))
    assert (fleet.size, fleet.turn(claimable(1, 5))) == (6, 0.0)
    fleet.meet([Peer(name, ()) for name in ("w0", "w1", "w2", "w4", "w5")])
    assert (fleet.size, fleet.turn(claimable(1, 4))) == (5, 0.0)
    assert fleet.turn(claimable(1, 5)) is None
