"""The heading: where the store is, how it does in a few figures, and the last hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from windlass.cli.top.columns import Cell, Tone, cut
from windlass.cli.top.drawing import sparkline
from windlass.cli.top.reading import View
from windlass.cli.top.tables import per_second
from windlass.cli.words import count, span
from windlass.core.status import Status
from windlass.observability.plain import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.cli.top.picture import Picture

_GAP = 3
_BETWEEN = 2
_LONGEST = 60
"""minutes of the sparklines"""


def title(place: str, state: Cell, width: int) -> list[Cell]:
    """The first line: the store to the left, how fresh all is to the right."""
    left = f"windlass top  {place}"
    room = width - cell_len(state.text) - _BETWEEN
    return [
        Cell(cut("windlass top", min(12, max(room, 0))), Tone.STRONG),
        Cell(cut(left[12:], max(room - 12, 0))),
        Cell(" " * _BETWEEN),
        state,
    ]


def tiles(shown: Picture, width: int) -> tuple[list[Cell], list[Cell]]:
    """Figures under their names, as many as there is room for, the most telling ones first."""
    plus = "" if shown.exact else "+"
    figures: Sequence[tuple[str, str, Tone]] = (
        ("ok/s", per_second(shown.rates.good), Tone.GOOD if shown.rates.good else Tone.PLAIN),
        ("failed/s", per_second(shown.rates.bad), Tone.BAD if shown.rates.bad else Tone.PLAIN),
        ("backlog", f"{shown.counts[Status.QUEUED]:,}{plus}", Tone.STRONG),
        ("oldest", span(shown.oldest), Tone.STRONG),
        ("p95 wait", span(shown.wait), Tone.STRONG),
        ("p95 run", span(shown.run), Tone.STRONG),
        ("running", f"{shown.counts[Status.PROCESSING]:,}/{shown.slots:,}", Tone.STRONG if shown.slots else Tone.WARN),
        ("failed", f"{shown.counts[Status.FAILED]:,}{plus}", Tone.STRONG),
        ("retrying", f"{shown.counts[Status.RETRYING]:,}{plus}", Tone.STRONG),
        ("scheduled", f"{shown.counts[Status.SCHEDULED]:,}{plus}", Tone.STRONG),
        ("blocked", f"{shown.counts[Status.BLOCKED]:,}{plus}", Tone.STRONG),
        ("succeeded", f"{shown.counts[Status.SUCCEEDED]:,}{plus}", Tone.STRONG),
    )
    names: list[Cell] = []
    values: list[Cell] = []
    left = width
    for name, value, tone in figures:
        wide = max(len(name), len(value))
        if wide > left:
            break
        names.append(Cell(cut(name, wide + min(_GAP, left - wide)), Tone.MUTED))
        values.append(Cell(cut(value, wide + min(_GAP, left - wide)), tone))
        left -= wide + _GAP
    return names, values


def sparks(shown: Picture, width: int) -> list[Cell]:
    """Throughput and failures by the minute, up to the last hour, side by side."""
    shown_minutes = max(min((width - len("ok   failed   60 min")) // 2, _LONGEST, len(shown.good)), 0)
    return [
        Cell("ok ", Tone.MUTED),
        Cell(sparkline(shown.good, shown_minutes), Tone.GOOD),
        Cell("  failed ", Tone.MUTED),
        Cell(sparkline(shown.bad, shown_minutes), Tone.BAD),
        Cell(f"  {shown_minutes} min", Tone.MUTED),
    ]


def tabs(view: View, shown: Picture | None, search: str, width: int) -> list[Cell]:
    """The views by their keys, and what is filtered by."""
    made: list[Cell] = []
    for one in View:
        made += [
            Cell(f" {one:d} {one.name.capitalize()}{_number(one, shown)} ", Tone.CHOSEN if one is view else Tone.MUTED),
            Cell(" "),
        ]
    left = width - sum(cell_len(one.text) for one in made)
    if search and left > _BETWEEN:
        made.append(Cell(cut(plain(f" / {search}"), left), Tone.WARN))
    return made


def _number(view: View, shown: Picture | None) -> str:
    if shown is None:
        return ""
    match view:
        case View.RUNNING:
            return f" {shown.counts[Status.PROCESSING]:,}"
        case View.FAILURES:
            return f" {shown.counts[Status.FAILED]:,}"
        case View.JOBS if shown.matched is not None:
            return f" {count(shown.matched)}"
        case _:
            return ""
