"""A mistake is told by the place where the sender wrote it, and by no name of our own types."""

from __future__ import annotations

import pytest

from windlass.web.mistakes import place_of_mistake


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("body", "tags", 0), "body.tags.0"),
        (("body", "priority", "literal['critical','high']"), "body.priority"),
        (("body", "priority", "function-before[_whole(), constrained-int]"), "body.priority"),
        ((), ""),
        (("body", "x" * 300), f"body.{'x' * 195}"),
    ],
)
def test_a_place_is_told_as_it_was_sent(path: tuple[int | str, ...], place: str) -> None:
    assert place_of_mistake(path) == place
