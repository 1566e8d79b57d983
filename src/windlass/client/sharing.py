"""Shared answers: one call to the store serves all callers that accept an answer of that age."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable
    from datetime import timedelta

A = TypeVar("A")
STALE = 30.0
"""seconds: while somebody asks anew, others are given an answer of up to this age at once"""
PATIENT = 1.0
"""seconds: but not callers that accept less than this age, and so wait for a change to be seen"""


class Shared(Generic[A]):
    """The last answer, and the call that fetches the next: one at a time."""

    def __init__(self, stale: float = STALE, patient: float = PATIENT) -> None:
        self._stale, self._patience = stale, patient
        self._answer: A | None = None
        self._asked_at = float("-inf")
        """when the call began whose answer this is, by the monotonic clock"""
        self._turn: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    async def get(self, ask: Callable[[], Awaitable[A]], max_age: timedelta) -> A:
        """An answer that was asked for at most so long ago. With an age of nothing it was asked for after this call."""
        oldest = time.monotonic() - max_age.total_seconds()
        turn = self._lock()
        if self._answer is not None and (self._asked_at >= oldest or (self._patient(max_age) and turn.locked())):
            return self._answer
        async with turn:
            if self._answer is None or self._asked_at < oldest:
                began = time.monotonic()
                self._answer, self._asked_at = await ask(), began
            return self._answer

    def _patient(self, max_age: timedelta) -> bool:
        return max_age.total_seconds() >= self._patience and self._asked_at > time.monotonic() - self._stale

    def _lock(self) -> asyncio.Lock:
        # A lock belongs to one event loop, and an application may be used in several, one after another.
        loop = asyncio.get_running_loop()
        if self._turn is None or self._turn[0] is not loop:
            self._turn = loop, asyncio.Lock()
        return self._turn[1]


class SharedByQuestion:
    """The last answers to different questions; of each question one call to the store at a time.

    No caller is given an answer that is older than it accepts, and none is kept for longer than its first caller would.
    """

    def __init__(self, most: int = 256) -> None:
        self._most = most
        self._answers: dict[Hashable, Shared[Any]] = {}

    async def get(self, question: Hashable, ask: Callable[[], Awaitable[A]], max_age: timedelta) -> A:
        """An answer to this question that was asked for at most so long ago; with an age of nothing, one's own."""
        if not max_age:
            return await ask()
        shared: Shared[A] | None = self._answers.get(question)
        if shared is None:
            if len(self._answers) >= self._most:
                del self._answers[next(iter(self._answers))]
            shared = self._answers[question] = Shared(stale=0)
            asyncio.get_running_loop().call_later(max_age.total_seconds(), self._forget, question, shared)
        return await shared.get(ask, max_age)

    def _forget(self, question: Hashable, shared: Shared[Any]) -> None:
        if self._answers.get(question) is shared:
            del self._answers[question]
