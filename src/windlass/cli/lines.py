"""The log of a command that goes on: in which form, from which level on, and to where."""

from __future__ import annotations

import logging
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from windlass.observability.forms import write_lines
from windlass.observability.lines import TRACE, Line
from windlass.observability.logs import LOGGER, Logs, write
from windlass.settings import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.cli.desk import Globals


class LogFormat(StrEnum):
    """How lines are written."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """From where on lines are written."""

    TRACE = "trace"
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


FormatOption = Annotated[
    LogFormat | None, typer.Option("--log-format", help="How lines are written; auto: text on a terminal, else JSON.")
]
LevelOption = Annotated[
    LogLevel | None, typer.Option("--log-level", help="What is written; debug has a line for each move of a job.")
]


def format_of(given: Globals, asked: LogFormat | None) -> Literal["text", "json"]:
    """The form: as asked for here, else as set, else by whether a person reads it."""
    form = LogFormat.JSON if given.as_json else asked or LogFormat(load().log_format)
    if form is LogFormat.AUTO:
        form = LogFormat.TEXT if sys.stdout.isatty() else LogFormat.JSON
    return "text" if form is LogFormat.TEXT else "json"


def level_of(given: Globals, asked: LogLevel | None) -> str:
    """The level: as asked for here, else as set; with --quiet no less than a warning."""
    level = (asked or LogLevel(load().log_level)).value
    return "warning" if given.quiet and level != "error" else level


def to_stdout(given: Globals, form: Literal["text", "json"], level: str, *, process: bool = False) -> Logs:
    """Send lines to standard output; the listener that feeds them."""
    number = TRACE if level == "trace" else logging.getLevelNamesMapping()[level.upper()]
    return write_lines(sys.stdout, form, number, color=given.color and sys.stdout.isatty(), process=process)


def teller(given: Globals, form: Literal["text", "json"]) -> Callable[[str], None]:
    """How a parent of workers tells of them: in the same form as they tell of themselves."""
    to_stdout(given, form, "info")
    logger = logging.getLogger(f"{LOGGER}.supervisor")

    def tell(text: str) -> None:
        facts: dict[str, Any] = {"text": text}
        write(logger, Line(logging.WARNING, "supervisor.told", "supervisor", facts, text))

    return tell
