"""The application of M31: files on a disk that is slow, so that faults come in the middle of writes."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import replace
from typing import Any, cast

from windlass import Windlass
from windlass.apps.blobs.blobs import Blob, Blobs, Content
from windlass.apps.files.files import Files, install
from windlass.apps.files.settings import FilesSettings
from windlass.apps.files.state import State, Version, Write
from windlass.apps.files.writing import Writing
from windlass.chaos.place import Place

SLOWEST = 0.12
"""seconds"""


class Slow:
    """Blobs that take their time before and after they are written."""

    def __init__(self, real: Blobs) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def put(self, content: Content, *, largest: int) -> Blob:
        await asyncio.sleep(random.uniform(0, SLOWEST / 4))  # how slow the disk is
        blob = await self._real.put(content, largest=largest)
        await asyncio.sleep(random.uniform(0, SLOWEST))  # the same
        return blob


class Careless(Writing):
    """Writes what it was given, whichever lease and place in the order it has, as if it were alone."""

    async def begun(self) -> Version | None:
        return None

    async def committed(self) -> Version:
        await self.files.blobs.put(self.order.content or b"", largest=1_000_000)
        write, at = self.write(), time.time_ns() // 1_000_000
        return await self.records.change(self.name, lambda state: _over(state, write, at))


def _over(state: State, write: Write, at: int) -> tuple[State, Version]:
    made = Version(seq=write.seq, sha256=write.sha256, size=write.size, at=at, who=write.who, job=write.job)
    waiting = tuple(one for one in state.waiting if one.seq != write.seq)
    return replace(state, committed=write.seq, versions=(*state.versions, made), waiting=waiting), made


def files_at(place: Place) -> Files:
    """The files of a place; with the mistake that it asks for."""
    settings = FilesSettings(
        blobs=str(place.folder / "blobs"),
        root=place.folder / "disk",
        retries=20,
        backoff=0.05,
        lock_timeout=0.2,
        versions=1000,
    )
    files = install(Windlass(place.url, namespace=place.namespace), settings)
    files.blobs = cast("Blobs", Slow(files.blobs))
    if place.control:
        files.writing = Careless
    return files


def application(place: Place) -> Windlass:
    """The application at a place."""
    return files_at(place).app


app = application(Place.told())
