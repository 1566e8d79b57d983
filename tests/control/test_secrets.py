"""Secrets on every store: a handler is given them, and nobody else, whatever is looked at."""

from __future__ import annotations

import io
import json
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import pytest
from pydantic import BaseModel

from tests.contract.places import MongoPlace, Place, PostgresPlace, RedisPlace, SqlitePlace
from tests.support.apps import Heard, until_status, working
from windlass import (
    Batched,
    Ctx,
    Handler,
    HandlerError,
    JobFailed,
    Outgoing,
    PayloadInvalid,
    Secret,
    SecretUnreadable,
    SettingsError,
    Status,
    Windlass,
    every,
)
from windlass.client.vault import id_of, new_key
from windlass.observability.forms import write_lines
from windlass.settings import read_keys

CANARY = "canary-5f0c/\"'ü"
KEY, NEWER = new_key(), new_key()


class Row(BaseModel):
    token: Secret[str]


def made(place: Place, *keys: str) -> Windlass:
    app = Windlass(store=place.store(), secret_keys=keys)

    @app.job(name="send", idempotent=False, retry=1)
    async def send(token: Secret[str], to: str = "ann") -> str:
        return f"{to} {len(token.reveal())}"

    @app.job(name="fail", retry=1)
    async def fail(token: Secret[str]) -> None:
        try:
            raise KeyError(token.reveal())
        except KeyError:
            raise ValueError(f"refused: {token.reveal()!r} with {token} at postgresql://ann:dsn-canary@db/x") from None

    @app.job(name="login")
    async def login(user: str) -> Secret[str]:
        return Secret(f"{CANARY} of {user}")

    @app.job(name="use")
    async def use(token: Secret[str]) -> int:
        return len(token.reveal())

    return app


async def stored(place: Place) -> str:
    """All that the store holds, as text."""
    match place:
        case SqlitePlace():
            with closing(sqlite3.connect(place.path)) as connection:
                return "\n".join(connection.iterdump())
        case MongoPlace():
            with place.client() as client:
                database = client[place.database]
                return "\n".join(str(one) for name in database.list_collection_names() for one in database[name].find())
        case PostgresPlace():
            tables = await place.run("SELECT tablename FROM pg_tables WHERE schemaname = $1", place.schema)
            rows = [await place.run(f'SELECT t::text FROM "{table[0]}" t') for table in tables]
            return "\n".join(row[0] for found in rows for row in found)
        case RedisPlace():
            with place.client() as client:
                return "\n".join(
                    str(_read(client, key)) for key in client.scan_iter(f"*{place.namespace}*", count=1000)
                )
        case _:
            raise AssertionError(f"cannot look into {place}")


def _read(client: Any, key: bytes) -> object:
    kind = client.type(key).decode()
    match kind:
        case "string":
            return client.get(key)
        case "hash":
            return client.hgetall(key)
        case "list":
            return client.lrange(key, 0, -1)
        case "set":
            return client.smembers(key)
        case "zset":
            return client.zrange(key, 0, -1)
        case "stream":
            return client.xrange(key)
        case _:
            raise AssertionError(f"{key!r} is a {kind}")


def told(*texts: object) -> None:
    """None of these says the secret, as it is or escaped."""
    for text in map(str, texts):
        for word in ("canary-5f0c", "dsn-canary"):
            assert word not in text, text


async def test_it_is_found_nowhere_but_in_its_handler(place: Place) -> None:
    lines = io.StringIO()
    logger = logging.getLogger("windlass")
    before = (list(logger.handlers), logger.level, logger.propagate)
    app = made(place, KEY)
    app.listen(write_lines(lines, "json", logging.DEBUG))
    heard = Heard(app)
    try:
        async with app:
            sent = await app.enqueue("send", {"token": CANARY})
            broken = await app.enqueue("fail", {"token": CANARY})
            token = await app.enqueue("login", {"user": "ann"})
            async with working(app):
                assert await sent.result(10) == f"ann {len(CANARY)}"
                assert (await token.result(10)).reveal() == f"{CANARY} of ann"
                await until_status(broken, Status.FAILED)
            jobs = [await handle.job() for handle in (sent, broken, token)]
            assert [job.payload.get("token") for job in jobs] == ["***", "***", None]
            assert jobs[2].result == "***"
            assert "refused: '***' with *** at postgresql://***@db/x" in str(jobs[1].error)
            told(jobs, heard.events, await stored(place), lines.getvalue(), await app.dead_letters.groups())
            told(*[await handle.history() for handle in (sent, broken, token)], await app.jobs.explain(broken.id))
            with pytest.raises(JobFailed) as failed:
                await broken.result(1)
            told(failed.value)
            assert '"event": "job.failed"' in lines.getvalue()
            assert sent.id in await stored(place)
    finally:
        logger.handlers[:], logger.propagate = before[0], before[2]
        logger.setLevel(before[1])


