"""Row-level security as the page has it: a role that reads the tables itself sees the rows of one user."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.contract.places import PostgresPlace
from windlass import Windlass

ROOT = Path(__file__).parents[3]
[POLICY] = re.findall(
    r"```pgsql\n(.*?)```", (ROOT / "docs/stores/postgres.md").read_text(encoding="utf-8"), flags=re.DOTALL
)
OTHERS = (
    "minutes",
    "meta",
    "keys",
    "audit",
    "idempotency",
    "requests",
    "queues",
    "schedules",
    "workers",
    "types",
    "locks",
)
Row = asyncpg.Record


@dataclass
class Guarded:
    """An installation whose owner is no superuser, and a role that may read it as the page says."""

    app: Windlass
    owner: asyncpg.Connection[Row]
    reader: asyncpg.Connection[Row]

    async def sees(self, user: str | None, sql: str) -> list[tuple[Any, ...]]:
        async with self.reader.transaction():
            if user is not None:
                await self.reader.execute("SELECT set_config('windlass.user', $1, true)", user)
            return [tuple(row) for row in await self.reader.fetch(sql)]


@pytest.fixture
async def guarded(place: PostgresPlace) -> AsyncGenerator[Guarded, None]:
    owner, reader, schema = (f"{kind}{secrets.token_hex(6)}" for kind in ("owner", "reader", "jobs"))
    at = urlsplit(place.url)
    url = f"postgresql://{owner}@{at.netloc.rpartition('@')[2]}{at.path}"
    await place.run(f"CREATE ROLE {owner} LOGIN NOSUPERUSER CREATEROLE")
    await place.run(f"CREATE SCHEMA {schema} AUTHORIZATION {owner}")
    policy = POLICY.replace("shop_reader", reader).replace("jobs.windlass", f"{schema}.windlass")
    try:
        async with Windlass(f"{url}?schema={schema}") as app, connected(url, schema) as ours:
            await ours.execute(policy.replace("SCHEMA jobs", f"SCHEMA {schema}"))
            async with connected(url.replace(owner, reader), schema) as theirs:
                yield Guarded(app, ours, theirs)
        app.close()
    finally:
        await place.run(f"DROP SCHEMA {schema} CASCADE")
        for role in (reader, owner):
            await place.run(f"DROP OWNED BY {role}")
            await place.run(f"DROP ROLE {role}")


@asynccontextmanager
async def connected(url: str, schema: str) -> AsyncGenerator[asyncpg.Connection[Row], None]:
    connection: asyncpg.Connection[Row] = await asyncpg.connect(url, server_settings={"search_path": schema})
    try:
        yield connection
    finally:
        await connection.close()


async def test_a_role_sees_its_users_rows_alone_and_windlass_sees_all(guarded: Guarded) -> None:
    app = guarded.app

    @app.job(name="hello", retry=1)
    async def hello(secret: str) -> str:
        if secret == "bad":
            raise ValueError(secret)
        return f"for {secret}"

    mine = await app.enqueue("hello", {"secret": "ann's"}, user="ann")
    theirs = [await app.enqueue("hello", {"secret": secret}, user="bob") for secret in ("bob's", "bad")]
    nobodys = await app.enqueue("hello", {"secret": "nobody's"})
    await app.worker(drain=True).run()
    assert await mine.result() == "for ann's"  # windlass itself works beside it
    assert (await app.jobs.count()).n == 4
    assert await guarded.sees("ann", "SELECT id, result #>> '{}' FROM windlass_jobs") == [(mine.id, "for ann's")]
    assert {row[0] for row in await guarded.sees("bob", "SELECT id FROM windlass_jobs")} == {one.id for one in theirs}
    for nobody in (None, "", "eve", "%", "ann' OR 'a'='a"):
        assert await guarded.sees(nobody, "SELECT count(*) FROM windlass_jobs") == [(0,)]
    counts = "SELECT status, count(*) FROM windlass_jobs GROUP BY status ORDER BY status"
    assert await guarded.sees("ann", counts) == [("succeeded", 1)]
    assert await guarded.sees("bob", counts) == [("failed", 1), ("succeeded", 1)]
    [[lines]] = await guarded.sees("ann", "SELECT string_agg(history, '') FROM windlass_jobs")
    assert "enqueued" in lines
    named = f"SELECT history FROM windlass_jobs WHERE id IN ('{theirs[0].id}', '{nobodys.id}')"
    assert await guarded.sees("ann", named) == []
    # A condition of the reader's own is not asked about rows that it may not see: an error would tell of them.
    assert await guarded.sees("ann", "SELECT id FROM windlass_jobs WHERE (payload ->> 'secret') = 'bad'") == []
    for sql in ("DELETE FROM windlass_jobs", "UPDATE windlass_jobs SET user_id = 'ann'"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await guarded.sees("ann", sql)
    for table in OTHERS:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await guarded.sees("ann", f"SELECT 1 FROM windlass_{table}")


async def test_without_the_policy_the_role_would_see_everybody(guarded: Guarded) -> None:
    await guarded.app.enqueue("hello", {"secret": "bob's"}, user="bob")
    await guarded.owner.execute("ALTER TABLE windlass_jobs DISABLE ROW LEVEL SECURITY")
    assert len(await guarded.sees("ann", "SELECT id FROM windlass_jobs")) == 1
