"""What every blob store does, and what it refuses. Applications see this alone; `places.py` makes one of an address."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from windlass import WindlassError

Content: TypeAlias = bytes | AsyncIterable[bytes]
PIECE = 256 * 1024
"""bytes that are read or written at once"""
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes that are stored, by their name."""

    sha256: str
    size: int


class BlobError(WindlassError):
    """The blob store could not do what it was asked."""


class BlobMissing(BlobError):
    """There is no such blob."""

    def __init__(self, sha256: str) -> None:
        super().__init__(f"the blob {sha256[:12]}… is not in the store: it was collected, or the store is another")
        self.sha256 = sha256


class BlobTooLarge(BlobError):
    """More came than a blob may have."""

    def __init__(self, largest: int) -> None:
        super().__init__(f"more than {largest:,} bytes came, which is the most that may")
        self.largest = largest


class NoSpace(BlobError):
    """There is no room for it."""

    def __init__(self) -> None:
        super().__init__("the disk is full: nothing was written; free some room, and try again")


class BlobDamaged(BlobError):
    """What is read back is not what was written."""

    def __init__(self, sha256: str) -> None:
        super().__init__(f"what is read back of the blob {sha256[:12]}… is not what was written: look at the disk")
        self.sha256 = sha256


class Blobs(Protocol):
    """A store of blobs. Each has a room of its own in it, so that no application collects another's blobs."""

    async def put(self, content: Content, *, largest: int) -> Blob:
        """Store it, durably, read back and compared. A stream is counted while it comes: BlobTooLarge leaves nothing.

        A blob that is there is found whole, or written again, and counts as new for `older_than`. NoSpace when the disk
        is full.
        """
        ...

    async def get(self, sha256: str, start: int = 0, end: int | None = None) -> bytes:
        """Its bytes, from `start` up to before `end`. BlobMissing."""
        ...

    def open(self, sha256: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The same piece by piece. BlobMissing with the first."""
        ...

    async def size(self, sha256: str) -> int:
        """How many bytes it has. BlobMissing."""
        ...

    async def touch(self, sha256: str) -> None:
        """Have it count as new, before something old is named again. BlobMissing."""
        ...

    def older_than(self, seconds: float) -> AsyncIterator[Blob]:
        """Blobs that were neither put nor touched for so long: those of them that nothing names may be collected."""
        ...

    async def collect(self, sha256: str, seconds: float) -> bool:
        """Remove a blob if it is still that old; whether it was removed. What is left of broken writes goes, too."""
        ...

    async def close(self) -> None:
        """Close what was opened."""
        ...


def checked(sha256: str) -> str:
    """The name of a blob, which is never anything else, a path least of all."""
    if not _SHA256.fullmatch(sha256):
        raise BlobMissing(sha256[:64])
    return sha256


async def pieces(content: Content, largest: int) -> AsyncIterator[bytes]:
    """The content piece by piece, counted."""
    if isinstance(content, bytes):
        if len(content) > largest:
            raise BlobTooLarge(largest)
        yield content
        return
    size = 0
    async for piece in content:
        size += len(piece)
        if size > largest:
            raise BlobTooLarge(largest)
        yield piece
