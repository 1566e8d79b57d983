"""Warm children that read documents: under limits, one document at a time, replaced when they die or are old."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from windlass.apps.limited.bounds import Bounds
from windlass.apps.limited.child import LimitedChild
from windlass.apps.limited.refused import FileRefused
from windlass.apps.resumes.extraction.extracted import Extracted
from windlass.apps.resumes.extraction.limits import Limits
from windlass.apps.resumes.extraction.refused import DocumentRefused

_MODULE = "windlass.apps.resumes.extraction.serving"
_OLD = 1_000
"""documents that one child reads: whatever leaks in a parser does not grow for ever"""
_DIED = "it breaks its reader, or needs more memory or time than a document may: open it and save it anew"


class Pool:
    """`async with Pool(2) as pool: extracted = await pool.extract(data, media_type)`.

    Children start when they are first needed, and end with the pool. A document that kills its child is refused;
    the next one gets a new child.
    """

    def __init__(self, size: int = 2, limits: Limits | None = None) -> None:
        self._limits = limits if limits is not None else Limits()
        self._idle: asyncio.LifoQueue[_Warm | None] = asyncio.LifoQueue()
        for _ in range(size):
            self._idle.put_nowait(None)
        self._children: set[_Warm] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._children:
            await self._children.pop().end()

    @property
    def pids(self) -> list[int]:
        """The processes that are there now."""
        return [child.pid for child in self._children]

    async def extract(self, data: bytes, media_type: str) -> Extracted:
        """Read a document in a child; DocumentRefused says why it never can be."""
        if len(data) > self._limits.largest:
            raise DocumentRefused(f"it has {len(data):,} bytes: {self._limits.largest:,} may be")
        child = await self._idle.get()
        try:
            if child is None or not child.fit:
                await self._drop(child)
                child = None
                child = await self._started()
            return await child.read(data, media_type)
        finally:
            if child is not None and not child.fit:
                await self._drop(child)
                child = None
            self._idle.put_nowait(child)

    async def _started(self) -> _Warm:
        child = _Warm(self._limits)
        self._children.add(child)
        try:
            await child.start()
        except BaseException:
            await self._drop(child)
            raise
        return child

    async def _drop(self, child: _Warm | None) -> None:
        if child is not None:
            self._children.discard(child)
            await asyncio.shield(child.end())


class _Warm:
    """One child and what is known of it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        bounds = Bounds(memory=limits.memory, cpu=int(limits.seconds * _OLD), opened=64)
        self._child = LimitedChild(_MODULE, {"limits": limits.as_json()}, bounds)
        self._stack = AsyncExitStack()
        self._read = 0
        self._broken = False

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def fit(self) -> bool:
        return not self._broken and self._read < _OLD and self._child.alive

    async def start(self) -> None:
        await self._stack.enter_async_context(self._child)
        await self._child.frame(within=60.0)

    async def read(self, data: bytes, media_type: str) -> Extracted:
        self._read += 1
        self._broken = True  # until it has answered: if this is cancelled in between, it is ended
        patience = self._limits.seconds * (1 + self._limits.recognised)
        try:
            async with asyncio.timeout(patience):  # a child that does not read is as slow as one that does not answer
                await self._child.send(media_type.encode("utf-8", "replace")[:200])
                await self._child.send(data)
            frame = await self._child.frame(within=patience)
        except (FileRefused, TimeoutError):  # what it says of a document is another frame: it died, or was too slow
            raise DocumentRefused(_DIED) from None
        self._broken = False
        if "not" in frame:
            raise DocumentRefused(frame["not"])
        return Extracted.of(frame["extracted"])

    async def end(self) -> None:
        await self._stack.aclose()
