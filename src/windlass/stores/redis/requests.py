"""Requests under an idempotency key in Redis: a key each, which expires by itself."""

from __future__ import annotations

from datetime import timedelta

from windlass.stores.contract import Answered, Begun, NewRequest, OtherRequest, Standing, UnderWay
from windlass.stores.redis.connection import Room, guarded
from windlass.stores.redis.records import as_duration_ms, packed


class RedisRequests(Room):
    """See `contract.Requests` for what each promises."""

    @guarded
    async def begin(self, new: NewRequest) -> Standing:
        """Note that this is carried out now, unless it was or is."""
        given = [new.id, new.fingerprint, new.first_id, new.mark]
        packed(given)  # a NUL in one of them would be taken for its end
        word, said = await self.link.run("begin", [*given, as_duration_ms(new.hold), as_duration_ms(new.keep)])
        match word:
            case b"begun":
                return Begun(said.decode())
            case b"answered":
                return Answered(said.decode())
            case b"under way":
                return UnderWay(timedelta(milliseconds=int(said)))
            case _:
                return OtherRequest()

    @guarded
    async def finish(self, id_: str, mark: str, answer: str) -> bool:
        """Keep the answer."""
        packed([answer])
        return bool(await self.link.run("finish", [id_, mark, "answer", answer]))

    @guarded
    async def release(self, id_: str, mark: str) -> bool:
        """Hold it no more."""
        return bool(await self.link.run("finish", [id_, mark, "release"]))

    @guarded
    async def forget(self, id_: str, mark: str) -> bool:
        """Remove it."""
        return bool(await self.link.run("finish", [id_, mark, "forget"]))
