"""Writes on every store: in order, whole, and never an older one over a newer."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from tests.apps.files.conftest import NAME, work, written
from windlass import JobFailed, Status
from windlass.apps.files.files import Files, NoSuchFile
from windlass.apps.files.state import Unmet


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


async def test_what_is_written_is_read(files: Files) -> None:
    handle = await files.write(NAME, b"first\x00\xff", user=None)
    with pytest.raises(NoSuchFile, match="nothing was written"):
        await files.current(NAME)
    await work(files)
    result = await handle.result(timeout=5)
    version = await files.current(NAME)
    assert result == {
        "success": True,
        "projectId": "shop",
        "fileId": "example.js",
        "hash": sha256(b"first\x00\xff"),
        "lastModified": str(version.at),
    }
    assert await files.read(NAME) == b"first\x00\xff"
    assert (version.seq, version.size, version.job) == (1, 7, handle.id)
    assert (await files.state(NAME)).waiting == ()


async def test_writes_of_one_file_are_made_in_the_order_in_which_they_were_enqueued(files: Files) -> None:
    handles = [await files.write(NAME, f"content {number}".encode()) for number in range(12)]
    await work(files, concurrency=8)
    state = await files.state(NAME)
    assert [one.seq for one in state.versions] == list(range(1, 13))
    assert [one.job for one in state.versions] == [handle.id for handle in handles]
    assert [await files.blobs.get(one.sha256) for one in state.versions] == [
        f"content {number}".encode() for number in range(12)
    ]
    assert state.versions == tuple(sorted(state.versions, key=lambda one: one.at))


async def test_large_content_waits_in_the_blob_store_and_not_in_the_job(files: Files) -> None:
    content = b"large " * 10_000
    handle = await files.write(NAME, content)
    job = await handle.job()
    assert len(job.payload_json) < 1000
    await work(files)
    assert await files.read(NAME) == content


async def test_a_write_whose_condition_holds_no_more_when_its_turn_comes_is_refused(files: Files) -> None:
    first = await written(files, b"one")
    based = await files.write(NAME, b"two", if_match=[first["hash"]])
    late = await files.write(NAME, b"three", if_match=[first["hash"]])
    await work(files)
    assert (await based.result(timeout=5))["success"]
    with pytest.raises(JobFailed, match="412"):
        await late.result(timeout=5)
    assert await files.read(NAME) == b"two"
    assert (await late.job()).attempts == 1  # trying again would not help
    with pytest.raises(Unmet, match="412"):
        await files.write(NAME, b"x", if_match=[first["hash"]])
    with pytest.raises(Unmet, match="412"):
        await files.write(NAME, b"x", if_none_match=True)
    assert (await files.state(NAME)).waiting == ()
    await written(files, b"four", if_match=["*"])


async def test_an_old_job_that_is_tried_again_after_a_newer_commit_writes_nothing(files: Files) -> None:
    old = await files.write(NAME, b"old")
    await files.app.jobs.cancel(old.id)
    await written(files, b"new")
    await files.app.jobs.retry(old.id)
    await work(files)
    result = await old.result(timeout=5)
    assert (result["success"], result.get("superseded"), result["hash"]) == (False, 2, sha256(b"new"))
    assert await files.read(NAME) == b"new"
    assert [one.seq for one in (await files.state(NAME)).versions] == [2]


async def test_later_writes_wait_while_an_earlier_one_is_tried_again(files: Files, tmp_path: Path) -> None:
    """The folder of blobs is away for a moment: the first write fails, and those behind it do not go before it."""
    away = tmp_path / "blobs"
    away.write_text("no folder")
    handles = [await files.write(NAME, f"{number}".encode()) for number in range(4)]
    worker = files.app.worker(concurrency=4)
    async with worker:
        async for entry in handles[0].events():
            if getattr(entry, "status", None) is Status.RETRYING:
                away.unlink()
                break
        await asyncio.gather(*(handle.wait(timeout=10) for handle in handles))
    assert [one.seq for one in (await files.state(NAME)).versions] == [1, 2, 3, 4]
    assert await files.read(NAME) == b"3"
    assert (await handles[0].job()).attempts > 1


async def test_later_writes_go_on_when_an_earlier_one_has_failed_for_good(files: Files) -> None:
    first = await written(files, b"one")
    large = await files.write(NAME, b"x" * 50_000)
    await files.blobs.collect(sha256(b"x" * 50_000), 0)
    last = await files.write(NAME, b"three")
    await work(files)
    with pytest.raises(JobFailed, match="is not in the store"):
        await large.result(timeout=5)
    assert (await last.result(timeout=5))["success"]
    assert await files.read(NAME) == b"three"
    assert first["hash"] == (await files.state(NAME)).versions[0].sha256


async def test_a_version_is_restored_as_a_new_one(files: Files) -> None:
    for content in (b"one", b"two"):
        await written(files, content)
    handle = await files.restore(NAME, 1)
    await work(files)
    assert (await handle.result(timeout=5))["hash"] == sha256(b"one")
    assert [one.seq for one in (await files.state(NAME)).versions] == [1, 2, 3]
    with pytest.raises(NoSuchFile, match="version 9"):
        await files.restore(NAME, 9)


async def test_what_is_asked_about_all_writes_is_counted(files: Files) -> None:
    await written(files, b"one")
    await files.write(NAME, b"two")
    assert await files.stats(NAME.space) == {"waiting": 1, "active": 0, "completed": 1, "failed": 0, "delayed": 0}
    assert await files.stats() == await files.stats(NAME.space)
