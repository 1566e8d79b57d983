"""What every database does with rows: counts are true, also after a crash, and an overtaken attempt writes nothing."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.apps.imports.conftest import Database
from windlass import SettingsError
from windlass.apps.imports.handler import ImportHandler
from windlass.apps.imports.shipped import AccountsPayable, BudgetForecast, CustomerRow, Customers
from windlass.apps.imports.targets.target import Batch, Counts, Overtaken, Refused, Run, Target

DAY = dt.date(2026, 2, 3)


def customer(n: int, name: str = "Ann") -> tuple[Any, ...]:
    return (f"c{n}@example.org", name, None, None)


def batch(rows: list[tuple[Any, ...]], last: int, *, refused: list[Refused] | None = None, repeated: int = 0) -> Batch:
    bad = refused or []
    first = last - len(rows) - len(bad) + 1
    numbers = list(range(first, first + len(rows)))
    return Batch(rows=rows, numbers=numbers, repeats=[last] * repeated, refused=bad, last_row=last)


def bad(row: int) -> Refused:
    return Refused(row=row, cells=["x", 1.5, {"d": "2026-01-01"}], errors=[{"row": row, "reason": "email: no"}])


def run(job: str = "job", token: int = 1, handler: ImportHandler | None = None, **more: bool) -> Run:
    return Run(job=job, token=token, handler=handler or Customers(), **more)


@pytest.fixture
async def target(database: Database) -> Target:
    made = database.target()
    for handler in (Customers(), AccountsPayable(), BudgetForecast()):
        await made.prepare(handler)
    return made


async def test_rows_are_inserted_updated_or_left_as_they_are_and_counted_so(target: Target, database: Database) -> None:
    mine = run()
    counts = await target.write(mine, batch([customer(1), customer(2), customer(3)], 4), await target.begin(mine))
    assert counts == Counts(last_row=4, total=3, inserted=3)
    theirs = run("another")
    counts = await target.write(
        theirs, batch([customer(1), customer(2, "Bob"), customer(4)], 4), await target.begin(theirs)
    )
    assert counts == Counts(last_row=4, total=3, inserted=1, updated=2, unchanged=1)
    assert [row["name"] for row in await database.rows(Customers())] == ["Ann", "Bob", "Ann", "Ann"]


async def test_every_kind_of_value_is_kept_exactly(target: Target, database: Database) -> None:
    payable = AccountsPayable()
    rows = [("I1", "V", Decimal("12345678901.25"), DAY, None), ("I2", "Ünï \U0001f600", Decimal("-0.1"), DAY, "open")]
    mine = run(handler=payable)
    await target.write(mine, batch(rows, 3), await target.begin(mine))
    found = await database.rows(payable)
    assert [row["amount"] for row in found] == [12345678901.25, -0.1]
    assert [row["dueDate"] for row in found] == ["2026-02-03", "2026-02-03"]
    assert [(row["vendor"], row["status"]) for row in found] == [("V", None), ("Ünï \U0001f600", "open")]


async def test_a_key_of_several_fields_tells_rows_apart(target: Target, database: Database) -> None:
    budget, mine = BudgetForecast(), run(handler=BudgetForecast())
    rows = [
        (2026, "Travel", "Sales", Decimal(1)),
        (2026, "Travel", "IT", Decimal(2)),
        (2027, "Travel", "IT", Decimal(3)),
    ]
    first = await target.write(mine, batch(rows, 4), await target.begin(mine))
    again = await target.write(mine, batch([(2026, "Travel", "IT", Decimal(9))], 5), first)
    assert (again.inserted, again.updated) == (3, 1)
    assert [row["amount"] for row in await database.rows(budget)] == [9, 1, 3]


async def test_a_row_that_comes_again_in_a_batch_counts_as_an_update(target: Target) -> None:
    mine = run()
    counts = await target.write(mine, batch([customer(1)], 3, repeated=1), await target.begin(mine))
    assert (counts.total, counts.inserted, counts.updated) == (2, 1, 1)


async def test_a_new_attempt_goes_on_where_the_last_one_was(target: Target, database: Database) -> None:
    mine = run()
    counts = await target.write(mine, batch([customer(1), customer(2)], 3, refused=[]), await target.begin(mine))
    again = database.target()
    assert await again.begin(replace(mine, token=2)) == counts


async def test_an_overtaken_attempt_writes_nothing(target: Target, database: Database) -> None:
    mine = run()
    before = await target.begin(mine)
    again = database.target()
    newer = replace(mine, token=2)
    assert await again.begin(newer) == before
    with pytest.raises(Overtaken):
        await target.write(mine, batch([customer(1, "late")], 2), before)
    with pytest.raises(Overtaken):
        await target.begin(mine)
    await again.write(newer, batch([customer(1, "right")], 2), before)
    assert [row["name"] for row in await database.rows(Customers())] == ["right"]


async def test_a_batch_that_was_written_is_not_written_again_over_what_came_later(
    target: Target, database: Database
) -> None:
    mine = run()
    before = await target.begin(mine)
    counts = await target.write(mine, batch([customer(1, "old")], 2), before)
    await target.write(mine, batch([customer(1, "new")], 3), counts)
    with pytest.raises(Overtaken):
        await target.write(mine, batch([customer(1, "old")], 2), before)
    assert [row["name"] for row in await database.rows(Customers())] == ["new"]


async def test_refused_rows_are_kept_in_order_and_forgotten_with_their_import(target: Target) -> None:
    mine = run()
    counts = await target.write(mine, batch([], 3, refused=[bad(2), bad(3)]), await target.begin(mine))
    counts = await target.write(mine, batch([], 4, refused=[bad(4)]), counts)
    assert (counts.total, counts.failed, counts.errors) == (3, 3, 3)
    assert [one["row"] for one in await target.refused("job", 0, 2)] == [2, 3]
    assert await target.refused("job", 3, 10) == [bad(4)]
    assert await target.refused("another", 0, 10) == []
    assert await target.known(10) == ["job"]
    await target.forget(["job"], [Customers()])
    assert await target.refused("job", 0, 10) == []
    assert await target.known(10) == []


async def test_a_dry_run_counts_and_writes_no_row(target: Target, database: Database) -> None:
    mine = run()
    await target.write(mine, batch([customer(1)], 2), await target.begin(mine))
    trial = run("trial", dry=True)
    counts = await target.write(
        trial, batch([customer(1, "Bob"), customer(2)], 4, refused=[bad(4)]), await target.begin(trial)
    )
    assert counts == Counts(last_row=4, total=3, inserted=1, updated=1, failed=1, errors=1)
    assert [row["name"] for row in await database.rows(Customers())] == ["Ann"]


async def test_all_or_nothing_writes_all_at_the_end_or_nothing(target: Target, database: Database) -> None:
    if not target.atomic:
        assert database.kind == "mongo"
        return
    old = run("old")
    await target.write(old, batch([customer(1), customer(2)], 3), await target.begin(old))
    good = run("good", atomic=True)
    counts = await target.write(good, batch([customer(1, "Bob"), customer(3)], 3), await target.begin(good))
    counts = await target.write(good, batch([customer(2), customer(3, "Eve")], 5), counts)
    assert [row["name"] for row in await database.rows(Customers())] == ["Ann", "Ann"]
    counts = await target.finish(good, counts)
    assert (counts.total, counts.inserted, counts.updated, counts.unchanged) == (4, 1, 3, 1)
    assert [row["name"] for row in await database.rows(Customers())] == ["Bob", "Ann", "Eve"]
    assert await target.finish(good, counts) == counts  # asked again after a crash: once

    wrong = run("wrong", atomic=True)
    counts = await target.write(wrong, batch([customer(9)], 3, refused=[bad(3)]), await target.begin(wrong))
    counts = await target.finish(wrong, counts)
    assert (counts.total, counts.inserted, counts.failed) == (2, 0, 1)
    assert len(await database.rows(Customers())) == 3


async def test_what_is_prepared_twice_is_there_once(target: Target, database: Database) -> None:
    await target.prepare(Customers())
    await database.target().prepare(Customers())


async def test_a_table_of_ones_own_that_does_not_fit_is_named(database: Database) -> None:
    class Wide(CustomerRow):
        extra: str | None = None

    class Other(ImportHandler):
        import_type = "wide"
        table = "customers"
        row = Wide
        key = ("name",)

    target = database.target()
    await target.prepare(Customers())
    if database.kind == "mongo":
        mine = run()
        await target.write(mine, batch([customer(1), customer(2)], 3), await target.begin(mine))
        with pytest.raises(SettingsError, match="several documents with the same name"):
            await target.prepare(Other())
        return
    with pytest.raises(SettingsError, match="the table customers has no column extra"):
        await target.prepare(Other())


async def test_what_was_set_aside_is_forgotten_with_its_import(target: Target, database: Database) -> None:
    if not target.atomic:
        return
    mine = run(atomic=True)
    before = await target.begin(mine)
    counts = await target.write(mine, batch([customer(1)], 2), before)
    await target.forget(["job"], [Customers(), BudgetForecast()])
    assert await target.begin(mine) == before
    counts = await target.write(mine, batch([customer(2)], 2), before)
    await target.finish(mine, counts)
    assert [row["email"] for row in await database.rows(Customers())] == ["c2@example.org"]


async def test_nothing_is_known_of_a_database_that_nothing_was_imported_into(database: Database) -> None:
    target = database.target()
    assert await target.known(10) == []


async def test_an_attempt_that_was_stopped_and_goes_on_late_changes_no_count(database: Database) -> None:
    """MongoDB has no transaction around a batch: what the late one inserts is still the same import's."""
    if database.kind != "mongo":
        return
    early, late = database.target(), database.target()
    await early.prepare(Customers())
    mine = run()
    before = await early.begin(mine)
    newer = replace(mine, token=2)
    assert await late.begin(newer) == before
    rows = batch([customer(1), customer(2)], 3)
    await early._upsert(mine, rows)  # type: ignore[attr-defined]  # stopped behind its look at the ledger, until now
    counts = await late.write(newer, rows, before)
    assert (counts.inserted, counts.updated) == (2, 0)
