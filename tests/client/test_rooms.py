"""`app.types`, `app.keys` and `app.audit`: values in, values out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.apps import app_at
from tests.support.until import until
from windlass import KeyKind, PayloadInvalid, Retention, Scope, SettingsError, Windlass

pytestmark = pytest.mark.timeout(30)


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Windlass]:
    async with app_at(tmp_path / "jobs.db", version="1.4") as app:
        yield app
    app.close()


async def test_what_workers_handle_can_be_read(app: Windlass) -> None:
    @app.job(queue="mail")
    async def send(to: str) -> str:
        return to

    assert await app.types.list() == []
    async with app.worker():
        [found] = await app.types.list()
    declared = found.declared
    assert (declared.type, declared.queue, declared.version) == ("send", "mail", "1.4")
    assert declared.fingerprint == send.declaration.described().fingerprint
    assert list(await app.types.get("send")) == [found]
    assert await app.types.get("unheard") == []
    with pytest.raises(SettingsError):
        await app.types.get("")


async def test_the_secret_of_a_key_is_given_once_and_found_by(app: Windlass, tmp_path: Path) -> None:
    made = await app.keys.create("import", owner="ann", scopes=["enqueue", Scope.READ])
    assert made.secret.startswith(f"wl_{made.key.id}_")
    assert len(made.secret) > 50
    assert await app.keys.find(made.secret) == made.key
    assert (made.key.kind, made.key.scopes, made.key.expires_at) == (
        KeyKind.KEY,
        frozenset({Scope.ENQUEUE, Scope.READ}),
        None,
    )
    random = made.secret.rpartition("_")[2]
    assert random not in repr(made)
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert made.key.id.encode() in files
    assert random.encode() not in files, "it is nowhere in the store"


async def test_what_is_no_secret_finds_nothing(app: Windlass) -> None:
    made = await app.keys.create("import", owner="ann", scopes=[])
    _, id_, random = made.secret.split("_", 2)
    for wrong in ("", "wl", "wl__", f"wl_{id_}", f"wl_{id_}_", random, f"xx_{id_}_{random}", f"wl_other_{random}"):
        assert await app.keys.find(wrong) is None
    for wrong in (
        made.secret[:-1],
        made.secret + "a",
        made.secret.upper(),
        made.secret + "\ud800",
        "wl_" + "_" * 10**6,
    ):
        assert await app.keys.find(wrong) is None


async def test_a_session_lasts_a_while_and_a_revoked_key_lets_nobody_in(app: Windlass) -> None:
    session = await app.keys.create("Firefox", owner="bob", scopes=["admin"], lasts=60, kind="session")
    assert session.key.kind is KeyKind.SESSION
    assert session.key.expires_at == session.key.created_at + timedelta(seconds=60)
    await app.keys.touch(session.key.id)
    found = await app.keys.find(session.secret)
    assert found is not None
    assert found.used_at is not None
    assert list(await app.keys.revoke(session.key.id, "unheard")) == [session.key.id]
    assert await app.keys.find(session.secret) is None
    assert [one.revoked_at is not None for one in await app.keys.list()] == [True]


async def test_two_keys_have_nothing_in_common(app: Windlass) -> None:
    first, second = [await app.keys.create("a", owner="a", scopes=[]) for _ in range(2)]
    assert first.key.id != second.key.id
    assert first.secret.rpartition("_")[2] != second.secret.rpartition("_")[2]


async def test_keys_that_cannot_be_are_refused(app: Windlass) -> None:
    with pytest.raises(SettingsError, match="expected one of enqueue, read, operate, admin"):
        await app.keys.create("a", owner="a", scopes=["everything"])
    with pytest.raises(SettingsError, match="expected several"):
        await app.keys.create("a", owner="a", scopes="read")
    with pytest.raises(SettingsError, match="expected one of key, session"):
        await app.keys.create("a", owner="a", scopes=[], kind="lock")
    with pytest.raises(SettingsError):
        await app.keys.create("a\0b", owner="a", scopes=[])
    assert await app.keys.list() == []


async def test_what_was_done_is_written_down_and_listed(app: Windlass) -> None:
    first = await app.audit.record("ann", "queue.pause", "queue:mail", origin="10.0.0.7", details={"why": "tax day"})
    second = await app.audit.record("bob", "job.cancel", "job:1")
    page = await app.audit.list()
    assert {one.id for one in page.entries} == {first, second}
    [paused] = (await app.audit.list(actor="ann", action="queue.pause", object_="queue:mail")).entries
    assert (paused.origin, paused.details_json) == ("10.0.0.7", '{"why":"tax day"}')
    assert paused.at is not None
    assert (await app.audit.list(until=paused.at)).entries == ()
    one = await app.audit.list(limit=1)
    assert one.next is not None
    assert {entry.id for entry in (await app.audit.list(after=one.next)).entries} == {first, second} - {
        one.entries[0].id
    }


async def test_entries_that_cannot_be_are_refused(app: Windlass) -> None:
    with pytest.raises(PayloadInvalid, match="16,384"):
        await app.audit.record("ann", "x", "y", details={"text": "a" * 17_000})
    with pytest.raises(SettingsError):
        await app.audit.record("", "x", "y")
    with pytest.raises(SettingsError, match="zone"):
        await app.audit.list(since=datetime.now(UTC).replace(tzinfo=None))
    with pytest.raises(SettingsError, match="1,000"):
        await app.audit.list(limit=1001)
    with pytest.raises(SettingsError):
        await app.audit.list(limit=0)


async def test_the_audit_list_is_kept_as_long_as_retention_says(tmp_path: Path) -> None:
    async with app_at(tmp_path / "jobs.db", retention=Retention(audit=timedelta(milliseconds=1))) as app:
        old = await app.audit.record("ann", "x", "y")

        async def gone() -> bool:
            await app.audit.record("bob", "x", "y")
            return old not in [one.id for one in (await app.audit.list()).entries]

        await until(gone, "the old entry to be removed")
    app.close()


def test_code_without_a_loop_asks_the_same(tmp_path: Path) -> None:
    app = app_at(tmp_path / "jobs.db")
    made = app.run_sync(app.keys.create("import", owner="ann", scopes=["read"]))
    assert app.run_sync(app.keys.find(made.secret)) == made.key
    app.run_sync(app.audit.record("ann", "key.create", f"key:{made.key.id}"))
    assert len(app.run_sync(app.audit.list()).entries) == 1
    assert app.run_sync(app.types.list()) == []
    app.close()