async def test_without_a_key_nothing_is_stored(place: Place) -> None:
    app = made(place)
    async with app:
        for call in (
            lambda: app.enqueue("send", {"token": CANARY}),
            lambda: app.schedules.put("s", "send", every(60), {"token": CANARY}),
        ):
            with pytest.raises(SettingsError, match="WINDLASS_SECRET_KEYS") as refused:
                await call()
            told(refused.value)
        told(await stored(place))


async def test_a_worker_without_the_key_parks_the_job_and_one_with_it_runs_it(place: Place) -> None:
    with_key, without, other = made(place, KEY), made(place), made(place, NEWER)
    async with with_key, without, other:
        handles = [await with_key.enqueue("send", {"token": CANARY}), await with_key.enqueue("login", {"user": "bob"})]
        async with working(without):
            for handle in handles:
                job = await until_status(handle, Status.BLOCKED)
                assert (job.blocked_by, job.attempts) == (f"payload:{job.type}", 0)
        [check] = [check for check in await with_key.health.check() if check.name == "payloads"]
        assert "send: 1" in check.found
        explanation = await with_key.jobs.explain(handles[0].id)
        assert "WINDLASS_SECRET_KEYS" in explanation.text
        async with working(other):
            assert (await handles[1].wait(10)).status is Status.SUCCEEDED
            with pytest.raises(SecretUnreadable):
                await handles[1].result(10)
        assert (await handles[0].job()).status is Status.BLOCKED
        async with working(with_key):
            assert await handles[0].result(10) == f"ann {len(CANARY)}"


async def test_keys_rotate_while_jobs_wait(place: Place) -> None:
    old, both = made(place, KEY), made(place, NEWER, KEY)
    async with old, both:
        first = await old.enqueue("send", {"token": CANARY})
        second = await both.enqueue("send", {"token": "newer"})
        ids = [id_of(key) for key in read_keys(f"{KEY} {NEWER}")]
        use = await both.secrets.in_use()
        assert (use.jobs, use.schedules, use.complete) == ({ids[0]: 1, ids[1]: 1}, {}, True)
        assert not (await both.secrets.in_use(most=1)).complete
        async with working(both):
            assert [await first.result(10), await second.result(10)] == [f"ann {len(CANARY)}", "ann 5"]
        assert (await both.secrets.in_use()).jobs == {}


async def test_a_secret_cannot_be_moved_to_another_job(place: Place) -> None:
    app = made(place, KEY)
    async with app:
        sent = await app.enqueue("send", {"token": CANARY})
        sealed = json.loads((await sent.job()).payload_json)["token"]
        bare = Windlass(store=place.store())  # knows no type, and so takes what it is given
        async with bare:
            moved = await bare.enqueue("use", {"token": sealed})
            async with working(app):
                job = await until_status(moved, Status.BLOCKED)
        assert "not what was sealed for this type and place" in (await app.jobs.explain(job.id)).text


async def test_enqueued_by_name_it_is_sealed_by_what_was_published(place: Place) -> None:
    app, keyed, keyless = (
        made(place, KEY),
        Windlass(store=place.store(), secret_keys=[KEY]),
        Windlass(store=place.store()),
    )
    async with app, keyed, keyless, working(app):
        handle = await keyed.enqueue("send", {"token": CANARY})
        assert await handle.result(10) == f"ann {len(CANARY)}"
        token = await keyed.enqueue("login", {"user": "ann"})
        assert (await token.result(10)).reveal() == f"{CANARY} of ann"
        for refused_of, error in ((keyless, SettingsError), (keyed, PayloadInvalid)):
            with pytest.raises(error) as refused:
                await refused_of.enqueue("send", {"token": CANARY if refused_of is keyless else "***"})
            told(refused.value)
        with pytest.raises(PayloadInvalid) as refused:
            await keyed.enqueue("send", {"token": [CANARY], "to": CANARY.split()})
        told(refused.value, await stored(place))


