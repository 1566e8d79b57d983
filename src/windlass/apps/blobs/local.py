"""Blobs in a folder: a temporary file, fsync, rename, fsync of the folder, and read back.

`collect` and `put` of the same blob exclude each other by flock of its folder: a blob that was found and is about to be
named again is never removed. flock covers one host; a folder that several hosts mount is safe as long as only one of
them collects.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.apps.blobs.blobs import (
    PIECE,
    Blob,
    BlobDamaged,
    BlobError,
    BlobMissing,
    BlobTooLarge,
    Content,
    NoSpace,
    checked,
    pieces,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator

_INCOMING = "incoming"
_ABANDONED = 3600
"""seconds after which a temporary file is no longer being written"""


@dataclass(slots=True)
class _Incoming:
    """A file that is being written."""

    place: str
    file: int
    kept: bool = False
    """whether it has become a blob"""


class LocalBlobs:
    """Blobs in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready = False
        """whether all folders are there, and are known to stay"""

    async def put(self, content: Content, *, largest: int) -> Blob:
        """Store it."""
        if isinstance(content, bytes):
            return await asyncio.to_thread(self.put_now, content, largest=largest)
        return await self._put_stream(content, largest)

    def put_now(self, content: bytes, *, largest: int) -> Blob:
        """The same on the calling thread."""
        if len(content) > largest:
            raise BlobTooLarge(largest)
        blob = Blob(hashlib.sha256(content).hexdigest(), len(content))
        with _told(), self._shelf(blob.sha256, fcntl.LOCK_SH) as shelf:
            if _read(shelf, blob.sha256, blob.size + 1) != content:
                with self._new_file() as made:
                    _write(made.file, content)
                    self._keep(made, shelf, blob)
                if _read(shelf, blob.sha256, blob.size + 1) != content:
                    raise BlobDamaged(blob.sha256)
            else:
                self._renew(shelf, blob)
        return blob

    async def _put_stream(self, content: Content, largest: int) -> Blob:
        seen, size = hashlib.sha256(), 0
        # What goes wrong with the content is not the disk's: only calls to the disk are told in our words.
        with self._new_file() as made:
            async for piece in pieces(content, largest):
                seen.update(piece)
                size += len(piece)
                await asyncio.to_thread(_write, made.file, piece)
            blob = Blob(seen.hexdigest(), size)
            await asyncio.to_thread(self._shelve, made, blob)
        return blob

    def _shelve(self, made: _Incoming, blob: Blob) -> None:
        with _told(), self._shelf(blob.sha256, fcntl.LOCK_SH) as shelf:
            if _is_whole(shelf, blob):
                self._renew(shelf, blob)
                return
            self._keep(made, shelf, blob)
            if not _is_whole(shelf, blob):
                raise BlobDamaged(blob.sha256)

    def _keep(self, made: _Incoming, shelf: int, blob: Blob) -> None:
        """From the temporary file to the blob: what has its name is whole, and stays after a power cut."""
        os.fsync(made.file)
        os.rename(made.place, blob.sha256, dst_dir_fd=shelf)
        made.kept = True
        os.fsync(shelf)

    def _renew(self, shelf: int, blob: Blob) -> None:
        os.utime(blob.sha256, dir_fd=shelf)
        # The process that has just renamed it may not have come to its own fsync yet.
        os.fsync(shelf)

    async def get(self, sha256: str, start: int = 0, end: int | None = None) -> bytes:
        """Its bytes."""
        return await asyncio.to_thread(self.get_now, sha256, start, end)

    def get_now(self, sha256: str, start: int = 0, end: int | None = None) -> bytes:
        """The same on the calling thread."""
        with _told(), self._opened(sha256) as file:
            size = os.fstat(file).st_size
            return _read_from(file, start, size if end is None else min(end, size))

    async def open(self, sha256: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The same piece by piece."""
        with _told(), self._opened(sha256) as file:
            size = os.fstat(file).st_size
            last = size if end is None else min(end, size)
            while piece := await asyncio.to_thread(_read_from, file, start, min(start + PIECE, last)):
                start += len(piece)
                yield piece

    async def size(self, sha256: str) -> int:
        """How many bytes it has."""
        with _told(), self._opened(sha256) as file:
            return os.fstat(file).st_size

    async def touch(self, sha256: str) -> None:
        """Have it count as new."""
        await asyncio.to_thread(self._touch, checked(sha256))

    def _touch(self, sha256: str) -> None:
        with _told(), self._shelf(sha256, fcntl.LOCK_SH) as shelf:
            try:
                os.utime(sha256, dir_fd=shelf)
            except FileNotFoundError:
                raise BlobMissing(sha256) from None

    async def older_than(self, seconds: float) -> AsyncIterator[Blob]:
        """Blobs of which nothing was heard for so long."""
        for number in range(256):
            for blob in await asyncio.to_thread(self._old, f"{number:02x}", seconds):
                yield blob

    def _old(self, shelf: str, seconds: float) -> list[Blob]:
        before, old = time.time() - seconds, list[Blob]()
        with _told(), contextlib.suppress(FileNotFoundError), os.scandir(self._folder / shelf) as found:
            for entry in found:
                with contextlib.suppress(FileNotFoundError):
                    told = entry.stat(follow_symlinks=False)
                    if told.st_mtime <= before:
                        old.append(Blob(entry.name, told.st_size))
        return old

    async def collect(self, sha256: str, seconds: float) -> bool:
        """Remove a blob if it is still that old."""
        return await asyncio.to_thread(self._collect, checked(sha256), seconds)

    def _collect(self, sha256: str, seconds: float) -> bool:
        self._sweep()
        with _told(), self._shelf(sha256, fcntl.LOCK_EX) as shelf, contextlib.suppress(FileNotFoundError):
            if os.stat(sha256, dir_fd=shelf, follow_symlinks=False).st_mtime <= time.time() - seconds:
                os.unlink(sha256, dir_fd=shelf)
                return True
        return False

    def _sweep(self) -> None:
        with contextlib.suppress(FileNotFoundError), os.scandir(self._folder / _INCOMING) as found:
            for entry in found:
                if entry.stat().st_mtime < time.time() - _ABANDONED:
                    Path(entry.path).unlink(missing_ok=True)

    async def close(self) -> None:
        """Nothing stays open."""

    @contextlib.contextmanager
    def _shelf(self, sha256: str, how: int) -> Generator[int]:
        """The folder that a blob is in, held."""
        self._prepare()
        try:
            shelf = os.open(self._folder / sha256[:2], os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # somebody has cleared the folder meanwhile
            self._prepare(again=True)
            shelf = os.open(self._folder / sha256[:2], os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(shelf, how)
            yield shelf
        finally:
            os.close(shelf)

    def _prepare(self, *, again: bool = False) -> None:
        """Make all folders that are missing. That for what comes in is the last: where it is, the others stay."""
        if self._ready and not again:
            return
        incoming = self._folder / _INCOMING
        if again or not incoming.is_dir():
            for number in range(256):
                (self._folder / f"{number:02x}").mkdir(mode=0o700, parents=True, exist_ok=True)
            _sync(self._folder)
            incoming.mkdir(mode=0o700, exist_ok=True)
            for folder in (self._folder, self._folder.parent):
                _sync(folder)
        self._ready = True

    @contextlib.contextmanager
    def _new_file(self) -> Generator[_Incoming]:
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with _told():
            self._prepare()
            place = f"{self._folder}/{_INCOMING}/{uuid.uuid4().hex}"
            try:
                file = os.open(place, how, 0o600)
            except FileNotFoundError:
                self._prepare(again=True)
                file = os.open(place, how, 0o600)
        made = _Incoming(place, file)
        try:
            yield made
        finally:
            os.close(file)
            if not made.kept:
                Path(place).unlink()

    @contextlib.contextmanager
    def _opened(self, sha256: str) -> Generator[int]:
        try:
            file = os.open(self._folder / checked(sha256)[:2] / sha256, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise BlobMissing(sha256) from None
        try:
            yield file
        finally:
            os.close(file)


def _sync(folder: Path) -> None:
    found = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(found)
    finally:
        os.close(found)


def _write(file: int, content: bytes) -> None:
    rest = memoryview(content)
    with _told():
        while rest:
            rest = rest[os.write(file, rest) :]


def _read_from(file: int, start: int, end: int) -> bytes:
    found: list[bytes] = []
    while start < end and (piece := os.pread(file, end - start, start)):
        found.append(piece)
        start += len(piece)
    return found[0] if len(found) == 1 else b"".join(found)


def _read(shelf: int, name: str, most: int) -> bytes | None:
    """What stands under a name; None where nothing does."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=shelf)
    except FileNotFoundError:
        return None
    try:
        return _read_from(file, 0, most)
    finally:
        os.close(file)


def _is_whole(shelf: int, blob: Blob) -> bool:
    try:
        file = os.open(blob.sha256, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=shelf)
    except FileNotFoundError:
        return False
    try:
        seen = hashlib.sha256()
        start = 0
        while piece := os.pread(file, PIECE, start):
            seen.update(piece)
            start += len(piece)
    finally:
        os.close(file)
    return start == blob.size and seen.hexdigest() == blob.sha256


@contextlib.contextmanager
def _told() -> Generator[None]:
    """The disk's errors in our words."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace from error
        raise BlobError(f"the folder of blobs cannot be used: {error.strerror}") from error
