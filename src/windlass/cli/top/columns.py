"""Columns: rows of plain text fitted to a width, alike for the live view and for one printed screen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from windlass.observability.plain import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

GAP = "  "
MARK = "▾"
"""beside the head of the column that rows are sorted by"""


class Tone(StrEnum):
    """What a text is to be told by, beside its words: never by colour alone."""

    PLAIN = "plain"
    STRONG = "strong"
    MUTED = "muted"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    ACCENT = "accent"
    CHOSEN = "chosen"


@dataclass(frozen=True, slots=True)
class Cell:
    """One text of a row. Whatever it came from, it is plain, and of one line."""

    text: str
    tone: Tone = Tone.PLAIN

    @staticmethod
    def of(text: object, tone: Tone = Tone.PLAIN) -> Cell:
        """From anything a store may hold."""
        return Cell(plain(text), tone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: one of a table grows to what is left; where room is short, the highest rank is left out first."""

    head: str
    right: bool = False
    least: int = 0
    most: int = 40
    grows: bool = False
    rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under heads; each row has a key that stays its own from one look to the next."""

    columns: Sequence[Column]
    keys: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    sorted_by: str | None = None
    empty: str = ""
    """what is said where there are no rows"""

    def fitted(self, width: int) -> Fitted:
        """Set in columns for this width."""
        widths = _widths(self.columns, self.rows, width)
        heads = [
            Cell(f"{column.head} {MARK}" if column.head == self.sorted_by else column.head, Tone.STRONG)
            for column in self.columns
        ]
        return Fitted(
            head=_line(self.columns, heads, widths),
            lines=[_line(self.columns, row, widths) for row in self.rows],
        )


@dataclass(frozen=True, slots=True)
class Fitted:
    """The head and the lines, each as the parts it is made of."""

    head: list[Cell]
    lines: list[list[Cell]]


def cut(text: str, width: int) -> str:
    """Exactly so many cells of a terminal: filled up, or cut with a mark."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return f"{set_cell_size(text, width - 1)}…" if width > 0 else ""


def written(cells: Sequence[Cell]) -> str:
    """The text of a line."""
    return "".join(cell.text for cell in cells).rstrip()


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int) -> list[int]:
    """How wide each is; 0 for those that are left out."""
    natural = [
        max(
            column.least,
            cell_len(column.head) + 2 * (column.head != ""),  # room for the mark, so that sorting moves nothing
            min(column.most, max((cell_len(row[place].text) for row in rows), default=0)),
        )
        for place, column in enumerate(columns)
    ]
    taken = [max(column.least, 8) if column.grows else wide for column, wide in zip(columns, natural, strict=True)]
    shown = set(range(len(columns)))
    while _total(taken, shown) > width and len(shown) > 1:
        shown.remove(max(shown, key=lambda place: (columns[place].rank, place)))
    widths = [taken[place] if place in shown else 0 for place in range(len(columns))]
    left = width - _total(taken, shown)
    for place in shown:
        if columns[place].grows or (len(shown) == 1 and left < 0):
            widths[place] = max(widths[place] + left, 1)
    return widths


def _total(widths: Sequence[int], shown: set[int]) -> int:
    return sum(widths[place] for place in shown) + len(GAP) * (len(shown) - 1)


def _line(columns: Sequence[Column], cells: Sequence[Cell], widths: Sequence[int]) -> list[Cell]:
    made: list[Cell] = []
    for column, cell, width in zip(columns, cells, widths, strict=True):
        if not width:
            continue
        if made:
            made.append(Cell(GAP))
        text = cell.text
        if column.right:
            text = " " * max(width - cell_len(text), 0) + text
        made.append(Cell(cut(text, width), cell.tone))
    return made
