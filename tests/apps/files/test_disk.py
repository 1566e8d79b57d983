"""Plain files on disk: what is committed is there, whole, whoever stops in between; nothing leads out."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.apps.files.conftest import NAME, work, written
from windlass import Status, WindlassError
from windlass.apps.blobs.blobs import NoSpace
from windlass.apps.files.disk import Disk, PathHeld, PathRefused, parts_of
from windlass.apps.files.files import Files
from windlass.apps.files.names import Space, name_of
from windlass.apps.files.records.records import PathTaken

SPACE = NAME.space


async def stream(content: bytes) -> AsyncIterator[bytes]:
    step = len(content) // 3 + 1
    for start in range(0, len(content), step):
        yield content[start : start + step]


async def put(disk: Disk, path: str, content: bytes) -> None:
    async with disk.held(SPACE, path, 0) as target:
        await target.write(stream(content), hashlib.sha256(content).hexdigest())


async def test_a_file_on_disk_follows_its_versions(one: Files, tmp_path: Path) -> None:
    place = tmp_path / "disk" / "shop" / "src" / "example.js"
    await written(one, b"one", path="src/example.js")
    assert place.read_bytes() == b"one"
    await written(one, b"two")  # it has its place from then on
    assert place.read_bytes() == b"two"
    handle = await one.restore(NAME, 1)
    await work(one)
    await handle.result(timeout=5)
    assert place.read_bytes() == b"one"
    assert sorted(path.name for path in place.parent.iterdir()) == ["example.js"]


async def test_two_files_cannot_have_one_place(one: Files) -> None:
    await written(one, b"one", path="a.txt")
    with pytest.raises(PathTaken):
        await one.write(name_of(None, "shop", "other"), b"x", path="a.txt")
    assert await one.stats() == {"waiting": 0, "active": 0, "completed": 1, "failed": 0, "delayed": 0}


async def test_a_writer_that_stopped_before_its_rename_cannot_put_old_content_over_new(
    one: Files, tmp_path: Path
) -> None:
    """It holds the file's lock, has read the record, and stops: later writes are committed, and wait for the disk."""
    place = tmp_path / "disk" / "shop" / "a.txt"
    await written(one, b"old", path="a.txt")
    async with one.disk.held(SPACE, "a.txt", 0) as stopped:
        newer = await one.write(NAME, b"newer")
        async with one.app.worker(poll=0.1):
            async for entry in newer.events():
                if getattr(entry, "status", None) is Status.SCHEDULED:
                    break
            assert (await one.current(NAME)).seq == 2  # readers of the record see it at once
            assert place.read_bytes() == b"old"
            await stopped.write(stream(b"old"), hashlib.sha256(b"old").hexdigest())  # it goes on, and renames
    async with one.app.worker(poll=0.1):
        await newer.result(timeout=10)
    assert place.read_bytes() == b"newer"


async def test_who_finds_a_newer_version_committed_puts_that_on_disk(one: Files, tmp_path: Path) -> None:
    """The job of an old version, tried again after a crash before its rename, finds the record further on."""
    old = await one.write(NAME, b"old", path="a.txt")
    await work(one)
    await written(one, b"new")
    place = tmp_path / "disk" / "shop" / "a.txt"
    place.unlink()
    await one.app.jobs.retry(old.id)
    await work(one)
    assert (await old.result(timeout=5))["hash"] == hashlib.sha256(b"old").hexdigest()
    assert place.read_bytes() == b"new"


async def test_readers_see_the_old_file_or_the_new_one_and_never_a_part(tmp_path: Path) -> None:
    disk, place = Disk(tmp_path), tmp_path / "shop" / "a.txt"
    contents = [bytes([number]) * 50_000 for number in range(30)]
    await put(disk, "a.txt", contents[0])
    seen = set[bytes]()
    over = asyncio.Event()

    def read() -> None:
        while not over.is_set():
            seen.add(place.read_bytes())

    reading = asyncio.create_task(asyncio.to_thread(read))
    try:
        for content in contents:
            await put(disk, "a.txt", content)
    finally:
        over.set()
    await reading
    assert seen <= set(contents)


