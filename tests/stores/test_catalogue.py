"""The catalogue's tables on a store that was made before there was one: they are added, and who works there goes on."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from datetime import timedelta
from importlib.resources import files

from tests.contract.places import MongoPlace, Place, PostgresPlace, SqlitePlace
from tests.contract.steps import put, settle, take, told
from tests.contract.test_audit import entry
from tests.contract.test_keys import KEY
from tests.contract.test_requests import NEW
from tests.contract.test_types import declared
from tests.support.drafts import draft
from windlass.core.history import Happened
from windlass.stores.contract import AuditFilter, Begun, Store, Verdict
from windlass.stores.mongo import schema as mongo
from windlass.stores.postgres import schema as postgres
from windlass.stores.sqlite import schema as sqlite

ADDED = ("windlass_types", "windlass_keys", "windlass_audit")


async def step_back(place: Place, to: str = "catalogue", added: tuple[str, ...] = ADDED) -> list[str]:
    """Take away what a version added, such as the catalogue; the steps that bring it back."""
    match place:
        case SqlitePlace():
            steps = _from(sqlite.MIGRATIONS, to)
            _undo(place, steps)
        case PostgresPlace():
            steps = _from(postgres.MIGRATIONS, to)
            for table in added:
                await place.run(f"DROP TABLE {table}")
        case MongoPlace():
            steps = _from(mongo.MIGRATIONS, to)
            with place.client() as client:
                for table in added:
                    client[place.database].drop_collection(table)
        case _:
            return []  # keys of Redis need no making
    known = {SqlitePlace: sqlite.VERSION, PostgresPlace: postgres.VERSION, MongoPlace: mongo.VERSION}[type(place)]
    await place.pretend_version(known - len(steps))
    return steps


def _from(migrations: tuple[str, ...], name: str) -> list[str]:
    [first] = [at for at, step in enumerate(migrations) if step.endswith(f"_{name}")]
    return list(migrations[first:])


def _undo(place: SqlitePlace, steps: list[str]) -> None:
    """Drop the tables and indexes that these steps have made."""
    scripts = files("windlass.stores.sqlite") / "migrations"
    made = [
        found
        for step in steps
        for found in re.findall(
            r"^CREATE (?:UNIQUE )?(TABLE|INDEX) (\w+)", (scripts / f"{step}.sql").read_text(), re.MULTILINE
        )
    ]
    with closing(sqlite3.connect(place.path)) as db, db:
        for kind, name in reversed(made):
            db.execute(f"DROP {kind} {name}")


async def test_a_store_without_a_catalogue_is_brought_up_to_date_beside_its_workers(store: Store, place: Place) -> None:
    steps = await step_back(place)
    [before] = await put(store)
    late = store.sibling()
    await late.open(migrate=False)
    assert await late.schema.pending() == steps
    assert await late.schema.migrate() == steps
    assert await late.schema.verify() == []
    await late.types.put([declared()])
    await late.keys.put(KEY)
    await late.audit.append([entry()], keep=timedelta(days=1))
    assert [one.declared for one in await late.types.list()] == [declared()]
    assert await late.keys.find(KEY.hash) is not None
    assert len((await late.audit.list(AuditFilter(), 10)).entries) == 1
    # A worker of the version before goes on: it asks for none of the new.
    job = await take(store)
    assert job.id == before
    assert await settle(store, job) is Verdict.APPLIED
    assert await told(late, before) == [Happened.ENQUEUED, Happened.CLAIMED, Happened.SUCCEEDED]
    await put(store, draft())
    await late.close()


async def test_a_store_without_requests_is_brought_up_to_date_beside_its_workers(store: Store, place: Place) -> None:
    steps = await step_back(place, "requests", ("windlass_requests",))
    [before] = await put(store)
    late = store.sibling()
    await late.open(migrate=False)
    assert await late.schema.pending() == steps
    assert await late.schema.migrate() == steps
    assert await late.schema.verify() == []
    assert await late.requests.begin(NEW) == Begun(NEW.first_id)
    job = await take(store)
    assert job.id == before
    assert await settle(store, job) is Verdict.APPLIED
    await late.close()
