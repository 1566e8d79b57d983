"""Failing: what the log is told of requests that failed here."""

from __future__ import annotations

import logging
import time
from traceback import format_exception
from typing import TYPE_CHECKING

from windlass.core.errors import StoreUnavailable
from windlass.core.redaction import redact
from windlass.core.values import line

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY = 60.0
"""seconds in which a store that does not answer has one traceback"""
_LONGEST = 500
LOG = logging.getLogger("windlass.web")


class Failures:
    """Writes a line for each, with the traceback; while a store does not answer, every request fails alike."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._traced = float("-inf")

    def tell(self, error: Exception, request_id: str, method: str, path: str) -> None:
        """Say which request failed, and why; a driver may quote where it connects to."""
        traced = not isinstance(error, StoreUnavailable) or LOG.isEnabledFor(logging.DEBUG) or self._is_time()
        told = redact("".join(format_exception(error)) if traced else f"{type(error).__name__}: {error}")
        LOG.error("request %s: %s %s failed: %s", request_id, method, path, told if traced else line(told, _LONGEST))

    def _is_time(self) -> bool:
        now = self._monotonic()
        if now - self._traced < EVERY:
            return False
        self._traced = now
        return True
