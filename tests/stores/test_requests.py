"""Where the server does not remove records by itself, each request that begins removes a bounded number."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

from tests.contract.places import Place, PostgresPlace, SqlitePlace
from tests.contract.test_requests import MOMENT, NEW, over
from windlass.stores.contract import Store
from windlass.stores.contract.requests import PRUNED_AT_ONCE

MANY = PRUNED_AT_ONCE + 20
FILL = (
    "INSERT INTO windlass_requests (id, fingerprint, first_id, mark, held_until, expires_at)"
    " SELECT 'old' || {n}, 'f', 'i', 'm', held_until, {then} FROM windlass_requests, {series} WHERE id = 'first'"
)


async def test_a_bounded_number_of_old_records_is_removed_at_once(store: Store, place: Place) -> None:
    await store.requests.begin(replace(NEW, id="first", keep=timedelta(hours=1)))
    if not await fill(place):
        return  # Redis and MongoDB remove them by themselves
    await store.requests.begin(replace(NEW, id="second", keep=MOMENT))
    assert await count(place) == 2 + MANY - PRUNED_AT_ONCE
    await over(store)
    await store.requests.begin(replace(NEW, id="second"))
    assert await count(place) == 2, "what begins anew is not removed beneath itself"


async def fill(place: Place) -> bool:
    match place:
        case SqlitePlace():
            numbers = (
                f"(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {MANY}) SELECT n FROM s)"
            )
            with closing(sqlite3.connect(place.path)) as db, db:
                db.execute(FILL.format(n="n", then="held_until - 60000 - n", series=numbers))
        case PostgresPlace():
            then = "held_until - interval '1 minute'"
            await place.run(FILL.format(n="n", then=then, series=f"generate_series(1, {MANY}) AS n"))
        case _:
            return False
    return True


async def count(place: Place) -> int:
    asked = "SELECT count(*) FROM windlass_requests"
    if isinstance(place, SqlitePlace):
        with closing(sqlite3.connect(place.path)) as db:
            return int(db.execute(asked).fetchone()[0])
    assert isinstance(place, PostgresPlace)
    return int((await place.run(asked))[0][0])
