"""Rows: a table that can be walked through, and keeps its place while what it shows changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static

from windlass.cli.top.columns import Cell, Table, Tone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

STYLES = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.MUTED: "dim",
    Tone.GOOD: "$success",
    Tone.WARN: "$warning bold",
    Tone.BAD: "$error bold",
    Tone.ACCENT: "$secondary",
    Tone.CHOSEN: "bold reverse",
}
"""Colours are the terminal's own, so that they can be read on whatever background it has."""


def content(cells: Sequence[Cell]) -> Content:
    """Cells as the screen draws them: their text is never markup."""
    return Content.assemble(*((cell.text, STYLES[cell.tone]) for cell in cells))


class Panel(Vertical):
    """A table with its heads."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id, classes="panel")
        self._table = Table(columns=(), keys=(), rows=())
        self._shown: tuple[tuple[str, ...], tuple[Content, ...]] = (), ()
        self._head = Static("", markup=False, classes="head")
        self.rows = OptionList(markup=False, compact=True)

    def compose(self) -> ComposeResult:
        """The heads above the rows."""
        yield self._head
        yield self.rows

    @property
    def key(self) -> str | None:
        """The key of the row that is chosen."""
        at, keys = self.rows.highlighted, self._shown[0]
        return keys[at] if at is not None and at < len(keys) else None

    @property
    def wants(self) -> int:
        """How many lines show all of it."""
        return 1 + max(len(self._table.rows), 1)

    def show(self, table: Table) -> None:
        """Show these rows, and stay at the row that was chosen, wherever it is now."""
        self._table = table
        self._draw()

    def on_resize(self) -> None:
        """Fit the columns to the new width."""
        self._draw()

    def on_option_list_option_highlighted(self) -> None:
        """Another row is chosen."""
        self._draw()

    def on_descendant_focus(self) -> None:
        """It is the list that is walked through now."""
        self._draw()

    def on_descendant_blur(self) -> None:
        """Another one is."""
        self._draw()

    def _draw(self) -> None:
        width = self.rows.scrollable_content_region.width
        if not width or not self._table.columns:
            return
        fitted = self._table.fitted(width)
        self._head.update(content(fitted.head))
        # The colours of a row cannot be read on that of the chosen one.
        chosen = self.rows.highlighted if self.rows.has_focus else None
        cells = [[Cell(one.text) for one in row] if at == chosen else row for at, row in enumerate(fitted.lines)]
        keys, lines = tuple(self._table.keys), tuple(content(one) for one in cells)
        if not keys:
            keys, lines = (), (Content.styled(self._table.empty, "dim"),)
        if keys == self._shown[0] and len(lines) == len(self._shown[1]):
            for place, (old, new) in enumerate(zip(self._shown[1], lines, strict=True)):
                if old.spans != new.spans or old.plain != new.plain:
                    self.rows.replace_option_prompt_at_index(place, new)
        else:
            self._replace(keys, lines)
        self._shown = keys, lines

    def _replace(self, keys: tuple[str, ...], lines: tuple[Content, ...]) -> None:
        chosen, at, scrolled = self.key, self.rows.highlighted, self.rows.scroll_y
        self.rows.set_options(lines)
        if keys:
            same = keys.index(chosen) if chosen in keys else min(at or 0, len(keys) - 1)
            self.rows.highlighted = same
            self.rows.scroll_to(y=scrolled, animate=False, force=True, immediate=True)
            self.rows.scroll_to_highlight()
