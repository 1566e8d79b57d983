"""How long the store took for a call: announced, while somebody listens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from windlass.core.events import Hub, StoreCalled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


async def timed(hub: Hub, doing: str, call: Callable[[], Awaitable[T]]) -> T:
    """What the call gives, or raises; told with how long it took either way."""
    if hub.silent:
        return await call()
    began, went_well = time.monotonic(), False
    try:
        result = await call()
        went_well = True
        return result
    finally:
        hub.tell(StoreCalled(doing, time.monotonic() - began, went_well))
