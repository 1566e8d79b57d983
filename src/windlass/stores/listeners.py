"""Listeners: the subscribers to the notices of one store, each told in its own loop, and the lanes that they follow."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from windlass.stores.contract import ANYTHING
from windlass.stores.lanes import Lanes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from windlass.stores.contract import Notice


class Listener(NamedTuple):
    """One subscriber, and the loop in which it is told."""

    loop: asyncio.AbstractEventLoop
    wake: Callable[[Notice], None]


class Listeners:
    """The subscribers of one store; they may be told from any thread."""

    def __init__(self) -> None:
        self._joined: list[Listener] = []
        self.lanes = Lanes()

    def __bool__(self) -> bool:
        """Whether somebody listens."""
        return bool(self._joined)

    @contextmanager
    def joined(self, wake: Callable[[Notice], None]) -> Generator[None, None, None]:
        """Tell `wake` in the running loop, while inside."""
        listener = Listener(asyncio.get_running_loop(), wake)
        self._joined.append(listener)
        self.lanes.enter(wake)
        try:
            yield
        finally:
            self._joined.remove(listener)
            self.lanes.leave(wake)

    def tell(self, notice: Notice = ANYTHING) -> None:
        """Tell every listener."""
        here = _running()
        for listener in tuple(self._joined):
            # The loop that runs here needs no word through a socket, which it would read only after another turn.
            soon = listener.loop.call_soon if listener.loop is here else listener.loop.call_soon_threadsafe
            with suppress(RuntimeError):  # its loop has closed; it leaves as its subscription ends
                soon(self._wake, listener, notice)

    def _wake(self, listener: Listener, notice: Notice) -> None:
        if listener in self._joined:  # it may have left since
            listener.wake(notice)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
