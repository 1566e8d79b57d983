"""Answers that many ask for: one call to the store serves all who accept an answer of that age."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import timedelta

A = TypeVar("A")
STALE = 30.0
"""seconds: while somebody asks anew, others are given an answer of up to this age at once"""


class Shared(Generic[A]):
    """The last answer, and who asks for the next: one at a time."""

    def __init__(self) -> None:
        self._answer: A | None = None
        self._asked_at = float("-inf")
        """when the call began whose answer this is, by the monotonic clock"""
        self._turn: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def get(self, ask: Callable[[], Awaitable[A]], max_age: timedelta) -> A:
        """An answer that was asked for at most so long ago. With an age of nothing it was asked for after this call."""
        oldest = time.monotonic() - max_age.total_seconds()
        turn = self._lock()
        if self._answer is not None and (self._asked_at >= oldest or (max_age and turn.locked() and self._usable())):
            return self._answer
        async with turn:
            if self._answer is None or self._asked_at < oldest:
                began = time.monotonic()
                self._answer, self._asked_at = await ask(), began
            return self._answer

    def _usable(self) -> bool:
        return self._asked_at > time.monotonic() - STALE

    def _lock(self) -> asyncio.Lock:
        # A lock belongs to one event loop, and an application may be used in several, one after another.
        loop = asyncio.get_running_loop()
        if self._turn is None or self._turn[0] is not loop:
            self._turn = loop, asyncio.Lock()
        return self._turn[1]
