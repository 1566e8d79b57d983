"""Many clients reach for one unique key, some roll back, and answers are lost on the way: M18 of the matrix."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import asyncpg
from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from tests.contract.places import MongoTransaction, PostgresTransaction, Transaction
from tests.faults.app import application
from tests.faults.judging import found_by, heal, kind_of, spec_of, strike
from tests.faults.network import proxied
from windlass import StoreError, Windlass
from windlass.chaos.faults import Finding
from windlass.chaos.history import What
from windlass.chaos.invariants import CLOCKS
from windlass.chaos.place import Place
from windlass.chaos.report import Report
from windlass.chaos.trial import Trial
from windlass.stores.contract import Filter

CLIENTS = 64
_EACH = 4
"""clients that share one opened store"""
_KEY = "race"
_LOSS = 0.02
_LIFE = 0.3
"""seconds that a job holds the key"""
_STEP = 0.2
_CLOCKS = {"mongo": float("inf")}
"""On MongoDB a client stamps what it is about to write, and its driver may write it again after a lost answer, in
half a second or so: there, what was seen counts, and not the stamps."""
_FAULTS = (StoreError, asyncpg.PostgresError, asyncpg.InterfaceError, PyMongoError, OSError)


@dataclass
class Race:
    """What the clients were told."""

    trial: Trial
    place: Place
    """as they see it"""
    created: dict[str, str] = field(default_factory=dict[str, str])
    """by name, the id of each job that was said to be made"""
    rolled_back: int = 0
    refused: int = 0
    duplicates: int = 0
    most: int = 0
    """live holders of the key that were seen at one moment"""

    async def run(self, app: Windlass, number: int, times: int) -> None:
        """One client: a plain one, or where there are transactions one that rolls back, or now and then commits."""
        joins = bool(number % 2) and kind_of(self.place) in TRANSACTIONS
        for time in range(times):
            name = f"race-{number}-{time}"
            if time or not joins:  # a transaction takes longer: to find the key free at times, it begins at once
                await self._together()
            if joins:
                await self._in_transaction(app, name, commit=time % 3 == 2)
            else:
                await self._plainly(app, name)

    async def _together(self) -> None:
        """Until the moment when the others begin, too; some of the time a little later."""
        now = asyncio.get_running_loop().time()
        # The moment is the subject: all begin at the same tick of the clock.
        await asyncio.sleep(_STEP - now % _STEP + max(0.0, self.trial.random.uniform(-0.1, 0.1)))

    @asynccontextmanager
    async def held(self, app: Windlass) -> AsyncGenerator[None, None]:
        """While inside, a transaction has the key that then rolls back; where there are none, nothing."""
        if kind_of(self.place) not in TRANSACTIONS:
            yield
            return
        async with TRANSACTIONS[kind_of(self.place)](self.place.url) as transaction:
            handle = await app.enqueue("keyed", _payload("race-rolled-back"), tx=transaction.tx)
            yield
            await transaction.rollback()
            self.rolled_back += handle.created

    async def watch(self) -> None:
        """Count who holds the key, past the proxy and for as long as this is let run."""
        while True:
            page = await self.trial.desk.store.views.find(Filter(type="keyed"), 500)
            self.most = max(self.most, sum(not job.status.finished for job in page.jobs))
            await asyncio.sleep(0.01)  # as often as it can look beside them

    async def _plainly(self, app: Windlass, name: str) -> None:
        self.trial.history.tell(What.INVOKED, name=name, key=_KEY, expect="succeeded")
        try:
            handle = await app.enqueue("keyed", _payload(name))
        except StoreError as error:
            self._refuse(name, error)
            return
        self._acknowledge(name, handle.id, created=handle.created)

    async def _in_transaction(self, app: Windlass, name: str, *, commit: bool) -> None:
        # What is rolled back was asked for by nobody: if it is there all the same, it is unexpected.
        if commit:
            self.trial.history.tell(What.INVOKED, name=name, key=_KEY, expect="succeeded")
        try:
            async with TRANSACTIONS[kind_of(self.place)](self.place.url) as transaction:
                handle = await app.enqueue("keyed", _payload(name), tx=transaction.tx)
                if not commit:
                    await transaction.rollback()
                    self.rolled_back += handle.created
                    return
                await transaction.commit()
        except _FAULTS as error:
            if commit:
                self._refuse(name, error)
            return
        self._acknowledge(name, handle.id, created=handle.created)

    def _refuse(self, name: str, error: Exception) -> None:
        self.refused += 1
        self.trial.history.tell(What.UNKNOWN, name=name, note=f"{type(error).__name__}: {error}"[:300])

    def _acknowledge(self, name: str, job: str, *, created: bool) -> None:
        self.trial.history.tell(What.ACKNOWLEDGED, name=name, job=job)
        if created:
            self.created[name] = job
        else:
            self.duplicates += 1

    async def phantoms(self) -> list[str]:
        """Jobs that were said to be made, and are not there or are somebody else's."""
        found = await self.trial.desk.store.views.get(list(self.created.values()))
        names = [None if job is None else job.payload["name"] for job in found]
        return [
            f"{told} was said to be made: phantom"
            for told, name in zip(self.created, names, strict=True)
            if told != name
        ]


