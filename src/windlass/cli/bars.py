"""Bars for terminals; loaded only where one is drawn."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from windlass.observability.plain import short

if TYPE_CHECKING:
    from collections.abc import Generator

    from windlass.cli.output import Bar


@contextmanager
def drawn(label: str, *, color: bool) -> Generator[Bar]:
    """One bar, gone when it is left."""
    console = Console(stderr=True, highlight=False, no_color=not color)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(label, total=None, note="")

        def show(done: float, of: float | None = None, note: str | None = None) -> None:
            progress.update(task, completed=done, total=of, note="" if note is None else short(note, 60))

        yield show