async def test_what_a_killed_writer_has_left_is_no_obstacle(tmp_path: Path) -> None:
    disk = Disk(tmp_path)

    async def breaking() -> AsyncIterator[bytes]:
        yield b"half"
        [left] = (tmp_path / "shop").glob(".windlass-*[!s]")
        os.link(left, tmp_path / "left")  # as it would stay if the process died here
        raise ConnectionError

    with pytest.raises(ConnectionError):
        async with disk.held(SPACE, "a.txt", 0) as target:
            await target.write(breaking(), "")
    [lock] = (tmp_path / "shop" / ".windlass-locks").iterdir()
    (tmp_path / "left").rename(tmp_path / "shop" / f".windlass-{lock.name}")
    await put(disk, "a.txt", b"whole")
    assert (tmp_path / "shop" / "a.txt").read_bytes() == b"whole"
    assert [path.name for path in (tmp_path / "shop").glob(".windlass-*")] == [".windlass-locks"]


async def test_the_lock_of_a_place_is_held_by_one_and_ends_with_it(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    async with disk.held(SPACE, "a.txt", 0):
        with pytest.raises(PathHeld):
            async with disk.held(SPACE, "a.txt", 0.05):
                pass
        async with disk.held(SPACE, "b.txt", 0), disk.held(Space("ann", "shop"), "a.txt", 0):
            pass
    await put(disk, "a.txt", b"x")


async def test_a_link_that_is_planted_meanwhile_does_not_lead_out(one: Files, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "disk" / "shop" / "folder"
    handle = await one.write(NAME, b"x", path="folder/a.txt")
    folder.parent.mkdir(parents=True)
    folder.symlink_to(outside)
    await work(one)
    job = await handle.job()
    assert (job.status, list(outside.iterdir())) == (Status.FAILED, [])
    assert job.error is not None
    assert "symbolic link" in job.error.message
    folder.unlink()
    folder.mkdir()
    (outside / "b").write_bytes(b"b")
    (folder / "b.txt").symlink_to(outside / "b")
    disk = Disk(tmp_path / "disk")
    with pytest.raises(PathRefused, match="symbolic link"):
        await put(disk, "folder/b.txt", b"x")
    assert (outside / "b").read_bytes() == b"b"


async def test_a_link_in_place_of_the_file_that_is_written_is_replaced_and_not_followed(tmp_path: Path) -> None:
    disk, outside = Disk(tmp_path / "disk"), tmp_path / "outside"
    outside.write_bytes(b"mine")
    place = tmp_path / "disk" / "shop" / "a.txt"

    async def planting() -> AsyncIterator[bytes]:
        yield b"content"
        place.symlink_to(outside)

    async with disk.held(SPACE, "a.txt", 0) as target:
        await target.write(planting(), hashlib.sha256(b"content").hexdigest())
    assert outside.read_bytes() == b"mine"
    assert (place.is_symlink(), place.read_bytes()) == (False, b"content")


@pytest.mark.parametrize("path", ["a.txt", "src/deep/er/a.b.c", "Ümläut/ß.txt", "...", "a b/c d", "x" * 200])
def test_ordinary_paths_are_taken(path: str) -> None:
    if path == "...":
        with pytest.raises(PathRefused, match="dot"):
            parts_of(path)
    else:
        assert "/".join(parts_of(path)) == path


async def test_nobodys_project_and_a_users_are_never_one_folder(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    spaces = [
        Space("", "@ann"),
        Space("ann", "x"),
        Space("", "ann"),
        Space("a/b", "x"),
        Space("..", "x"),
        Space("", ".git"),
    ]
    for number, space in enumerate(spaces):
        async with disk.held(space, "a.txt", 0) as target:
            content = str(number).encode()
            await target.write(stream(content), hashlib.sha256(content).hexdigest())
    found = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("a.txt")}
    assert sorted(found.values()) == [str(number) for number in range(len(spaces))]
    assert not [path for path in found if ".." in path or path.startswith(".git")]


async def test_without_a_root_no_path_is_taken() -> None:
    with pytest.raises(PathRefused, match="WINDLASS_FILES_ROOT"):
        Disk(None).check(SPACE, "a.txt")


async def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, place = Disk(tmp_path), tmp_path / "shop" / "a.txt"
    await put(disk, "a.txt", b"old")
    opened = os.open

    def full(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_EXCL:
            os.close(opened(path, flags, mode, dir_fd=dir_fd))
            return opened("/dev/full", os.O_WRONLY)
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(NoSpace, match="the disk is full"):
        await put(disk, "a.txt", b"new")
    assert place.read_bytes() == b"old"
    assert sorted(path.name for path in place.parent.iterdir()) == [".windlass-locks", "a.txt"]


async def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    await put(disk, "a/b.txt", b"x")
    (tmp_path / "shop" / "link").symlink_to(tmp_path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        await put(disk, "a/b.txt", b"y")
        for path in ("link/x", "a", "../x"):
            with pytest.raises(WindlassError):
                await put(disk, path, b"z")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
