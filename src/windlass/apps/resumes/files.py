"""Files of resumes: each user's in a room of their own, so that a user can be forgotten and no two share a file."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.apps.blobs.blobs import BlobMissing
from windlass.apps.blobs.places import blobs_at

if TYPE_CHECKING:
    from windlass.apps.blobs.blobs import Blobs


class FileGone(Exception):
    """The file is not there any more."""


class Files:
    """Files by their user and their SHA-256, in a folder or at S3."""

    def __init__(self, place: str, largest: int) -> None:
        self._place, self._largest = place, largest

    async def keep(self, user: str, data: bytes) -> None:
        """Keep a file, durably; one that is there is the same."""
        blobs = self._of(user)
        try:
            await blobs.put(data, largest=self._largest)
        finally:
            await blobs.close()

    async def read(self, user: str, sha256: str) -> bytes:
        """The file; FileGone."""
        blobs = self._of(user)
        try:
            return await blobs.get(sha256)
        except BlobMissing:
            raise FileGone("the file of this resume is not there any more: send it again") from None
        finally:
            await blobs.close()

    async def remove(self, user: str, sha256: str) -> bool:
        """Remove a file; whether it was there."""
        blobs = self._of(user)
        try:
            return await blobs.collect(sha256, 0)
        finally:
            await blobs.close()

    async def remove_of(self, user: str) -> int:
        """Remove all of a user, also those that no record has; how many there were."""
        blobs, removed = self._of(user), 0
        try:
            async for blob in blobs.older_than(0):
                removed += await blobs.collect(blob.sha256, 0)
        finally:
            await blobs.close()
        if "://" not in self._place:  # with what is left of broken writes
            await asyncio.to_thread(shutil.rmtree, Path(self._place) / _room(user), ignore_errors=True)
        return removed

    def _of(self, user: str) -> Blobs:
        return blobs_at(self._place, _room(user))


def _room(user: str) -> str:
    """A name that is nobody else's, whatever is in the user's."""
    return f"resumes/{hashlib.sha256(user.encode()).hexdigest()[:32]}"
