"""Patience: the waits between the tries of one call while its server is away."""

from __future__ import annotations

import asyncio
import random

_FIRST, _LONGEST = 0.1, 1.0


class Patience:
    """Waits that grow from one try to the next, each by chance anywhere up to its length.

    A lost connection is tried again almost at once. A server that is away or has just come back is not met by all
    clients that wait for it at one moment, nor by each of them many times a second.
    """

    def __init__(self) -> None:
        self._wait = _FIRST

    async def pause(self) -> None:
        """Wait before the next try."""
        await asyncio.sleep(random.uniform(0, self._wait))
        self._wait = min(self._wait * 2, _LONGEST)
