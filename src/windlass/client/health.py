"""`app.health`: whether the store answers, and what is wrong or soon will be, as values."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from windlass.client.checking import Check, Level, being_migrated, examine, parked_jobs
from windlass.client.sharing import Shared
from windlass.client.workers import live_workers
from windlass.core.errors import SettingsError, WindlassError
from windlass.core.keys import shown
from windlass.core.signals import as_duration
from windlass.core.wording import span

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from windlass.client.client import Client
    from windlass.client.jobs import JobsRoom
    from windlass.core.job import Job

WITHIN = timedelta(seconds=5)
UNREACHABLE = "check the URL, the server and the rights"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Whether the store can be worked with now, and how long it took to find out."""

    ready: bool
    found: str
    """one sentence: what was found, and what to do where it is not ready"""
    took: timedelta

    def __bool__(self) -> bool:
        return self.ready


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """All checks, when they were made by this host's clock, and how long that took."""

    checks: tuple[Check, ...]
    at: datetime
    took: timedelta


class HealthRoom:
    """What `windlass doctor` shows, as values."""

    def __init__(self, client: Client, jobs: JobsRoom) -> None:
        self._client, self._jobs = client, jobs
        self._checked: Shared[Examined] = Shared()
        self._parked: Shared[Sequence[Job]] = Shared()
        self._ready: Shared[Readiness] = Shared()

    async def check(self) -> list[Check]:
        """Every check of store, schema, workers and jobs. An unreachable store is a check that fails, no exception."""
        return [check async for check in self.checks()]

    async def examined(self, *, max_age: float | timedelta = 0) -> Examined:
        """What costs little at any size of the same, and when: many who ask share what is of at most that age."""
        return await self._checked.get(self._examine, as_duration(max_age, "max_age"))

    async def parked(self, *, max_age: float | timedelta = 0) -> Sequence[Job]:
        """Jobs that wait for a handler that can read their payload, of each type the first hundred."""
        return await self._parked.get(self._find_parked, as_duration(max_age, "max_age"))

    async def _examine(self) -> Examined:
        began = time.monotonic()
        checks = [check async for check in self.checks(thorough=False)]
        return Examined(checks=tuple(checks), at=datetime.now(UTC), took=timedelta(seconds=time.monotonic() - began))

    async def _find_parked(self) -> Sequence[Job]:
        store = await self._client.ready()
        return await parked_jobs(store, self._jobs, await live_workers(store))

    async def checks(self, *, thorough: bool = True) -> AsyncGenerator[Check, None]:
        """The same one by one, each as soon as it is done.

        Unless they are to be thorough, what takes the longer the more there is in the store is left out: on SQLite the
        check of the file's integrity.
        """
        try:
            if not self._client.opened and (check := await being_migrated(self._client.store)) is not None:
                yield check
                return  # what opens the store waits for the migration
            async with aclosing(examine(await self._client.ready(), self._jobs, thorough=thorough)) as checks:
                async for check in checks:
                    yield check
        except WindlassError as error:
            yield Check(Level.FAIL, "store reachable", str(error), UNREACHABLE)

    async def ready(self, *, within: float | timedelta = WITHIN, max_age: float | timedelta = 0) -> Readiness:
        """Whether the store answers within so long and its schema fits this windlass: one short question.

        Never raises for a store that is away, wrong or slow, but says so. A store that is not open yet is opened.
        Many who ask share what is of at most `max_age`.
        """
        limit = as_duration(within, "within")
        if limit <= timedelta(0):
            raise SettingsError(f"within is {shown(within)}: expected a time longer than 0")
        age = as_duration(max_age, "max_age")
        return await (self._ready.get(lambda: self._asked(limit), age) if age else self._asked(limit))

    async def _asked(self, limit: timedelta) -> Readiness:
        began = time.monotonic()
        found = await self._wrong(limit)
        took = timedelta(seconds=time.monotonic() - began)
        address = self._client.store.address
        return Readiness(ready=found is None, found=found or f"{address} answered in {span(took)}", took=took)

    async def _wrong(self, limit: timedelta) -> str | None:
        try:
            async with asyncio.timeout(limit.total_seconds()):
                store = await self._client.ready()
                missing = await store.schema.pending()
        except TimeoutError:
            return f"{self._client.store.address} did not answer within {span(limit)}: {UNREACHABLE}"
        except WindlassError as error:
            return str(error)
        if missing:
            return f'the schema at {store.address} lacks {", ".join(missing)}: run "windlass migrate"'
        return None
