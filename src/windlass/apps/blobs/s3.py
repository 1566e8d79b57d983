"""Blobs at S3, or what speaks its language. An object is there whole or not at all, and is read back after it is put.

A stream waits in a temporary file until its name is known. S3 has no way to remove an object only while it is old: a
blob that is put in the moment between `collect`'s look and its removal is lost, which the next read tells.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import obstore
from obstore.exceptions import BaseError

from windlass.apps.blobs.blobs import (
    PIECE,
    Blob,
    BlobDamaged,
    BlobError,
    BlobMissing,
    Content,
    checked,
    pieces,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator

    from obstore import ObjectMeta
    from obstore.store import S3Store

_IN_MEMORY = 4 * 1024 * 1024
_AT_ONCE = 8 * 1024 * 1024
"""bytes that are sent in one request"""
_FRESH = 600
"""seconds for which an object counts as new without being put again"""


class S3Blobs:
    """Blobs as objects below a prefix of a bucket."""

    def __init__(self, store: S3Store) -> None:
        self._store = store

    async def put(self, content: Content, *, largest: int) -> Blob:
        """Store it."""
        seen, size = hashlib.sha256(), 0
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as waiting:
            async for piece in pieces(content, largest):
                seen.update(piece)
                size += len(piece)
                waiting.write(piece)
            blob = Blob(seen.hexdigest(), size)
            waiting.seek(0)
            with _told(blob.sha256):
                if not await self._is_fresh(blob):
                    held: Any = waiting if size > _AT_ONCE else waiting.read()
                    await obstore.put_async(self._store, blob.sha256, held, chunk_size=_AT_ONCE, max_concurrency=4)
                if not await self._is_whole(blob):
                    raise BlobDamaged(blob.sha256)
        return blob

    async def get(self, sha256: str, start: int = 0, end: int | None = None) -> bytes:
        """Its bytes."""
        return b"".join([piece async for piece in self.open(sha256, start, end)])

    async def open(self, sha256: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The same piece by piece."""
        size = await self.size(sha256)
        last = size if end is None else min(end, size)
        if start >= last:
            return  # S3 refuses a range of nothing
        with _told(sha256):
            found = await obstore.get_async(self._store, checked(sha256), options={"range": (start, last)})
            async for piece in found.stream(min_chunk_size=PIECE):
                yield bytes(piece)

    async def size(self, sha256: str) -> int:
        """How many bytes it has."""
        with _told(sha256):
            return (await self._head(sha256))["size"]

    async def touch(self, sha256: str) -> None:
        """Have it count as new."""
        size = await self.size(sha256)
        if await self._is_fresh(Blob(sha256, size)):
            return
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as waiting:
            async for piece in self.open(sha256):
                waiting.write(piece)
            waiting.seek(0)
            with _told(sha256):
                held = cast("Any", waiting)
                await obstore.put_async(self._store, sha256, held, chunk_size=_AT_ONCE, max_concurrency=4)

    async def older_than(self, seconds: float) -> AsyncIterator[Blob]:
        """Blobs of which nothing was heard for so long."""
        with _told(""):
            async for page in obstore.list(self._store, chunk_size=1000):  # pyright: ignore[reportUnknownMemberType]  # one of its overloads is of Arrow
                for found in page:
                    if _age(found) >= seconds:
                        yield Blob(found["path"].rpartition("/")[2], found["size"])

    async def collect(self, sha256: str, seconds: float) -> bool:
        """Remove a blob if it is still that old."""
        checked(sha256)
        with contextlib.suppress(BlobMissing), _told(sha256):
            if _age(await self._head(sha256)) >= seconds:
                await obstore.delete_async(self._store, sha256)
                return True
        return False

    async def close(self) -> None:
        """Nothing stays open."""

    async def _head(self, sha256: str) -> ObjectMeta:
        return await obstore.head_async(self._store, checked(sha256))

    async def _is_fresh(self, blob: Blob) -> bool:
        try:
            found = await self._head(blob.sha256)
        except FileNotFoundError:
            return False
        return found["size"] == blob.size and _age(found) < _FRESH

    async def _is_whole(self, blob: Blob) -> bool:
        seen, size = hashlib.sha256(), 0
        async for piece in self.open(blob.sha256):
            seen.update(piece)
            size += len(piece)
        return size == blob.size and seen.hexdigest() == blob.sha256


def _age(found: ObjectMeta) -> float:
    return (datetime.now(UTC) - found["last_modified"]).total_seconds()


@contextlib.contextmanager
def _told(sha256: str) -> Generator[None]:
    """The service's errors in our words."""
    try:
        yield
    except FileNotFoundError:
        raise BlobMissing(sha256) from None
    except BaseError as error:
        # Its text holds the request; the first line says what went wrong.
        raise BlobError(f"the bucket of blobs cannot be used: {str(error).partition(chr(10))[0][:300]}") from error
