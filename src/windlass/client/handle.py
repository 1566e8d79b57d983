"""The handle: what enqueue gives back."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from windlass.client.operating import operate
from windlass.core.errors import JobFailed, JobNotFound, MoveRefused
from windlass.core.sealing import holds_sealed, opened
from windlass.core.secret import Secret
from windlass.core.status import Status
from windlass.stores.contract import Action, Operated, Order

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from datetime import timedelta

    from windlass.client.client import Client
    from windlass.core.history import Entry
    from windlass.core.job import Job, Progress
    from windlass.core.payload import Codec

R_co = TypeVar("R_co", covariant=True)
_LOOK_AGAIN = 1.0  # seconds: the floor under notices, which may be lost


class Handle(Generic[R_co]):
    """A job by its id, with the type of its result."""

    __slots__ = ("_client", "_codec", "created", "id")

    def __init__(self, client: Client, job_id: str, *, created: bool, codec: Codec | None) -> None:
        self._client = client
        self._codec = codec
        self.id = job_id
        self.created = created
        """False when the job was already there and the enqueue changed nothing, or replaced what it holds."""

    async def job(self) -> Job:
        """The job as the store has it now; JobNotFound when it is gone."""
        found = await self._client.read(self.id)
        if found is None:
            raise JobNotFound(self.id)
        return found

    async def history(self) -> list[Entry]:
        """Everything that happened to the job, oldest first."""
        store = await self._client.ready()
        return await store.views.history(self.id)

    async def result(self, timeout: float | timedelta | None = None) -> R_co:
        """Wait for the job's end and give its result; JobFailed if it has none, TimeoutError if it takes longer."""
        job = await self.wait(timeout)
        if job.status is not Status.SUCCEEDED or job.result_json is None:
            raise JobFailed(job)
        value: Any = self._codec.decode_result(job.result_json) if self._codec else self._plain(job, job.result_json)
        result: R_co = value
        return result

    def _plain(self, job: Job, text: str) -> Any:
        # Of a type whose handler is not here: it says itself what in it is a secret.
        return opened(text, self._client.seals, "result", job.type, Secret) if holds_sealed(text) else json.loads(text)

    async def wait(self, timeout: float | timedelta | None = None) -> Job:
        """Wait until the job has ended, however it ended; TimeoutError if it takes longer."""
        seconds = timeout if timeout is None or isinstance(timeout, (int, float)) else timeout.total_seconds()
        async with asyncio.timeout(seconds), aclosing(self._changes()) as changes:
            async for job in changes:
                if job.status.finished:
                    return job
        raise JobNotFound(self.id)

    async def events(self) -> AsyncGenerator[Entry | Progress, None]:
        """Tell what happens to the job, from its first entry on, as it happens; ends when the job has ended."""
        store = await self._client.ready()
        told = 0
        shown: Progress | None = None
        async with aclosing(self._changes()) as changes:
            async for job in changes:
                for entry in await store.views.history(self.id):
                    if entry.number > told:
                        told = entry.number
                        yield entry
                if job.progress is not None and job.progress != shown:
                    shown = job.progress
                    yield shown
                if job.status.finished:
                    return

    async def cancel(self, reason: str | None = None) -> bool:
        """Cancel the job: true when it is cancelled now, false when its worker was asked to stop it.

        MoveRefused when it has already ended.
        """
        order = Order(id=self.id, action=Action.CANCEL, actor="client", reason=reason)
        [answer] = await operate(self._client, [order])
        if answer.verdict is Operated.MISSING:
            raise JobNotFound(self.id)
        if answer.verdict is Operated.REFUSED and answer.status is not None:
            raise MoveRefused(self.id, answer.status, "cancelled")
        return answer.verdict is Operated.DONE

    async def _changes(self) -> AsyncGenerator[Job, None]:
        async with self._client.changes() as changed:
            while True:
                changed.clear()
                yield await self.job()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_AGAIN):
                        await changed.wait()

    def __repr__(self) -> str:
        return f"Handle({self.id}, created={self.created})"
