"""Dialogs: a question with yes and no, and the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from windlass.cli.top.columns import Cell, Tone
from windlass.cli.top.rows import content

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from windlass.cli.top.orders import Order

HELP: tuple[tuple[str, str], ...] = (
    ("1 2 3", "queues, workers, running jobs"),
    ("4 5", "failures, jobs"),
    ("Tab", "the next view"),
    ("↑ ↓ PgUp PgDn", "choose a row"),
    ("Enter", "open the job; the jobs of a queue, worker or failure"),
    ("Esc", "back; clear the filter"),
    ("/", "filter: status:failed queue:mail ran>5s"),
    ("s", "sort by the next column"),
    (".", "freeze the screen, or go on"),
    ("p", "pause or resume the queue (asks)"),
    ("r", "retry the job"),
    ("C", "cancel the job (asks)"),
    ("D", "delete the job (asks)"),
    ("R", "replay all jobs of a failure (asks)"),
    ("q", "quit"),
)


class Asking(ModalScreen[bool]):
    """A question; no is where one begins."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape,q", "answer(False)", "no"),
        Binding("left,right,tab", "app.focus_next", "other", show=False),
    ]

    def __init__(self, order: Order) -> None:
        super().__init__()
        self._order = order

    def compose(self) -> ComposeResult:
        """What is asked, what it means, the answers."""
        tone = Tone.BAD if self._order.dangerous else Tone.STRONG
        with Vertical(classes="dialog"):
            yield Static(content([Cell.of(self._order.question, tone)]), markup=False)
            for one in self._order.about:
                yield Static(content([Cell.of(one)]), markup=False, classes="about")
            with Horizontal(classes="answers"):
                yield Button("No (n)", id="no", compact=True)
                yield Button("Yes (y)", id="yes", compact=True)

    def on_mount(self) -> None:
        """Enter alone changes nothing."""
        self.query_one("#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """By mouse or Enter."""
        _ = self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        """By its letter."""
        _ = self.dismiss(yes)


class Keys(ModalScreen[None]):
    """Which key does what."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "close", "close")]

    def compose(self) -> ComposeResult:
        """A line for each."""
        with VerticalScroll(classes="dialog"):
            yield Static(content([Cell("Keys", Tone.STRONG), Cell("   Uppercase is dangerous.", Tone.MUTED)]))
            for key, does in HELP:
                yield Static(content([Cell(f"{key:<15}", Tone.ACCENT), Cell(does)]), markup=False)

    def action_close(self) -> None:
        """Back."""
        _ = self.dismiss(None)
