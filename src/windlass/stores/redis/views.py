"""Looking at jobs in Redis: by lists that scripts keep, never by SCAN."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from windlass.core.errors import SettingsError
from windlass.core.spread import Spread
from windlass.core.status import Status
from windlass.stores.contract import (
    COUNT_CAP,
    MOST_COUNTED,
    MOST_LOOKED_AT,
    Count,
    Figures,
    Filter,
    Looked,
    Minute,
    Page,
    Ran,
    Stats,
    StatusCount,
    together,
)
from windlass.stores.contract.paging import ANY_WAY, page_of, walk_of
from windlass.stores.redis.connection import Room, guarded
from windlass.stores.redis.records import (
    SEP,
    STATUSES,
    Shared,
    as_duration_ms,
    as_ms,
    entries_of,
    instant,
    job_of,
    kept_of,
    unpacked,
)
from windlass.stores.redis.searching import Searched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime, timedelta

    from windlass.core.history import Entry
    from windlass.core.job import Job
    from windlass.stores.redis.connection import Value

_KEPT = "figures"
_UNREAD = "{}"  # until what a job has kept is read
_AT_ONCE = 1000  # jobs looked at in one script: others wait for as long as it runs


class RedisViews(Room):
    """See `contract.Views` for what each promises."""

    @guarded
    async def get(self, ids: Sequence[str], user: str | None = None) -> list[Job | None]:
        """The jobs of these ids, in order."""
        found: list[bytes | None] = []
        for first in range(0, len(ids), _AT_ONCE):
            keys = [self.link.key(f"j:{id_}") for id_ in ids[first : first + _AT_ONCE]]
            found += await self.link.command("MGET", *keys)
        jobs = await self._jobs([(id_, value) for id_, value in zip(ids, found, strict=True)])
        return [job if job is None or user in (None, job.user_id) else None for job in jobs]

    async def _jobs(self, found: Sequence[tuple[str, bytes | None]]) -> list[Job | None]:
        kinds: dict[bytes, Shared] = {}
        jobs = [None if value is None else job_of(id_, value, kinds, kept_json=_UNREAD) for id_, value in found]
        await self._read_payloads(jobs)
        await self._read_kept(jobs)
        return jobs

    async def _read_payloads(self, jobs: list[Job | None]) -> None:
        apart = [(at, job) for at, job in enumerate(jobs) if job is not None and not job.payload_json]
        for first in range(0, len(apart), _AT_ONCE):
            part = apart[first : first + _AT_ONCE]
            payloads = await self.link.command("MGET", *[self.link.key(f"x:{job.id}") for _, job in part])
            for (at, job), payload in zip(part, payloads, strict=True):
                # Without a payload it was deleted since.
                jobs[at] = None if payload is None else job._replace(payload_json=payload.decode())

    async def _read_kept(self, jobs: list[Job | None]) -> None:
        keep = [(at, job) for at, job in enumerate(jobs) if job is not None and job.kept_json is not None]
        for first in range(0, len(keep), _AT_ONCE):
            part = keep[first : first + _AT_ONCE]
            kept = await self.link.run("kept", [job.id for _, job in part])
            for (at, job), texts in zip(part, kept, strict=True):
                jobs[at] = job._replace(kept_json=kept_of(texts)) if texts else None  # without any it was deleted since

    @guarded
    async def blocked(self, lines: Sequence[str], n: int, after: Job | None = None) -> list[Job]:
        """The first of each line, or those behind a job."""
        queued_at = "" if after is None or after.queued_at is None else as_ms(after.queued_at)
        asked: list[Value] = [n, "" if after is None else after.id, queued_at, *lines]
        ids = [id_.decode() for id_ in await self.link.run("blocked", asked)]
        # What has moved on since is not of the line any more.
        return [job for job in await self.get(ids) if job is not None and job.blocked_by in lines] if ids else []

    @guarded
    async def find(self, filter_: Filter, limit: int, after: str | None = None, *, oldest_first: bool = False) -> Page:
        """In the order asked for, from the cursor on."""
        if limit < 1:
            raise SettingsError(f"limit is {limit}: expected at least 1")
        walk = walk_of(after, oldest_first=oldest_first)
        found, stop = await self._walk(Searched.of(filter_, walk), limit + 1)
        jobs = [job for job in await self._jobs(found) if job is not None]
        # One that was deleted since its id was read leaves the page shorter, not at its end.
        if stop is None and len(found) > limit >= len(jobs):
            stop = found[limit][0]
        return page_of(jobs, limit, walk, stop)

    async def _walk(self, search: Searched, limit: int) -> tuple[list[tuple[str, bytes | None]], str | None]:
        """The first that match, and the id that was looked at last if the walk was given up there."""
        found: list[tuple[str, bytes | None]] = []
        left = MOST_LOOKED_AT
        while True:
            most = limit - len(found)
            look = min(_AT_ONCE, left) if search.tests else most
            last, looked, _, *more = await self.link.run("walk", search.asked(look, most))
            found += _pairs(more)
            stop, left = last.decode(), left - looked
            if not stop or len(found) >= limit:
                return found, None
            if left <= 0:
                return found, stop
            search = search.beyond(stop)

    @guarded
    async def count(self, filter_: Filter, cap: int = COUNT_CAP) -> Count:
        """How many match, up to the cap."""
        search = Searched.of(filter_, ANY_WAY)
        if search.counted:
            n = sum(n for status, queue, type_, n in await self._counts() if _matches(filter_, status, queue, type_))
            return _capped(n, cap)
        n, left = 0, cap + 1
        while n <= cap:
            last, looked, more, *_ = await self.link.run("walk", search.asked(min(_AT_ONCE, left), 0))
            n, left, stop = n + more, left - looked, last.decode()
            if not stop:
                break
            if left <= 0:
                return Count(min(n, cap), exact=False)
            search = search.beyond(stop)
        return _capped(n, cap)

    async def _counts(self) -> list[tuple[Status, str, str, int]]:
        return list(counts_of(await self.link.command("HGETALL", self.link.key("counts"))))

    @guarded
    async def look(self, job_id: str, user: str | None = None) -> Looked | None:
        """Its record has both."""
        record = await self.link.command("GET", self.link.key(f"j:{job_id}"))
        [job] = await self._jobs([(job_id, record)])
        theirs = job is not None and user in (None, job.user_id)
        return Looked(job, entries_of(unpacked(record))) if job is not None and theirs else None

    @guarded
    async def history(self, job_id: str, user: str | None = None) -> list[Entry]:
        """The job's moves, oldest first."""
        looked = await self.look(job_id, user)
        return looked.history if looked else []

    @guarded
    async def ran(self, user: str, limit: int, after: str | None = None) -> Sequence[Ran]:
        """Their newest, or those before a job."""
        walk = walk_of(after, oldest_first=False)
        found, _ = await self._walk(Searched.of(Filter(user_id=user), walk), limit)
        kinds: dict[bytes, Shared] = {}
        jobs = [job_of(id_, value, kinds, kept_json=_UNREAD) for id_, value in found if value is not None]
        return [
            Ran(job.id, job.queue, job.type, job.status, job.finished_at, job.duration_ms, job.wait_ms) for job in jobs
        ]

    @guarded
    async def stats(self, since: timedelta) -> Stats:
        """Counts now and minutes since."""
        at, counts, *minutes = await self.link.run("stats", [as_duration_ms(since)])
        return Stats(instant(at), tuple(_by_queue(counts_of(counts))), _all_minutes(minutes))

    @guarded
    async def figures(self, since: timedelta) -> Figures:
        """The minutes since, and what was kept."""
        (at, _, *minutes), kept = await asyncio.gather(
            self.link.run("stats", [as_duration_ms(since)]), self.link.command("HGET", self.link.key("meta"), _KEPT)
        )
        return Figures(instant(at), _all_minutes(minutes), None if kept is None else kept.decode())

    @guarded
    async def ended(self, first: datetime, until: datetime) -> Sequence[Minute]:
        """The minutes from the one until before the other."""
        _, _, *minutes = await self.link.run("stats", ["", as_ms(first), f"({as_ms(until)}"])
        return _all_minutes(minutes)

    @guarded
    async def first_minute(self) -> datetime | None:
        """The oldest minute."""
        found = await self.link.command("ZRANGE", self.link.key("minutes"), 0, 0)
        return instant(int(found[0])) if found else None

    @guarded
    async def recount(self, statuses: frozenset[Status], most: int = MOST_COUNTED) -> Sequence[StatusCount]:
        """By queue and status, whole: scripts keep count, so that nobody has to."""
        del most
        return _by_queue(one for one in await self._counts() if one[0] in statuses)

    @guarded
    async def keep(self, text: str) -> None:
        """In place of what was kept before."""
        await self.link.command("HSET", self.link.key("meta"), _KEPT, text)


