"""Turns of several that weigh differently: where they begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def first_turn(weights: Sequence[int], drawn: int) -> tuple[int, int]:
    """Whose turn is first, and how much of it is left, by a number drawn from those below the sum of the weights.

    It may begin in the midst of a turn: so the weights hold even where each draw takes a single job.
    """
    at = 0
    while drawn >= weights[at]:
        drawn -= weights[at]
        at += 1
    return at, weights[at] - drawn
