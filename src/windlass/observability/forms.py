"""How lines are written: as text for people, or as JSON for machines. A line cannot be forged by what is in it.

Text is stripped of control characters, JSON escapes them; what looks like a password or a token is left out of either.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from windlass.observability.context import ATTRIBUTES, JobContext
from windlass.observability.logs import FACTS, LOGGER, Logs
from windlass.observability.plain import cleaned, plain
from windlass.observability.turns import WholeLines

if TYPE_CHECKING:
    from typing import TextIO

Format: TypeAlias = Literal["text", "json"]
_RESET, _DIM, _RED, _YELLOW = "\x1b[0m", "\x1b[2m", "\x1b[31m", "\x1b[33m"
_LEVELS = ((logging.ERROR, "error", _RED), (logging.WARNING, "warn", _YELLOW), (logging.INFO, "info", ""))
_WORD = 10
"""characters of the column of words; what is longer takes more"""
_OWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", FACTS, *ATTRIBUTES.values()}
"""attributes of a record that are not from an `extra`"""


class TextFormatter(logging.Formatter):
    """`22:04:28.123 error failed     send_receipt 0199…  queue=mail attempt=1 …`: for people.

    With `process` it has the number of the process. With `color` errors and warnings stand out, and what is of less
    interest is dim: by the terminal's own colors, light or dark.
    """

    def __init__(self, *, color: bool = False, process: bool = False) -> None:
        super().__init__()
        self._color, self._process = color, process

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the message holds; a traceback follows in lines that begin with a bar."""
        at = datetime.fromtimestamp(record.created, UTC)
        name, color = _level(record.levelno)
        word, facts = getattr(record, FACTS, (record.name, None))
        text = record.getMessage()
        text = text.removeprefix(f"{word} ") if facts is not None else cleaned(text)
        told = {"process": record.process} if self._process else {}
        told |= _job_of(record, facts)
        if facts is not None:  # its text has these
            told = {key: value for key, value in told.items() if key not in ("job", "type")}
        more = " ".join(f"{key}={plain(value)}" for key, value in told.items())
        parts = [
            self._in(_DIM, f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}"),
            self._in(color, f"{name:<5} {plain(word):<{_WORD}}"),
            plain(text),
            more and f" {self._in(_DIM, more)}",
        ]
        return "\n".join([" ".join(part for part in parts if part).rstrip(), *self._below(record, facts)])

    def _below(self, record: logging.LogRecord, facts: dict[str, Any] | None) -> list[str]:
        error: object = None if facts is None else facts.get("error")
        trace: str | None = cast("dict[str, Any]", error).get("traceback") if isinstance(error, dict) else None
        text = trace or _traceback(record)
        if not text:
            return []
        return [self._in(_DIM, "  | ") + plain(line) for line in text.rstrip().split("\n")]

    def _in(self, color: str, text: str) -> str:
        return f"{color}{text}{_RESET}" if self._color and color and text else text


class JsonFormatter(logging.Formatter):
    """One JSON object per line: for machines. Everything that is not plain ASCII is escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the message holds."""
        at = datetime.fromtimestamp(record.created, UTC)
        told: dict[str, Any] = {
            "at": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "process": record.process,
        }
        _, facts = getattr(record, FACTS, (None, None))
        if facts is not None:
            told |= facts
        else:
            told |= {"event": "log", "logger": record.name, "message": cleaned(record.getMessage())}
            told |= _job_of(record, None)
            extra = {name: cleaned(value, name) for name, value in record.__dict__.items() if name not in _OWN}
            told |= {"extra": extra} if extra else {}
        trace = _traceback(record)
        if trace:
            told["traceback"] = trace
        return json.dumps(told, default=_last)


def write_lines(
    stream: TextIO, form: Format = "text", level: int = logging.INFO, *, color: bool = False, process: bool = False
) -> Logs:
    """Send the lines of windlass's own logger to a stream, and give the listener that feeds it.

    Those of handlers go there, too, whatever logger they use, unless the application has set up `logging` itself.
    """
    handler = WholeLines(stream)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter(color=color, process=process))
    handler.addFilter(JobContext())
    logger = logging.getLogger(LOGGER)
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(handler)
        root.setLevel(max(level, logging.INFO))  # what others tell at DEBUG is theirs, and much
    return Logs(logger)


def _level(level: int) -> tuple[str, str]:
    for least, name, color in _LEVELS:
        if level >= least:
            return name, color
    return ("debug" if level >= logging.DEBUG else "trace"), _DIM


def _job_of(record: logging.LogRecord, facts: dict[str, Any] | None) -> dict[str, Any]:
    """The facts of the job that the line belongs to."""
    if facts is not None:
        return {fact: facts[fact] for fact in ATTRIBUTES if fact in facts}
    found = {fact: getattr(record, name, "") for fact, name in ATTRIBUTES.items()}
    return {fact: value for fact, value in found.items() if value != ""}


def _traceback(record: logging.LogRecord) -> str | None:
    """What a record has of an exception, without secrets."""
    found = record.exc_text
    if record.exc_info and record.exc_info[0] is not None:
        found = logging.Formatter().formatException(record.exc_info)
    stack = record.stack_info
    texts = [cleaned(text) for text in (found, stack) if text]
    return "\n".join(texts) or None


def _last(value: object) -> str:
    try:
        return str(cleaned(str(value)))
    except Exception as error:  # noqa: BLE001  # its __str__ is code of the user: the line is written all the same
        return f"(it cannot be shown: {type(error).__name__})"
