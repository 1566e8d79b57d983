"""The catalogue as a client reads it: what workers declare of types that are not registered here.

What was read is kept for a short time, so that many enqueues are one read. A process that goes on enqueueing by name
also listens: it is told when another version is the newest.
"""

from __future__ import annotations

import asyncio
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from windlass.core.errors import PayloadInvalid
from windlass.core.redaction import MASK
from windlass.core.sealing import MEMBER, place_of, seal_by_schema
from windlass.core.values import canonical, encode, spelt
from windlass.stores.contract import About

if TYPE_CHECKING:
    from windlass.core.declared import Declared
    from windlass.core.fitting import Fitting
    from windlass.core.sealing import Seals
    from windlass.stores.contract import Notice, Store

FRESH = 5.0
"""seconds after which a type is read again"""
FRESH_WHILE_TOLD = 60.0
"""the same while notices arrive"""
FRESH_UNKNOWN = 1.0
"""the same of a type that no worker has told of"""
KEPT = 30.0
"""seconds after the last enqueue by name for which it goes on listening"""


class Published:
    """The newest version of a type, as a job of it is made by."""

    def __init__(self, declared: Declared, seals: Seals | None = None) -> None:
        self.declared, self.seals = declared, seals

    @cached_property
    def _fitting(self) -> Fitting | None:
        from windlass.core.fitting import Fitting  # only who enqueues what others handle loads it

        schema = self.declared.payload_schema
        return None if schema is None else Fitting(schema, quietly=self.declared.takes_secrets)

    def check(self, payload: object) -> None:
        """PayloadInvalid where it does not fit the schema; without a schema nothing is said of it."""
        if self._fitting is not None:
            self._fitting.check(payload, self.declared.type)

    def encode(self, payload: Any) -> str:
        """The canonical payload, its secrets sealed; PayloadInvalid where it does not fit what the handler takes.

        SettingsError where a secret cannot be sealed here: it is never sent as it is.
        """
        declared = self.declared
        if declared.takes_arguments:
            payload = {} if payload is None else payload
            if not isinstance(payload, dict):
                kind = type(cast("object", payload)).__name__
                raise PayloadInvalid(f"the payload of {declared.type} is a {kind}: expected an object")
        text = canonical(cast("object", payload), declared.type)
        self.check(cast("object", payload))
        return self._sealed(payload, self._fitting) if declared.takes_secrets else text

    def _sealed(self, payload: Any, fitting: Fitting | None) -> str:
        declared, seals = self.declared, self.seals
        if fitting is None or declared.payload_schema is None or seals is None:
            raise PayloadInvalid(
                f"{declared.type} takes secrets, and its schema, which would say where, was not published: enqueue it"
                " where its handler is"
            )

        def seal(text: str, path: tuple[str | int, ...]) -> dict[str, str]:
            if text == encode(MASK):
                raise PayloadInvalid(
                    f"{declared.type} does not fit its types: {spelt(path) or 'value'}: Input is what is shown in place"
                    " of a secret: give the secret itself"
                )
            return {MEMBER: seals.seal(text, place_of("payload", declared.type, path))}

        return canonical(seal_by_schema(payload, declared.payload_schema, seal, fitting.fits_part), declared.type)


class Catalogue:
    """Reads one store, in one loop at a time."""

    def __init__(self, store: Store, seals: Seals) -> None:
        self._store, self._seals = store, seals
        self._known: dict[str, tuple[float, Published | None]] = {}
        self._reading: dict[str, asyncio.Task[Published | None]] = {}
        self._listener: asyncio.Task[None] | None = None
        self._asked_at = 0.0

    async def newest(self, type_: str) -> Published | None:
        """What the worker that started last declares of it; None where none has told of it lately."""
        now = self._asked_at = time.monotonic()
        until, published = self._known.get(type_, (0.0, None))
        if now < until:
            return published
        if until:
            self._listen()  # not a process that enqueues once and ends
        reading = self._reading.get(type_)
        if reading is None:
            reading = self._reading[type_] = asyncio.create_task(self._read(type_), name="windlass-catalogue")
            reading.add_done_callback(lambda _: self._reading.pop(type_, None))
        return await asyncio.shield(reading)

    async def close(self) -> None:
        """Listen no more."""
        tasks = [*self._reading.values(), *([] if self._listener is None else [self._listener])]
        self._listener = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, type_: str) -> Published | None:
        task = asyncio.current_task()
        versions = await self._store.types.get(type_)
        before = self._known.get(type_, (0.0, None))[1]
        published = Published(versions[0].declared, self._seals) if versions else None
        if before is not None and published is not None and before.declared == published.declared:
            published = before  # with its schema read
        if self._reading.get(type_) is task:  # else it has changed meanwhile: the next one reads it again
            self._known[type_] = (time.monotonic() + self._lasts(published), published)
        return published

    def _lasts(self, published: Published | None) -> float:
        if self._listener is not None and self._store.notices.healthy:
            return FRESH_WHILE_TOLD
        return FRESH if published is not None else FRESH_UNKNOWN

    def _listen(self) -> None:
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._stay(), name="windlass-catalogue-notices")

    async def _stay(self) -> None:
        async with self._store.notices.subscribe(self._hear):
            self._store.notices.follow(self._hear, frozenset())
            await self._unused()
            self._listener = None

    async def _unused(self) -> None:
        """Return when nothing has been asked for a while."""
        left = KEPT
        while left > 0:
            await asyncio.sleep(left)
            left = self._asked_at + KEPT - time.monotonic()

    def _hear(self, notice: Notice) -> None:
        if notice.about in (About.TYPES, About.ANYTHING):
            self._known = {type_: (1.0, published) for type_, (_, published) in self._known.items()}
            self._reading.clear()
