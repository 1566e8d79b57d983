from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.until import until, until_sync


def counting(to: int) -> Iterator[int]:
    """False until the last number: waiting has something to wait for."""
    yield from [0] * to
    while True:
        yield to


async def test_until_returns_the_first_truthy_value_of_a_plain_function() -> None:
    numbers = counting(3)
    assert await until(lambda: next(numbers), "three") == 3


async def test_until_returns_the_first_truthy_value_of_an_async_function() -> None:
    numbers = counting(2)

    async def count() -> int:
        return next(numbers)

    assert await until(count, "two") == 2


async def test_until_names_what_it_waited_for_and_the_last_value() -> None:
    with pytest.raises(AssertionError, match=r"waited 0.02 s for: the moon; last value: \[\]"):
        await until(list[int], "the moon", within=0.02)


async def test_until_ends_a_predicate_that_hangs() -> None:
    async def hang() -> bool:
        await asyncio.Event().wait()
        return True

    with pytest.raises(AssertionError, match="an answer"):
        await until(hang, "an answer", within=0.02)


async def test_until_does_not_swallow_the_predicates_own_timeout() -> None:
    def fail() -> bool:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        await until(fail, "never")


def test_until_sync_returns_the_value_or_names_what_it_waited_for() -> None:
    numbers = counting(3)
    assert until_sync(lambda: next(numbers), "three") == 3
    with pytest.raises(AssertionError, match=r"waited 0.02 s for: the moon; last value: 0"):
        until_sync(int, "the moon", within=0.02)
