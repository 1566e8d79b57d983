"""Wake-ups on PostgreSQL: at once from this store, by LISTEN and NOTIFY from others.

It is sent after the change, not with it: a transaction that notifies makes
all others that do wait for its commit, and a hint is not worth that. Only inside a caller's own transaction is it sent
by the commit. What tells of a single job goes to the channel of its lane, so that the server passes it on only to those
who follow that. The listener has a connection of its own, and from time to time sends a notice to itself: if that does
not come back, as behind a pooler or on a connection that is half dead, push is not healthy and polling takes over.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import secrets
from collections import Counter, defaultdict
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from windlass.core.errors import StoreError
from windlass.stores.contract import ANYTHING, About, Notice
from windlass.stores.listeners import Listeners
from windlass.stores.postgres.connection import DRIVER, Room, guarded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from windlass.core.draft import Draft
    from windlass.stores.postgres.connection import Connection, Link

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_GATHER = 0.002  # many changes at once are one notice
_PROBE = 10.0  # seconds between two notices to oneself
_HEARD = 3.0  # seconds in which one has to come back
_MARK = "?"  # begins what is told to oneself alone: no notice begins so
_MOST = 50  # notices sent at once; of more, those about the same are told as one
_CLOCKS = timedelta(seconds=5)  # how far our clock may lie from the server's: what may be due now is told as both

# A hint that is lost in a crash is found by polling: its transaction does not wait for the disk.
NOTIFY = """
SELECT set_config('synchronous_commit', 'off', true), pg_notify(channel, told)
FROM unnest($1::text[], $2::text[]) AS news (channel, told)
"""
_FAULTS = (*DRIVER, StoreError)

CHANGED, DUE, CANCEL = Notice(About.CHANGED), Notice(About.DUE), Notice(About.CANCEL)


def claimable(queues: Sequence[str]) -> list[Notice]:
    """What tells of queued jobs, of each its queue; nothing if there is none."""
    names = set(queues)
    return [Notice.claimable(len(queues), names.pop() if len(names) == 1 else None)] if queues else []


def of_drafts(drafts: Sequence[Draft]) -> list[Notice]:
    """What tells of these, inserted."""
    counts = Counter(id(draft.options) for draft in drafts)  # most share theirs
    options = {id(draft.options): draft.options for draft in drafts}
    queued: list[str] = []
    due, now = False, datetime.now(UTC)
    for key, shared in options.items():
        due = due or shared.expires is not None
        if shared.awaits is None:
            due = due or bool(shared.delay) or (shared.run_at is not None and shared.run_at > now - _CLOCKS)
            if not shared.delay and (shared.run_at is None or shared.run_at < now + _CLOCKS):
                queued += [shared.queue] * counts[key]
    return [*claimable(queued), *([DUE] if due else ())]


def channel_of(link: Link, lane: int | None = None) -> str:
    """The channel of this installation, or of one lane of it; the same whatever characters its names have."""
    name = f"windlass_{hashlib.blake2s(link.scope.encode(), digest_size=8).hexdigest()}"
    return name if lane is None else f"{name}_{lane}"


class PostgresNotices(Room):
    """See `contract.Notices` for what each promises."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._listeners = Listeners()
        self._watcher: asyncio.Task[None] | None = None
        self._teller: asyncio.Task[None] | None = None
        self._told: dict[Notice, None] = {}
        """in order, and what says the same once"""
        self._probes: dict[str, asyncio.Event] = {}
        self._healthy = False

    @property
    def healthy(self) -> bool:
        """Whether the last notice to oneself came back."""
        return self._healthy

    @guarded
    async def publish(self, notice: Notice = ANYTHING) -> None:
        """Tell every listener."""
        self.tell(notice)

    def tell(self, *notices: Notice) -> None:
        """Tell every listener here at once, and those elsewhere soon."""
        for notice in notices:
            self.ring(notice)
            self._told[notice] = None
        if not self._told:
            return
        if self._teller is None or self._teller.done():
            self._teller = asyncio.create_task(self._send(), name="windlass-postgres-notify")

    def ring(self, notice: Notice = ANYTHING) -> None:
        """Tell every listener here."""
        self._listeners.tell(notice)

    async def _send(self) -> None:
        while self._told:
            told, self._told = self._told, {}
            with suppress(*_FAULTS):
                await self._notify(told if len(told) <= _MOST else _gathered(told))
            await asyncio.sleep(_GATHER)

    async def _notify(self, notices: Iterable[Notice]) -> None:
        news = [(channel_of(self.link, notice.lane), notice.text()) for notice in notices]
        await self.link.once(NOTIFY, [channel for channel, _ in news], [text for _, text in news])

    @asynccontextmanager
    async def subscribe(self, wake: Callable[[Notice], None]) -> AsyncGenerator[None, None]:
        """Call `wake` after changes, until left."""
        try:
            with self._listeners.joined(wake):
                if self._watcher is None and not self.link.pooled:
                    self._watcher = asyncio.create_task(self._watch(), name="windlass-postgres-notices")
                yield
        finally:
            if not self._listeners:
                await self._stop_watching()

    def follow(self, wake: Callable[[Notice], None], lanes: frozenset[int] | None) -> None:
        """Follow only these lanes from the next moment on."""
        self._listeners.lanes.follow(wake, lanes)

    async def close(self) -> None:
        """Stop watching, and send what is still to be sent."""
        await self._stop_watching()
        teller, self._teller = self._teller, None
        if teller is not None and teller.get_loop() is asyncio.get_running_loop():
            await asyncio.gather(teller, return_exceptions=True)

    async def _stop_watching(self) -> None:
        watcher, self._watcher = self._watcher, None
        self._healthy = False
        if watcher is not None and watcher.get_loop() is asyncio.get_running_loop():
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)

    async def _watch(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            with suppress(*_FAULTS):
                if await self._follow():
                    pause = _FIRST_PAUSE
            self._healthy = False
            self.ring()  # something may have been missed
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _follow(self) -> bool:
        """Listen until the connection fails; returns whether it ever worked."""
        connection = await self.link.connect(cached=False)
        lost = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _: lost.set())
            async with asyncio.timeout(self.link.place.timeout):
                await connection.add_listener(channel_of(self.link), self._hear)
            async with self._listeners.lanes.kept(partial(self._follow_lanes, connection, lost), _FAULTS):
                return await self._stay(lost)
        finally:
            self._healthy = False
            self.link.drop(connection)

    async def _stay(self, lost: asyncio.Event) -> bool:
        worked = False
        while not lost.is_set() and await self._probe():
            if not self._healthy:
                self._healthy = worked = True
                self.ring()
            with suppress(TimeoutError):
                async with asyncio.timeout(_PROBE):
                    await lost.wait()
        return worked

    async def _follow_lanes(
        self, connection: Connection, lost: asyncio.Event, more: list[int], less: list[int]
    ) -> None:
        try:
            for lane in more:
                await connection.add_listener(channel_of(self.link, lane), self._hear)
            for lane in less:
                await connection.remove_listener(channel_of(self.link, lane), self._hear)
        except DRIVER:
            lost.set()  # the driver does not always call termination listeners when the server ends under a statement
            raise

    async def _probe(self) -> bool:
        """Whether a notice to oneself comes back."""
        name = f"{_MARK}{secrets.token_hex(8)}"
        heard = self._probes[name] = asyncio.Event()
        try:
            async with asyncio.timeout(_HEARD):
                await self.link.once(NOTIFY, [channel_of(self.link)], [name])
                await heard.wait()
        except TimeoutError:
            return False
        finally:
            del self._probes[name]
        return True

    def _hear(self, _: object, pid: int, __: str, told: object) -> None:
        probe = self._probes.get(str(told))
        if probe is not None:
            probe.set()
        elif not self.link.is_own(pid) and not str(told).startswith(_MARK):  # what this store changed has rung already
            self.ring(Notice.of(str(told)))


def _gathered(notices: Iterable[Notice]) -> list[Notice]:
    """The same as one notice of each kind: with so many jobs it no longer matters which workers are drawn."""
    counts: dict[About, int] = defaultdict(int)
    for notice in notices:
        counts[notice.about] += notice.n
    return [Notice.claimable(n) if about is About.CLAIMABLE else Notice(about) for about, n in counts.items()]