def _by_queue(counts: Iterable[tuple[Status, str, str, int]]) -> list[StatusCount]:
    sums: dict[tuple[str, Status], int] = defaultdict(int)
    for status, queue, _, n in counts:
        sums[queue, status] += n
    return [StatusCount(queue, status, Count(n, exact=True)) for (queue, status), n in sorted(sums.items())]


def _all_minutes(minutes: Sequence[Any]) -> tuple[Minute, ...]:
    pairs = zip(minutes[::2], minutes[1::2], strict=True)
    return together(one for minute, answer in pairs for one in _minutes(int(minute), answer))


def as_pairs(answer: Any) -> Iterator[tuple[bytes, bytes]]:
    """What HGETALL answered: flat inside a script, a mapping outside of one."""
    if isinstance(answer, dict):
        yield from answer.items()
    else:
        yield from zip(answer[::2], answer[1::2], strict=True)


def counts_of(answer: Any) -> Iterator[tuple[Status, str, str, int]]:
    """Status, queue, type and number of each list."""
    for named, n in as_pairs(answer):
        status, queue, type_ = named.decode().split(SEP)
        yield STATUSES[status], queue, type_, int(n)


def _pairs(answer: Sequence[bytes]) -> Iterator[tuple[str, bytes | None]]:
    for at in range(0, len(answer), 2):
        yield answer[at].decode(), answer[at + 1]


def _matches(filter_: Filter, status: Status, queue: str, type_: str) -> bool:
    named = filter_.queue in (None, queue) and filter_.type in (None, type_)
    return named and status in filter_.statuses and type_.startswith(filter_.type_prefix or "")


def _minutes(minute: int, answer: Any) -> Iterator[Minute]:
    figures: dict[str, dict[str, int]] = defaultdict(dict)
    for named, n in as_pairs(answer):
        what, _, of = named.decode().partition(SEP)
        figures[of][what] = int(n)
    for of, found in figures.items():
        bucket, status, queue, type_ = of.split(SEP)
        key = instant(minute), queue, type_, STATUSES[status]
        if int(bucket) >= 0:
            yield Minute.of_power(key, int(bucket), found["n"], found["d"], found["w"])
        else:
            yield Minute(*key, _spread("r", found["d"], found), _spread("w", found["w"], found))


def _spread(what: str, total: int, found: dict[str, int]) -> Spread:
    buckets = {int(name[1:]): n for name, n in found.items() if name[0] == what and name[1:].isdigit()}
    return Spread(found["n"], total, found[f"{what}l"], found[f"{what}m"], buckets)


def _capped(n: int, cap: int) -> Count:
    return Count(min(n, cap), n <= cap)
