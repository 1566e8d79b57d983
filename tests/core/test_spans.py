"""Where a job is in its trace: asked of what writes the spans of the job that runs here."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from windlass.core.spans import carried, inside, stepping

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class Place:
    """What writes the spans of a job, as far as a step asks it."""

    def carried(self) -> str | None:
        return "00-trace-span-01"

    def stepping(self, kind: str, name: str, key: str | None, *, remembered: bool) -> AbstractContextManager[object]:
        return nullcontext((kind, name, key, remembered))


def test_where_nothing_is_traced_there_is_nothing_to_carry() -> None:
    assert carried() is None
    with stepping("step", "account", None, remembered=False) as around:
        assert around is None


def test_inside_a_traced_job_its_writer_is_asked() -> None:
    place: Any = Place()
    token = inside.set(place)
    try:
        assert carried() == "00-trace-span-01"
        with stepping("step", "account", "7", remembered=True) as around:
            assert around == ("step", "account", "7", True)
    finally:
        inside.reset(token)
