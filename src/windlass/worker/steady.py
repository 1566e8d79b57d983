"""Steadiness: store calls that are tried again with growing, jittered waits, and announced once per change of state."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, TypeVar

from windlass.client.timing import timed
from windlass.core.errors import StoreError
from windlass.core.events import Hub, StoreRecovered, StoreTroubled
from windlass.core.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
_FIRST, _LONGEST = 0.1, 2.0


class Steady:
    """Tries one kind of store call until it works. Told apart by what it is doing."""

    def __init__(self, hub: Hub, doing: str) -> None:
        self._hub = hub
        self._doing = doing
        self._since: float | None = None
        self._wait = _FIRST

    async def attempt(self, call: Callable[[], Awaitable[T]]) -> T | None:
        """The call's result; on an error, None after a wait that grows with every failure in a row."""
        try:
            result = await timed(self._hub, self._doing, call)
        except Exception as error:  # noqa: BLE001  # a loop that ends for one bad answer would stop the whole worker
            if self._since is None:
                self._since = time.monotonic()
                told = str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"
                self._hub.tell(StoreTroubled(self._doing, redact(told)))
            # Full jitter: many workers that lost the store together must not come back together.
            await asyncio.sleep(random.uniform(0, self._wait))
            self._wait = min(self._wait * 2, _LONGEST)
            return None
        if self._since is not None:
            self._hub.tell(StoreRecovered(self._doing, time.monotonic() - self._since))
            self._since = None
            self._wait = _FIRST
        return result
