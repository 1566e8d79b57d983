"""Output: what goes to the screen and how a command ends. One table maps every error to an exit code.

Nothing a job contains is ever markup or a control code here: cells are plain text, stripped before they are printed.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from windlass.core import errors
from windlass.core.redaction import redact
from windlass.observability.plain import plain

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from rich.console import Console

OK, FAILURE, USAGE, UNREACHABLE, NOT_FOUND, REFUSED, JOB_FAILED = range(7)
INTERRUPTED = 130

EXIT_CODES: Mapping[type[errors.WindlassError], int] = {
    errors.WindlassError: FAILURE,
    errors.SettingsError: USAGE,
    errors.HandlerError: USAGE,
    errors.HandlerNotFound: NOT_FOUND,
    errors.HandlerExists: USAGE,
    errors.PayloadInvalid: USAGE,
    errors.PayloadUnfit: USAGE,
    errors.SecretUnreadable: REFUSED,
    errors.StepInvalid: USAGE,
    errors.JobError: FAILURE,
    errors.JobNotFound: NOT_FOUND,
    errors.DuplicateJob: REFUSED,
    errors.MoveRefused: REFUSED,
    errors.JobFailed: JOB_FAILED,
    errors.ChildFailed: JOB_FAILED,
    errors.SignalExists: REFUSED,
    errors.SignalTooMuch: REFUSED,
    errors.JobTimeout: JOB_FAILED,
    errors.QueueFull: REFUSED,
    errors.LeaseLost: REFUSED,
    errors.LockHeld: REFUSED,
    errors.LockLost: REFUSED,
    errors.ScheduleNotFound: NOT_FOUND,
    errors.StoreError: FAILURE,
    errors.StoreUnavailable: UNREACHABLE,
    errors.SchemaMismatch: REFUSED,
    errors.ValueRefused: REFUSED,
    errors.TransactionRefused: REFUSED,
}

STYLES = {
    "succeeded": "green",
    "failed": "bold red",
    "retrying": "yellow",
    "processing": "cyan",
    "blocked": "magenta",
    "cancelled": "dim",
    "PASS": "green",
    "WARN": "yellow",
    "FAIL": "bold red",
    "paused": "yellow",
}


class Stop(Exception):
    """Ends a command with an exit code, and with one line on standard error if there is something to say."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def exit_code(error: errors.WindlassError) -> int:
    """The code of an error: its own, or that of the nearest class above it."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def complain(message: object) -> None:
    """One line on standard error."""
    with suppress(OSError):
        print(f"error: {plain(redact(str(message)))}", file=sys.stderr)  # noqa: T201  # the command line's own voice


class Bar(Protocol):
    """Something that shows how far a long work has come."""

    def __call__(self, done: float, of: float | None = None, note: str | None = None) -> None:
        """Show the newest figures."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Where a command speaks. JSON lines, or words and tables; colour and bars only on a terminal."""

    as_json: bool = False
    quiet: bool = False
    color: bool = True

    @property
    def rich(self) -> bool:
        """Whether standard output is a terminal that may get colour."""
        return self.color and not self.as_json and sys.stdout.isatty()

    @property
    def lively(self) -> bool:
        """Whether a bar may be drawn."""
        return not self.as_json and not self.quiet and sys.stderr.isatty()

    def fact(self, told: Mapping[str, Any]) -> None:
        """One JSON object on one line; escaped, so that no content can steer a terminal."""
        sys.stdout.write(f"{json.dumps(told, default=str)}\n")
        sys.stdout.flush()

    def say(self, text: str = "", style: str | None = None) -> None:
        """A line for people; silent with --json and --quiet."""
        if not self.as_json and not self.quiet:
            self.line(text, style)

    def remark(self, text: str) -> None:
        """A line on standard error for people, beside what others may read; silent with --quiet."""
        if not self.quiet:
            with suppress(OSError):
                print(plain(text), file=sys.stderr)  # noqa: T201  # the command line's own voice

    def line(self, text: str, style: str | None = None) -> None:
        """A line that is the command's very answer: printed also with --quiet."""
        if style is not None and self.rich:
            from rich.text import Text

            self.console().print(Text(plain(text), style=style), soft_wrap=True)
        else:
            sys.stdout.write(f"{plain(text)}\n")
            sys.stdout.flush()

    def block(self, text: str) -> None:
        """Several lines as they are, but for control characters."""
        sys.stdout.write(f"{plain(text, lines=True)}\n")

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table: on a terminal fitted to it, elsewhere in plain aligned columns that are never cut."""
        cells = [[plain(cell) for cell in row] for row in rows]
        if self.rich:
            self._rich_table(heads, cells)
        else:
            sys.stdout.write(_aligned(heads, cells))
        sys.stdout.flush()

    def console(self) -> Console:
        """Rich on standard output."""
        from rich.console import Console

        return Console(highlight=False, markup=False, emoji=False, no_color=not self.color)

    @contextmanager
    def bar(self, label: str) -> Generator[Bar]:
        """A bar on standard error while inside, where that is a terminal; else nothing."""
        if not self.lively:
            yield _nothing
            return
        from windlass.cli.bars import drawn

        with drawn(plain(label), color=self.color) as bar:
            yield bar

    def _rich_table(self, heads: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold")
        for head in heads:
            table.add_column(Text(head), overflow="fold", no_wrap=head == "id")
        for row in cells:
            table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
        self.console().print(table)


def _nothing(done: float, of: float | None = None, note: str | None = None) -> None:
    """A bar where nobody watches."""


def _aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in [heads, *rows])
    return "".join(f"{line.rstrip()}\n" for line in lines)