async def test_idempotency_finds_the_same_secret_and_tells_others_apart(place: Place) -> None:
    app = Windlass(store=place.store(), secret_keys=[KEY])
    rotated = Windlass(store=place.store(), secret_keys=[NEWER, KEY])
    for one in (app, rotated):

        @one.job(name="pay", idempotent=True)
        async def pay(pin: Secret[str], to: str) -> None: ...

    async with app, rotated:
        first = await app.enqueue("pay", {"pin": "1234", "to": "ann"})
        again = await rotated.enqueue("pay", {"to": "ann", "pin": "1234"})
        other = await app.enqueue("pay", {"pin": "1235", "to": "ann"})
        assert (again.id, again.created, other.created) == (first.id, False, True)


async def test_results_are_handed_on_sealed(place: Place) -> None:
    app = made(place, KEY)
    async with app, working(app):
        login, use = app.registry.get("login"), app.registry.get("use")
        assert login.codec.holds_secrets is False
        assert use.codec.holds_secrets
        flow = _job(app, "login").bind("ann").then(_job(app, "use"))
        handle = await flow.enqueue()
        assert await handle.result(10) == len(f"{CANARY} of ann")
        told(await stored(place))


def _job(app: Windlass, name: str) -> Any:
    from windlass import JobFunction

    declaration = app.registry.get(name)
    return JobFunction[Any, Any](app.client, declaration, declaration.options)


async def test_replays_keep_and_change_secrets(place: Place) -> None:
    app = made(place, KEY)
    async with app, working(app):
        sent = await app.enqueue("send", {"token": CANARY})
        await sent.result(10)
        assert await (await app.jobs.replay(sent.id)).result(10) == f"ann {len(CANARY)}"
        edited = await app.jobs.replay(sent.id, edit={"to": "bob"})
        assert await edited.result(10) == f"bob {len(CANARY)}"
        as_shown = {**(await sent.job()).payload, "to": "cid"}
        kept = await app.jobs.replay(sent.id, payload=as_shown)
        assert await kept.result(10) == f"cid {len(CANARY)}"
        other = await app.jobs.replay(sent.id, edit={"token": "four"})
        assert await other.result(10) == "ann 4"
        bare = Windlass(store=place.store(), secret_keys=[KEY])
        async with bare:
            with pytest.raises(PayloadInvalid, match="edit it where its handler is"):
                await bare.jobs.replay(sent.id, edit={"to": "eve"})
            assert await (await bare.jobs.replay(edited.id)).result(10) == f"bob {len(CANARY)}"
        told(await stored(place))


async def test_schedules_batches_and_class_handlers_take_secrets(place: Place) -> None:
    app = Windlass(store=place.store(), secret_keys=[KEY])
    seen: list[str] = []

    class Sync(Handler[Row, None], name="sync"):
        async def perform(self, data: Row) -> None:
            seen.append(f"sync {data.token.reveal()}")

    @app.job(name="many", batch=10)
    async def many(jobs: list[Batched[Row, None]]) -> None:
        seen.extend(f"many {job.data.token.reveal()}" for job in jobs)

    @app.job(name="tick")
    async def tick(ctx: Ctx, token: Secret[str]) -> None:
        seen.append(f"tick {token.reveal()} {ctx.job.payload}")

    sync = app.add(Sync)
    async with app, working(app):
        await app.schedules.put("s", tick.bind(Secret(CANARY)), every(3600))
        handles: list[Any] = [
            await sync.enqueue(Row(token=Secret(CANARY))),
            await many.enqueue(Row(token=Secret(CANARY))),
            await app.schedules.run_now("s"),
        ]
        for handle in handles:
            await handle.result(10)
        assert sorted(seen) == [f"many {CANARY}", f"sync {CANARY}", f"tick {CANARY} {{'token': '***'}}"]
        assert list((await app.secrets.in_use()).schedules.values()) == [1]
        told(await stored(place))


async def test_layers_see_no_secret(place: Place) -> None:
    app = made(place, KEY)
    payloads: list[Any] = []

    @app.around_enqueue
    async def look(job: Outgoing) -> AsyncIterator[None]:
        payloads.append(job.payload)
        yield

    async with app:
        await app.enqueue("send", {"token": CANARY})
    assert payloads == [{"token": "***"}]


async def test_a_handler_is_called_directly_without_a_key(place: Place) -> None:
    app = Windlass(store=place.store())

    @app.job
    async def send(ctx: Ctx, token: Secret[str]) -> str:
        return f"{token.reveal()} {ctx.job.payload}"

    assert await send.call(Secret(CANARY)) == f"{CANARY} {{'token': '***'}}"
    with pytest.raises(HandlerError) as refused:
        await app.enqueue(send, CANARY)
    told(refused.value)
