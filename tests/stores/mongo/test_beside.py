"""What is made ready beside a write never outlives it, and the write never outlives who asked for it."""

from __future__ import annotations

import asyncio

import pytest

from windlass.stores.mongo.connection import beside


class Write:
    """A write that takes until it is told to end."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.may_end = asyncio.Event()

    async def __call__(self) -> int:
        self.told.append("sent")
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.told.append("cancelled")
            raise
        self.told.append("written")
        return 7


async def test_the_rest_is_made_ready_after_the_write_was_sent_and_before_it_has_ended() -> None:
    write = Write()

    def prepare() -> str:
        write.told.append("prepared")
        write.may_end.set()
        return "ready"

    assert await beside(write(), prepare) == (7, "ready")
    assert write.told == ["sent", "prepared", "written"]


async def test_a_write_ends_with_whoever_waits_for_it() -> None:
    write = Write()
    waiting = asyncio.create_task(beside(write(), lambda: None))
    while not write.told:
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0)
    assert write.told == ["sent", "cancelled"]


async def test_a_write_does_not_go_on_when_the_rest_cannot_be_made_ready() -> None:
    write = Write()

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await beside(write(), fail)
    await asyncio.sleep(0)
    assert write.told == ["sent", "cancelled"]
