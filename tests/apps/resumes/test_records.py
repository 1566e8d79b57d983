"""Records in each database: one for each file of a user, written by one holder alone, seen by their user alone."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from windlass import SchemaMismatch, SettingsError, StoreUnavailable
from windlass.apps.resumes.records.places import beside, records_at
from windlass.apps.resumes.records.record import NAME, Holder, Overtaken, Record, Records, now
from windlass.apps.resumes.records.sql import SqlRecords
from windlass.apps.resumes.records.sqlite import SqliteLane
from windlass.apps.resumes.records.tables import MIGRATIONS

FUTURE = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)


def record(user: str = "ann", number: int = 0, **more: Any) -> Record:
    at = now() + dt.timedelta(milliseconds=number)
    return Record(
        id=str(uuid.uuid4()),
        user_id=user,
        original_file_name=f"résumé {number}.pdf",
        file_size=10 + number,
        file_hash=f"{number:064x}",
        media_type="application/pdf",
        created_at=at,
        updated_at=at,
        **more,
    )


async def test_a_file_of_a_user_has_one_record(records: Records) -> None:
    first = record()
    assert await records.add(first) == first
    assert await records.add(record()) == first
    other = record("bob")
    assert await records.add(other) == other
    assert await records.get(first.id) == first


async def test_the_same_file_sent_many_times_at_once_has_one_record(records: Records) -> None:
    found = await asyncio.gather(*(records.add(record()) for _ in range(8)))
    assert len({one.id for one in found}) == 1


async def test_a_user_sees_their_own_records_alone(records: Records) -> None:
    mine, theirs = await records.add(record("ann")), await records.add(record("bob"))
    assert await records.get(theirs.id, "ann") is None
    assert await records.get(mine.id, "ann") == mine
    assert [one.id for one in await records.find("ann", 10)] == [mine.id]
    assert {one.id for one in await records.find(None, 10)} == {mine.id, theirs.id}
    assert await records.find("ann", 10, after=theirs.id) == []


async def test_pages_go_from_the_newest_on(records: Records) -> None:
    made = [await records.add(record(number=number)) for number in range(5)]
    ids = [one.id for one in reversed(made)]
    first = await records.find("ann", 2)
    second = await records.find("ann", 2, after=first[-1].id)
    third = await records.find("ann", 2, after=second[-1].id)
    assert [one.id for one in (*first, *second, *third)] == ids


async def test_contents_are_kept_as_they_are_and_lists_leave_them_out(records: Records) -> None:
    made, holder = await records.add(record()), Holder("j1", 1)
    await records.begin(made.id, holder)
    found: dict[str, Any] = {"basics": {"name": "Zoë 🎉 \u2028", "n": 2**40, "x": 0.5}, "work": [], "a": None}
    at = now()
    told = {"extracted_text": "a\fb\n" * 1000, "structured_content": found, "business_metadata": {"k": [1, {"z": "y"}]}}
    await records.write(made.id, holder, **told, draft={"half": True}, completed_at=at)
    whole = await records.get(made.id)
    assert whole is not None
    assert {name: getattr(whole, name) for name in told} == told
    assert (whole.draft, whole.completed_at, whole.updated_at >= made.updated_at) == ({"half": True}, at, True)
    [listed] = await records.find("ann", 1)
    assert (listed.extracted_text, listed.structured_content, listed.draft) == (None, None, None)
    assert listed.business_metadata == {"k": [1, {"z": "y"}]}
    await records.write(made.id, holder, draft=None)
    again = await records.get(made.id)
    assert again is not None
    assert again.draft is None


async def test_only_the_newest_attempt_writes(records: Records) -> None:
    made = await records.add(record())
    await records.begin(made.id, Holder("j1", 1))
    await records.write(made.id, Holder("j1", 1), error="one")
    await records.begin(made.id, Holder("j1", 2))
    with pytest.raises(Overtaken):
        await records.write(made.id, Holder("j1", 1), error="late")
    with pytest.raises(Overtaken):
        await records.begin(made.id, Holder("j1", 1))
    with pytest.raises(Overtaken):
        await records.begin(made.id, Holder("j2", 9))
    with pytest.raises(Overtaken):
        await records.write(made.id, Holder(), error="at once")
    found = await records.begin(made.id, Holder("j1", 3))
    assert found.error == "one"


async def test_a_job_takes_what_no_job_has_and_is_freed_of_what_is_begun_anew(records: Records) -> None:
    done, open_ = await records.add(record(number=1)), await records.add(record(number=2))
    ids = [done.id, open_.id]
    await records.attach(ids, "j1")
    await records.attach(ids, "j2")
    assert {one.id for one in await records.of_job("j1")} == set(ids)
    await records.begin(done.id, Holder("j1", 5))
    await records.write(done.id, Holder("j1", 5), completed_at=now())
    await records.begin(open_.id, Holder("j1", 5))
    await records.write(open_.id, Holder("j1", 5), error="broken")
    await records.release(ids)
    freed = await records.get(open_.id)
    assert freed is not None
    assert (freed.job_id, freed.error) == (None, None)
    assert [one.id for one in await records.of_job("j1")] == [done.id]
    with pytest.raises(Overtaken):
        await records.write(open_.id, Holder("j1", 5), error="late")
    await records.begin(open_.id, Holder("j2", 1))
    await records.hand_over(ids, "j2", "j3")
    assert [one.id for one in await records.of_job("j3")] == [open_.id]
    assert [one.id for one in await records.of_job("j1")] == [done.id]


async def test_what_nobody_processes_is_found(records: Records) -> None:
    left, taken, done = [await records.add(record(number=number)) for number in range(3)]
    await records.attach([taken.id], "j1")
    await records.begin(done.id, Holder())
    await records.write(done.id, Holder(), completed_at=now())
    assert [one.id for one in await records.left(FUTURE, 10)] == [left.id]
    assert await records.left(now() - dt.timedelta(minutes=1), 10) == []


async def test_uses_are_counted_and_a_record_is_there_until_it_is_removed(records: Records) -> None:
    made = await records.add(record())
    await asyncio.gather(*(records.used(made.id) for _ in range(5)))
    found = await records.get(made.id)
    assert found is not None
    assert found.usage_count == 5
    assert found.last_used_at is not None
    assert await records.remove([made.id, "nothing"]) == 1
    assert await records.get(made.id) is None
    await records.wipe()
    with pytest.raises(Overtaken):
        await records.begin(made.id, Holder())


async def test_several_prepare_at_once_and_again(url: str) -> None:
    some = [records_at(url) for _ in range(4)]
    await asyncio.gather(*(one.prepare() for one in some))
    made = await some[0].add(record())
    await some[1].prepare()
    assert await some[2].get(made.id) == made
    for one in some:
        await one.close()


async def test_a_database_of_a_newer_windlass_is_refused(url: str, records: Records) -> None:
    await pretend(url, records, 99)
    with pytest.raises(SchemaMismatch, match=r"version 99.*upgrade windlass"):
        await records.prepare()
    await pretend(url, records, 1)
    await records.prepare()


async def pretend(url: str, records: Records, version: int) -> None:
    if isinstance(records, SqlRecords):
        update = sa.text(f"UPDATE {NAME}_schema SET version = {version}")
        await records.lane.run(lambda one: one.execute(update))
        return
    from pymongo import AsyncMongoClient

    async with AsyncMongoClient[dict[str, Any]](url) as client:
        known = client.get_default_database()[f"{NAME}_schema"]
        await known.update_one({"_id": NAME}, {"$set": {"version": version}})


async def test_a_migration_is_applied_once_and_keeps_what_is_there(tmp_path: Path) -> None:
    applied: list[int] = []

    def second(connection: sa.Connection) -> None:
        applied.append(1)
        connection.exec_driver_sql(f"ALTER TABLE {NAME} ADD COLUMN note TEXT")

    file = str(tmp_path / "r.db")
    old = SqlRecords(SqliteLane(file))
    await old.prepare()
    made = await old.add(record())
    await old.close()
    for _ in range(2):
        new = SqlRecords(SqliteLane(file), (*MIGRATIONS, second))
        await new.prepare()
        assert await new.get(made.id) == made
        await new.close()
    assert applied == [1]


async def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def broken(connection: sa.Connection) -> None:
        connection.exec_driver_sql(f"ALTER TABLE {NAME} ADD COLUMN note TEXT")
        raise RuntimeError("it broke")

    file = str(tmp_path / "r.db")
    new = SqlRecords(SqliteLane(file), (*MIGRATIONS, broken))
    with pytest.raises(RuntimeError, match="it broke"):
        await new.prepare()
    await new.close()
    old = SqlRecords(SqliteLane(file))
    await old.prepare()
    assert await old.find(None, 1) == []
    await old.close()


async def test_what_goes_wrong_in_a_shared_transaction_is_undone_alone(tmp_path: Path) -> None:
    records = SqlRecords(SqliteLane(str(tmp_path / "r.db")))
    await records.prepare()
    good = [records.add(record(number=number)) for number in range(10)]
    bad = [records.write("nothing", Holder(), error="x") for _ in range(10)]
    ends = await asyncio.gather(*(one for pair in zip(good, bad, strict=True) for one in pair), return_exceptions=True)
    assert [type(one) for one in ends] == [Record, Overtaken] * 10
    assert len(await records.find("ann", 20)) == 10
    await records.close()


async def test_errors_quote_nothing_of_a_record(tmp_path: Path) -> None:
    records = SqlRecords(SqliteLane(str(tmp_path / "r.db")))
    await records.prepare()
    with pytest.raises(SQLAlchemyError) as caught:
        await records.add(replace(record(), original_file_name="planted", media_type=None))  # type: ignore[arg-type]  # breaks a constraint
    assert "planted" not in str(caught.value)
    await records.close()


def test_places_are_told_by_their_urls() -> None:
    assert beside("redis://localhost/0") == "sqlite:///resumes.db"
    assert beside("postgresql://h/d") == "postgresql://h/d"
    for url, told in (
        ("redis://localhost", "cannot be kept in Redis"),
        ("mysql://h/d", "expected sqlite:///file, postgresql:// or mongodb://"),
        ("mongodb://localhost", "names no database"),
    ):
        with pytest.raises(SettingsError, match=told):
            records_at(url)


async def test_a_database_that_does_not_answer_is_said_to(tmp_path: Path) -> None:
    records = records_at("postgresql://nobody:secret@127.0.0.1:9/none")
    with pytest.raises(StoreUnavailable, match="does not answer") as caught:
        await records.prepare()
    assert "secret" not in str(caught.value)
    assert "secret" not in records.address
    await records.close()
    nowhere = records_at(f"sqlite:///{tmp_path}/none/r.db")
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        await nowhere.prepare()
    await nowhere.close()
