"""Reading: single jobs that are asked for at the same moment are read in one question."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from windlass.core.job import Job

    Read: TypeAlias = Callable[[Sequence[str], str | None], Awaitable[list[Job | None]]]

MOST_AT_ONCE = 100


class _Alone(Exception):
    """The caller that was to read for others as well was cancelled: each reads for itself."""


class Reading:
    """Gathers what one turn of the event loop asks for; the first caller of the turn reads for all of it.

    A caller is answered with what the store had after the call, as if it had asked alone. Nobody waits for a question
    that is under way, so a slow one holds up only those that are in it.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._gathering: dict[
            tuple[asyncio.AbstractEventLoop, str | None], list[tuple[str, asyncio.Future[Job | None]]]
        ] = {}

    async def get(self, job_id: str, user: str | None = None) -> Job | None:
        """The job, if it is there and this user's."""
        loop = asyncio.get_running_loop()
        beside = self._gathering.get((loop, user))
        if beside is not None and len(beside) < MOST_AT_ONCE:
            answer: asyncio.Future[Job | None] = loop.create_future()
            beside.append((job_id, answer))
            try:
                return await answer
            except _Alone:
                [found] = await self._read([job_id], user)
                return found
        return await self._for_all(job_id, user, loop)

    async def _for_all(self, job_id: str, user: str | None, loop: asyncio.AbstractEventLoop) -> Job | None:
        others = self._gathering[loop, user] = []
        try:
            try:
                await asyncio.sleep(0)
            finally:
                if self._gathering.get((loop, user)) is others:
                    del self._gathering[loop, user]
            ids = list(dict.fromkeys([job_id, *(one for one, _ in others)]))
            found = dict(zip(ids, await self._read(ids, user), strict=True))
        except BaseException as error:
            why = error if isinstance(error, Exception) else _Alone()
            for answer in (answer for _, answer in others if not answer.done()):
                answer.set_exception(why)
            raise
        for one, answer in others:
            if not answer.done():
                answer.set_result(found[one])
        return found[job_id]
