"""The connections of scripts: used again, looked at before use where they may be broken, and never out of step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.exceptions import ResponseError

from windlass.stores.redis.connection import Value
from windlass.stores.redis.exchange import Exchange
from windlass.stores.redis.store import RedisStore

MANY = 8


@pytest.fixture
async def exchange(store: RedisStore) -> AsyncIterator[Exchange]:
    """One that looks at every connection before it uses it again."""
    client = store.link.connect()
    yield Exchange(client, rested=0.0)
    await client.aclose()


async def cut_all(store: RedisStore) -> None:
    await store.link.command("CLIENT KILL", "TYPE", "normal", "SKIPME", "no")


async def test_one_after_the_other_needs_one_connection_and_many_at_once_as_many(exchange: Exchange) -> None:
    alone = {await exchange.ask(("CLIENT", "ID")) for _ in range(MANY)}
    beside = set(await asyncio.gather(*(exchange.ask(("CLIENT", "ID")) for _ in range(MANY))))
    assert len(alone) == 1
    assert len(beside) == MANY
    assert alone < beside


async def test_one_that_the_server_has_closed_meanwhile_is_opened_again(exchange: Exchange, store: RedisStore) -> None:
    before = await exchange.ask(("CLIENT", "ID"))
    await cut_all(store)
    assert await exchange.ask(("CLIENT", "ID")) != before


async def test_a_refusal_leaves_its_connection_in_use(exchange: Exchange) -> None:
    before = await exchange.ask(("CLIENT", "ID"))
    with pytest.raises(ResponseError, match="wrong number of arguments"):
        await exchange.ask(("GET",))
    assert await exchange.ask(("CLIENT", "ID")) == before


async def test_where_one_was_found_broken_the_others_are_not_asked_in_vain(store: RedisStore) -> None:
    await asyncio.gather(*(store.link.run("cancels", ["w"]) for _ in range(MANY)))
    await cut_all(store)
    tries: list[bool] = []

    def values(again: bool) -> list[Value]:
        tries.append(again)
        return ["w"]

    assert await store.link.ask("cancels", values) == []
    assert tries == [False, True]
    await asyncio.gather(*(store.link.ask("cancels", values) for _ in range(MANY)))
    assert not any(tries[2:])


async def test_a_value_that_is_no_text_ends_nothing(exchange: Exchange) -> None:
    before = await exchange.ask(("CLIENT", "ID"))
    with pytest.raises(UnicodeEncodeError):
        await exchange.ask(("ECHO", "\ud800"))
    assert await exchange.ask(("CLIENT", "ID")) == before