def _payload(name: str) -> Mapping[str, Any]:
    return {"name": name, "key": _KEY, "seconds": _LIFE}


@asynccontextmanager
async def _postgres(url: str) -> AsyncGenerator[Transaction, None]:
    connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(_bare(url), timeout=5)
    try:
        await connection.execute("BEGIN")
        yield PostgresTransaction(connection)
    finally:
        connection.terminate()


def _bare(url: str) -> str:
    return urlsplit(url)._replace(query="").geturl()  # the schema is the store's own word


@asynccontextmanager
async def _mongo(url: str) -> AsyncGenerator[Transaction, None]:
    async with AsyncMongoClient[dict[str, Any]](url, timeoutMS=5000) as client, client.start_session() as session:
        await session.start_transaction()
        yield MongoTransaction(session)


TRANSACTIONS: dict[str, Callable[[str], AbstractAsyncContextManager[Transaction]]] = {
    "postgres": _postgres,
    "mongo": _mongo,
}
"""how one is begun"""


async def raced(place: Place, seed: int, *, long: bool) -> Finding:
    """All at once, while workers end what they made and so free the key again and again."""
    with proxied(place, seed) as (proxy, there):
        async with Trial(place, spec=spec_of(place), seed=seed) as trial:
            await trial.ready(1)
            race = Race(trial, there)
            async with AsyncExitStack() as stack:
                apps = [application(there) for _ in range(CLIENTS // _EACH)]
                for app in apps:
                    await stack.enter_async_context(app)
                times = 12 if long else 6
                watching = asyncio.create_task(race.watch())
                async with race.held(apps[0]):
                    strike(trial, "race")
                    clients = [asyncio.create_task(race.run(apps[n % len(apps)], n, times)) for n in range(CLIENTS)]
                    await asyncio.sleep(_STEP * 2)  # two rounds in which the key is held
                proxy.lose_answers(_LOSS)
                await asyncio.gather(*clients)
                watching.cancel()
                await asyncio.wait([watching])
                proxy.heal()
                heal(trial, "race")
            for app in apps:
                app.close()
            await trial.finished(4 if place.control else 60)
            phantoms = await race.phantoms()

            def proved(_: Report) -> list[str]:
                rolls = kind_of(place) in TRANSACTIONS
                return [
                    *phantoms,
                    *([f"{race.most} held the key at one moment"] * (race.most > 1)),
                    *(["the key was never seen held: nothing was proved"] * (not race.most)),
                    *(["no answer was lost: nothing was proved"] * (not proxy.lost)),
                    *(["the key was never met: nothing was proved"] * (not race.duplicates)),
                    *(["nobody rolled back what was made: nothing was proved"] * (rolls and not race.rolled_back)),
                ]

            return await found_by("race", trial, proved, clocks=_CLOCKS.get(kind_of(place), CLOCKS))
