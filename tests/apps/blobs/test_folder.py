"""What is special to blobs in a folder: what stays after a crash, who may read, and a disk that is full."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from windlass.apps.blobs.blobs import Blob, BlobError, NoSpace
from windlass.apps.blobs.local import LocalBlobs


def place_of(folder: Path, blob: Blob) -> Path:
    return folder / blob.sha256[:2] / blob.sha256


async def test_only_the_owner_may_read(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path / "blobs")
    blob = await blobs.put(b"mine", largest=10)
    place = place_of(tmp_path / "blobs", blob)
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.parent.stat().st_mode & 0o777 == 0o700


async def test_a_blob_that_was_damaged_is_written_again(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path)
    for content in (b"as bytes", b"torn"):
        blob = await blobs.put(content, largest=10)
        place_of(tmp_path, blob).write_bytes(content[:2])
        assert await blobs.put(content, largest=10) == blob
        assert await blobs.get(blob.sha256) == content


async def test_a_blob_that_is_put_again_is_new(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path)
    blob = await blobs.put(b"old", largest=10)
    for renew in (lambda: blobs.put(b"old", largest=10), lambda: blobs.touch(blob.sha256)):
        long_ago = time.time() - 7200
        os.utime(place_of(tmp_path, blob), (long_ago, long_ago))
        assert [one async for one in blobs.older_than(3600)] == [blob]
        await renew()
        assert [one async for one in blobs.older_than(3600)] == []
        assert not await blobs.collect(blob.sha256, 3600)


async def test_who_puts_and_who_collects_never_lose_a_blob_that_was_put(tmp_path: Path) -> None:
    """As old blobs are: put finds it, and collect removes it, at the same moment, again and again."""
    blobs, content = LocalBlobs(tmp_path), b"contended"
    blob = await blobs.put(content, largest=10)
    long_ago = time.time() - 7200
    for _ in range(100):
        os.utime(place_of(tmp_path, blob), (long_ago, long_ago))
        await asyncio.gather(blobs.collect(blob.sha256, 3600), blobs.put(content, largest=10))
        assert await blobs.get(blob.sha256) == content


async def test_temporary_files_of_broken_writes_are_removed_in_time(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path)
    blob = await blobs.put(b"x", largest=10)
    left, written = tmp_path / "incoming" / "left", tmp_path / "incoming" / "written"
    left.touch()
    written.touch()
    long_ago = time.time() - 7200
    os.utime(left, (long_ago, long_ago))
    await blobs.collect(blob.sha256, 3600)
    assert not left.exists()
    assert written.exists()


_WRITER = """
import sys
from pathlib import Path
from windlass.apps.blobs.local import LocalBlobs

blobs = LocalBlobs(Path(sys.argv[1]))
print("begun", flush=True)
for number in range(1_000_000):
    blobs.put_now(str(number).encode() * 20_000, largest=10_000_000)
"""


def test_a_writer_that_is_killed_leaves_no_torn_blob(tmp_path: Path) -> None:
    for round_ in range(2):
        with subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            before = len(list(tmp_path.glob("??/*")))
            while len(list(tmp_path.glob("??/*"))) < before + round_ + 1 and writer.poll() is None:
                pass
            os.kill(writer.pid, signal.SIGKILL)
    found = list(tmp_path.glob("??/*"))
    assert found
    assert [one for one in found if hashlib.sha256(one.read_bytes()).hexdigest() != one.name] == []


async def test_a_disk_that_is_full_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that is always full stands for the disk, behind the name that the file is opened under."""
    blobs = LocalBlobs(tmp_path)
    await blobs.put(b"before", largest=10)
    opened = os.open

    def full(path: str | os.PathLike[str], flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_CREAT:
            os.close(opened(path, flags, mode, dir_fd=dir_fd))
            return opened("/dev/full", os.O_WRONLY)
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(NoSpace, match="the disk is full"):
        await blobs.put(b"after", largest=10)
    assert list((tmp_path / "incoming").iterdir()) == []


async def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BlobError, match="cannot be used: Not a directory"):
        await LocalBlobs(tmp_path / "file").put(b"x", largest=10)


async def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path)
    await blobs.put(b"x", largest=10)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(50):
        blob = await blobs.put(str(number).encode(), largest=10)
        await blobs.get(blob.sha256)
        await blobs.touch(blob.sha256)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
