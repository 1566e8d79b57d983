from __future__ import annotations

from collections import Counter

from windlass.core.weights import first_turn


def test_turns_begin_in_any_part_of_any_of_them() -> None:
    assert [first_turn([3, 1], drawn) for drawn in range(4)] == [(0, 3), (0, 2), (0, 1), (1, 1)]


def test_each_is_first_as_often_as_it_weighs() -> None:
    assert Counter(first_turn([1, 5, 2], drawn)[0] for drawn in range(8)) == {0: 1, 1: 5, 2: 2}
