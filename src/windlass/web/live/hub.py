"""The hub: one subscription to the store's notices for all streams of this process, and one look for all who look.

While somebody watches, one task looks: after a notice, but not more often than the pace allows, and at least as often
as its floor says. It reads the state of all watched jobs in one query, for all viewers; that answer is not sent to any
viewer. A job that has changed is then read by the query of its viewers, restricted to their user. What no viewer
watches is not read.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from windlass.core.errors import WindlassError
from windlass.web.live.one_job import JobWatch
from windlass.web.live.one_view import View, ViewWatch

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from windlass.client.jobs import JobsRoom
    from windlass.web.answers import Answers
    from windlass.web.live.pace import Pace
    from windlass.web.live.watching import Watch

LOG = logging.getLogger("windlass.web.live")
PUSH, POLL, AWAY = "push", "poll", "away"
_CHUNK = 500
"""so many jobs are read at once"""
_KEPT = 32
"""views that nobody watches are remembered for those who come again"""


class OneJob(NamedTuple):
    """Names what is watched: a job."""

    id: str


Target: TypeAlias = OneJob | View


class Hub:
    """What is watched in this process."""

    def __init__(self, app: Answers, pace: Pace, closing: asyncio.Event) -> None:
        self._app, self._pace, self._closing = app, pace, closing
        self._boot = secrets.token_hex(4)
        self._made = 0
        self._watches: dict[tuple[str | None, Target], Watch] = {}
        self._left: OrderedDict[tuple[str | None, Target], Watch] = OrderedDict()
        self._woken: list[asyncio.Event] = []
        self._keeper: asyncio.Task[None] | None = None
        self.via = PUSH
        """how changes are found out: pushed, polled for, or not at all while the store is away"""

    @property
    def closing(self) -> bool:
        """Whether the server was told to stop."""
        return self._closing.is_set()

    @contextmanager
    def present(self, woken: asyncio.Event) -> Generator[None, None, None]:
        """While inside, somebody is there, who is woken when the server is to stop, or changes are found otherwise."""
        self._woken.append(woken)
        if self._keeper is None or self._keeper.done():
            self.via = PUSH if self._app.jobs.pushed else POLL
            self._keeper = asyncio.create_task(self._keep(), name="windlass-live")
        try:
            yield
        finally:
            self._woken.remove(woken)
            self._rest()

    def age_of(self, event: str) -> float:
        """Seconds since the look began that found what was told with this id; 0 where that is not known here."""
        name, _, _ = event.rpartition(".")
        found = next((one for one in self._watches.values() if isinstance(one, ViewWatch) and one.name == name), None)
        return 0.0 if found is None else time.monotonic() - found.looked_at

    def _rest(self) -> None:
        """Look no more when nobody is there."""
        if not self._woken and self._keeper is not None:
            self._keeper.cancel()
            self._keeper = None

    def join(self, room: JobsRoom, target: Target, woken: asyncio.Event) -> Watch:
        """Watch what this room shows of a job or a view; `see` it then, and `leave` it in any case."""
        key = room.user, target
        watch = self._watches.get(key) or self._left.pop(key, None)
        if watch is None or watch.over:
            watch = self._new(room, target)
        elif not watch.watched:
            watch.seen = False  # it was not looked at while nobody watched
        self._watches[key] = watch
        watch.join(woken)
        return watch

    def leave(self, room: JobsRoom, target: Target, watch: Watch, woken: asyncio.Event) -> None:
        """Watch it no more."""
        watch.leave(woken)
        key = room.user, target
        if not watch.watched and self._watches.get(key) is watch:
            del self._watches[key]
            if isinstance(watch, ViewWatch) and watch.seen:
                self._left[key] = watch
                while len(self._left) > _KEPT:
                    self._left.popitem(last=False)

    def _new(self, room: JobsRoom, target: Target) -> Watch:
        if isinstance(target, OneJob):
            return JobWatch(room, target.id)
        self._made += 1
        return ViewWatch(self._app, room, target, self._pace, f"{self._boot}.{self._made}")

    async def _keep(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._wake_at_the_end())
            while True:
                try:
                    async with self._app.jobs.changes() as told:
                        await self._look_on(told)
                except WindlassError as error:
                    self._away(error)
                    await asyncio.sleep(self._pace.floor)

    async def _wake_at_the_end(self) -> None:
        await self._closing.wait()
        self._wake()

    async def _look_on(self, told: asyncio.Event) -> None:
        while True:
            if told.is_set():
                self._stir()
            told.clear()
            left = await self._look()
            await asyncio.sleep(self._pace.gap)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, left - self._pace.gap)):
                    await told.wait()

    def _stir(self) -> None:
        for watch in self._watches.values():
            if isinstance(watch, ViewWatch):
                watch.stir()

    async def _look(self) -> float:
        """Look at what may have changed; gives the seconds until the next look at the latest."""
        watches = [watch for watch in self._watches.values() if watch.seen and not watch.over]
        views = [watch for watch in watches if isinstance(watch, ViewWatch)]
        now = time.monotonic()
        try:
            await self._look_at_jobs([watch for watch in watches if isinstance(watch, JobWatch)])
            for view in views:
                if view.due <= now:
                    await view.look()
        except Exception as error:  # noqa: BLE001  # whatever it was, who watches is told and the next look may succeed
            self._away(error)
        else:
            self._say_how(PUSH if self._app.jobs.pushed else POLL)
        return min([self._pace.floor, *(view.due - now for view in views if view.due > now)])

    async def _look_at_jobs(self, watches: Sequence[JobWatch]) -> None:
        ids = list(dict.fromkeys(watch.id for watch in watches))
        for first in range(0, len(ids), _CHUNK):
            some = ids[first : first + _CHUNK]
            found = dict(zip(some, await self._app.jobs.several(some), strict=True))
            for watch in watches:
                if watch.id in found and watch.differs(found[watch.id]):
                    await watch.look()

    def _away(self, error: Exception) -> None:
        if self.via != AWAY:
            known = isinstance(error, WindlassError)
            LOG.warning("live streams show what was last seen: %s", error, exc_info=None if known else error)
        self._say_how(AWAY)

    def _say_how(self, via: str) -> None:
        if via != self.via:
            self.via = via
            self._wake()

    def _wake(self) -> None:
        for woken in self._woken:
            woken.set()
