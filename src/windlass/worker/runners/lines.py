"""What handlers in a process of their own log: told to the worker's process, which logs it."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_PLAIN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_KEPT = ("name", "levelno", "levelname", "created", "msecs", "process", "thread", "threadName", "lineno", "pathname")
_MORE = ("filename", "module", "funcName", "processName", "stack_info")
_LONGEST = 64 * 1024
"""characters of a message or traceback"""


def wanted() -> int:
    """The level from which on this process writes what nobody has said otherwise of."""
    return logging.getLogger().getEffectiveLevel()


def forward(say: Callable[[dict[str, Any]], None], level: int) -> None:
    """Tell the parent what is logged here, unless the application has set up `logging` in this process, too."""
    root = logging.getLogger()
    if any(isinstance(one, _Forwarding) for one in root.handlers):
        root.setLevel(level)
    elif not root.handlers:
        root.addHandler(_Forwarding(say))
        root.setLevel(level)


def retell(told: dict[str, Any]) -> None:
    """Log here what was logged there."""
    record = logging.makeLogRecord(told)
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        with suppress(Exception):  # a filter is somebody's code, and this thread has more to hear
            logger.handle(record)


class _Forwarding(logging.Handler):
    def __init__(self, say: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        try:
            told: dict[str, Any] = {name: getattr(record, name) for name in (*_KEPT, *_MORE)}
            told["msg"] = record.getMessage()[:_LONGEST]
            if record.exc_info and record.exc_info[0] is not None:
                told["exc_text"] = logging.Formatter().formatException(record.exc_info)[-_LONGEST:]
            told |= {name: _sent(value) for name, value in record.__dict__.items() if name not in _PLAIN}
        except Exception:  # noqa: BLE001  # a message may be anything; the standard library says so in its way
            self.handleError(record)
            return
        with suppress(OSError):  # the parent is gone, and this process on its way, too
            self._say({"log": told})


def _sent(value: object) -> object:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return str(value)
    return value
