"""Named locks: one holder at a time over all processes, kept while it lives, fenced by a token that only grows."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import socket
import time
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from windlass.core.context import running
from windlass.core.errors import LockHeld, LockLost, SettingsError, StoreError, StoreUnavailable
from windlass.core.keys import check_name, shown
from windlass.core.signals import as_duration
from windlass.stores.contract import Granted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine
    from contextlib import AbstractAsyncContextManager
    from typing import Any

    from windlass.client.client import Client
    from windlass.stores.contract import Held, Store

_CANCEL_EVERY = 0.2  # seconds
T = TypeVar("T")
TTL = timedelta(seconds=30)
SHORTEST = timedelta(milliseconds=100)
LONGEST_PAUSE = 0.5
"""seconds between two tries of a waiter, at most"""


class Lock:
    """A lock that is held, and renewed in the background; check it before each lasting effect of what it guards."""

    __slots__ = ("_deadline", "_gone", "name", "token", "ttl")

    def __init__(self, name: str, token: int, ttl: timedelta, deadline: float) -> None:
        self.name = name
        self.token = token
        """Larger than that of every holder before: a resource that remembers the largest can refuse a late one."""
        self.ttl = ttl
        self._deadline = deadline
        self._gone = False

    @property
    def lost(self) -> bool:
        """Whether somebody else may hold it: a renewal found it gone, or none came through for as long as it lasts."""
        return self._gone or time.monotonic() >= self._deadline

    def check(self) -> None:
        """Raise LockLost if the lock is lost."""
        if self.lost:
            raise LockLost(self.name, self.token)

    async def keep(self, store: Store) -> None:
        """Renew it three times as often as needed, until it is gone or this is cancelled."""
        pause = self.ttl.total_seconds() / 3
        wait = pause
        while not self._gone:
            await asyncio.sleep(wait)
            sent = time.monotonic()
            wait = pause / 4  # after a fault there is still time for several tries
            with suppress(StoreError):
                if await store.locks.extend(self.name, self.token, self.ttl):
                    # Counted from before it was sent: the store counts from later, so it never ends before we say so.
                    self._deadline = sent + self.ttl.total_seconds()
                    wait = pause
                else:
                    self._gone = True

    async def give_back(self, store: Store) -> bool:
        """Release it by its token; whether nobody else can have held it up to now."""
        kept = not self.lost
        with suppress(StoreError):
            return await store.locks.release(self.name, self.token)
        # The answer was lost. It may have been given back, and have gone to another owner since, which had to wait
        # until then: what the second answer says counts only if it is good. Without any, the lock ends when its time is
        # over.
        with suppress(StoreError):
            return await store.locks.release(self.name, self.token) or kept
        return kept

    def __repr__(self) -> str:
        return f"<lock {self.name} token {self.token}{' lost' if self.lost else ''}>"


def lock(
    client: Client, name: str, ttl: float | timedelta, wait: float | timedelta | None
) -> AbstractAsyncContextManager[Lock]:
    """The lock to enter; nothing is asked of the store before."""
    check_name(name, "the lock's name")
    lasts = as_duration(ttl, "ttl")
    if lasts < SHORTEST:
        raise SettingsError(f"ttl is {shown(ttl)}: expected at least {SHORTEST.total_seconds():g} seconds")
    return _held(client, name, lasts, None if wait is None else as_duration(wait, "wait"))


@asynccontextmanager
async def _held(client: Client, name: str, ttl: timedelta, wait: timedelta | None) -> AsyncGenerator[Lock, None]:
    store = await client.ready()
    held = await _acquired(store, name, ttl, wait)
    keeping = asyncio.create_task(held.keep(store), name="windlass-lock")
    try:
        yield held
    except BaseException:
        await _let_go(store, held, keeping)
        raise
    if not await _let_go(store, held, keeping):
        raise LockLost(held.name, held.token)


async def _acquired(store: Store, name: str, ttl: timedelta, wait: timedelta | None) -> Lock:
    owner = _owner()
    until = time.monotonic() + (0.0 if wait is None else wait.total_seconds())
    unanswered = False
    while True:
        asked = time.monotonic()
        try:
            answer = await _ask(store, name, owner, ttl)
        except StoreUnavailable:
            # It may have been granted all the same. The same owner is given the same grant again, so it is
            # asked once more even by a caller that does not wait.
            if unanswered and time.monotonic() >= until:
                raise
            unanswered = True
        else:
            if isinstance(answer, Granted):
                return Lock(name, answer.token, ttl, asked + ttl.total_seconds())
            if time.monotonic() >= until:
                raise LockHeld(name, answer.until)
        # Jittered: many waiters for one lock must not come back together.
        left = max(0.0, until - time.monotonic())
        await asyncio.sleep(min(left, random.uniform(LONGEST_PAUSE / 10, LONGEST_PAUSE)))


async def _ask(store: Store, name: str, owner: str, ttl: timedelta) -> Granted | Held:
    asking = asyncio.create_task(store.locks.acquire(name, owner, ttl), name="windlass-lock")
    try:
        return await asyncio.shield(asking)
    except asyncio.CancelledError:
        # It may have been granted to a caller that is gone: give it back here instead of letting it run out.
        found = await _in_spite(_outcome(asking))
        if isinstance(found, Granted):
            with suppress(StoreError):
                await _in_spite(store.locks.release(name, found.token))
        raise


async def _outcome(asking: asyncio.Task[Granted | Held]) -> Granted | Held | None:
    await asyncio.wait([asking])
    return None if asking.cancelled() or asking.exception() is not None else asking.result()


async def _let_go(store: Store, held: Lock, keeping: asyncio.Task[None]) -> bool:
    while not keeping.done():  # a driver may swallow a cancellation that meets an answer on its way
        keeping.cancel()
        await asyncio.wait([keeping], timeout=_CANCEL_EVERY)
    return await _in_spite(held.give_back(store))


async def _in_spite(call: Coroutine[Any, Any, T]) -> T:
    """Finish the call also when cancelled meanwhile, and be cancelled then."""
    doing = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        raise


def _owner() -> str:
    """A name for one acquisition, of which no other has the last part: the same process may want one lock twice."""
    ctx = running()
    who = f"{socket.gethostname()}:{os.getpid()}"
    return f"{who if ctx is None else f'{who} job {ctx.id}'} {secrets.token_hex(6)}"
