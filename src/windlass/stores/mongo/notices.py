"""Wake-ups on MongoDB: at once from this store, by a change stream from others.

The stream carries nothing but what the writer of a change said of it. What tells of a single job says its lane, and the
server sorts out lanes that nobody here follows. It never gives up: after any fault it forgets
where it was, tells everybody to look at everything, because something may have been missed, and opens anew with a
capped pause. While it is closed, and on a standalone server, which has none, only polling finds what others changed;
`healthy` says so.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pymongo.errors import PyMongoError

from windlass.core.errors import StoreError
from windlass.core.status import Status
from windlass.stores.contract import ANYTHING, LANES, About, Notice
from windlass.stores.lanes import ALL
from windlass.stores.listeners import Listeners
from windlass.stores.mongo.connection import APART, AT_ONCE, LANE, Room, guarded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence

    from windlass.stores.mongo.connection import Doc, Link


_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_AWAIT_MS = 1000  # how long the server holds a question about changes: an answer as often shows that it is there
_GATHER = 0.002  # seconds: what comes so soon after a wake-up is told together

_PER_CHANGE = 0.0003  # seconds not followed for each job changed here meanwhile
_LONGEST_BREAK = 0.25
_MANY = 100  # jobs changed here between two looks: more is not read in the log any more, but passed over

_UPDATED = "updateDescription.updatedFields.wake"
_GONE = ("drop", "rename", "dropDatabase", "invalidate")
CHANGED, DUE, CANCEL = Notice(About.CHANGED), Notice(About.DUE), Notice(About.CANCEL)


def claimable(queues: Iterable[str] | Mapping[str, int]) -> list[Notice]:
    """One notice of all jobs that were queued, given the queue of each, or how many were in each queue."""
    counts = Counter(queues)
    return [Notice.claimable(counts.total(), next(iter(counts)) if len(counts) == 1 else None)] if counts else []


def news_of(moves: Iterable[tuple[str, str]], *, due: bool = False) -> list[Notice]:
    """What to tell of jobs that came to a status, given it and the queue of each.

    `due`: for one of them something is to happen at a time, whatever its status.
    """
    queued: dict[str, int] = {}
    others: set[Notice] = {DUE} if due else set()
    for (status, queue), n in Counter(moves).items():  # hardly ever more than one
        if status == Status.QUEUED:
            queued[queue] = n
        else:
            others.add(DUE if status in (Status.SCHEDULED, Status.RETRYING) else CHANGED)
    return [*claimable(queued), *others]


def worth_waking(link: Link, lanes: frozenset[int] = ALL) -> Doc:
    """Which changes are news: those whose writer said so, by the field `wake`. The server sorts out all others."""
    ours = [link.name(of) for of in ("jobs", "queues", "schedules", "meta")]
    said: Doc = {"$exists": True}
    # A pattern costs the server some of every change in its log: it is worth that only where it spares many workers.
    if not lanes.issuperset(range(LANES)):
        said |= {"$regex": f"^[^{LANE}]*$|{LANE}({'|'.join(map(str, sorted(lanes)))})$"}
    return {
        "$or": [
            {"ns.coll": {"$in": ours}, "operationType": "insert", "fullDocument.wake": said},
            {"ns.coll": {"$in": ours}, "operationType": "update", _UPDATED: said},
            {"ns.coll": link.name("schedules"), "operationType": "delete"},
            {"ns.coll": link.name("jobs"), "operationType": {"$in": _GONE[:2]}},
            {"operationType": {"$in": _GONE[2:]}},
        ]
    }


class MongoNotices(Room):
    """See `contract.Notices` for what each promises."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._listeners = Listeners()
        self._watcher: asyncio.Task[None] | None = None
        self._healthy = self._gathering = False
        self._gathered: list[Notice] = []

    @property
    def healthy(self) -> bool:
        """Whether the change stream is open and answered the last time."""
        return self._healthy

    @guarded
    async def publish(self, notice: Notice = ANYTHING) -> None:
        """Tell every listener: on this store at once, on others by a write that has no other purpose."""
        self.tell(notice)
        if not self.link.standalone:
            meta = self.link.collection("meta").with_options(write_concern=AT_ONCE)
            await meta.update_one({"_id": "notice"}, {"$set": {"wake": self.link.news([notice])}}, upsert=True)

    def tell(self, notice: Notice = ANYTHING) -> None:
        """Tell every listener, from any thread."""
        self._listeners.tell(notice)

    @asynccontextmanager
    async def subscribe(self, wake: Callable[[Notice], None]) -> AsyncGenerator[None, None]:
        """Call `wake` after changes, until left."""
        try:
            with self._listeners.joined(wake):
                if self._watcher is None and not self.link.standalone:
                    self._watcher = asyncio.create_task(self._watch(), name="windlass-mongo-notices")
                yield
        finally:
            if not self._listeners:
                await self.close()

    def follow(self, wake: Callable[[Notice], None], lanes: frozenset[int] | None) -> None:
        """Follow only these lanes once the stream is opened anew, which it is then."""
        self._listeners.lanes.follow(wake, lanes)

    async def close(self) -> None:
        """Stop watching."""
        watcher, self._watcher = self._watcher, None
        self._healthy = False
        if watcher is not None:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)

    async def _watch(self) -> None:
        pause = _FIRST_PAUSE
        while self._wanted():
            try:
                await self._follow()
                pause = _FIRST_PAUSE
            except (PyMongoError, StoreError):
                pause = min(pause * 2, _LONGEST_PAUSE)
            # Never from where the stream broke off: that place may be gone for good. What was missed, a look finds.
            self._healthy = False
            self.tell()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))

    async def _follow(self) -> None:
        known = self.link.name_of_news
        news = {"_id": 1, "operationType": 1, "wake": {"$ifNull": ["$fullDocument.wake", f"${_UPDATED}"]}}
        moved = self._listeners.lanes.watched()
        database = self.link.client[self.link.place.database]
        while self._wanted():
            # Following costs the server a wake-up per change in its log, ours among them: a store that writes much
            # finds by itself what there is to do, and follows only now and then, from where the log is by then.
            await self._rest()
            moved.clear()
            stages: list[Doc] = [
                {"$match": worth_waking(self.link, self._listeners.lanes.followed)},
                {"$project": news},
            ]
            async with await database.watch(stages, max_await_time_ms=_AWAIT_MS) as stream:
                self._healthy = True
                self.tell()  # what was changed before it was open, a look finds
                while self._wanted() and self.link.written < _MANY and not moved.is_set():
                    await self._rest()
                    change = await stream.try_next()
                    if not stream.alive or (change is not None and change["operationType"] in _GONE):
                        return
                    if change is None:
                        continue
                    wake = change.get("wake", DUE_ALONE)
                    if not wake.startswith(known):
                        self._tell_soon(_told(wake))  # what this store did it has told already

    async def _rest(self) -> None:
        rest, self.link.written = self.link.written * _PER_CHANGE, 0
        await asyncio.sleep(min(rest, _LONGEST_BREAK))

    def _wanted(self) -> bool:
        # The driver may swallow a cancellation that meets an answer on its way: being asked to end is not enough.
        return self._watcher is asyncio.current_task()

    def _tell_soon(self, notices: Sequence[Notice]) -> None:
        """Tell at once, and of all that comes in the next moment together at its end."""
        if self._gathering:
            self._gathered += notices
            return
        self._gathering = True
        for notice in dict.fromkeys(notices):
            self.tell(notice)
        asyncio.get_running_loop().call_later(_GATHER, self._tell_gathered)

    def _tell_gathered(self) -> None:
        # What is claimable is told as it came, so that all subscribers draw alike; the rest once.
        self._gathering, gathered, self._gathered = False, self._gathered, []
        if gathered:
            self._tell_soon(gathered)


DUE_ALONE = f"{APART}{DUE.text()}"
"""a schedule that was removed carries no news of its own"""


def _told(wake: str) -> list[Notice]:
    _, apart, said = wake.partition(LANE)[0].partition(APART)
    # A windlass before this one says nothing of what its change is about.
    return [Notice.of(text) for text in said.split(APART) if text] if apart else [ANYTHING]
