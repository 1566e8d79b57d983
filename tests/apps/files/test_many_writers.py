"""Many writers of one file on every store, while reads go on, attempts fail and workers stop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.apps.files.conftest import NAME, files_at
from tests.contract.places import Place
from tests.control.conftest import address
from windlass import Happened, Status
from windlass.apps.blobs.blobs import Blob, BlobError, Blobs, Content
from windlass.apps.files.files import Files

WRITERS = 64
pytestmark = pytest.mark.timeout(120)


def content_of(number: int) -> bytes:
    return f"content {number:03}\n".encode() * (number + 1)


class Failing:
    """Blobs that cannot be put once in a while: each sixteenth write fails at its first attempt."""

    def __init__(self, real: Blobs) -> None:
        self._real = real
        self.failed: set[bytes] = set()

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    async def put(self, content: Content, *, largest: int) -> Blob:
        assert isinstance(content, bytes)
        if len(content.splitlines()) % 16 == 0 and content not in self.failed:
            self.failed.add(content)
            raise BlobError("injected")
        return await self._real.put(content, largest=largest)


async def read(files: Files, over: asyncio.Event) -> list[int]:
    """Read again and again; the numbers of what was read, each whole."""
    seen: list[int] = []
    while not over.is_set():
        state = await (await files.records()).read(NAME)
        if state is not None and state.current is not None:
            content = await files.blobs.get(state.current.sha256)
            number = int(content.split(b"\n")[0].split()[1])
            assert content == content_of(number)
            seen.append(number)
        await asyncio.sleep(0.002)  # readers come now and then
    return seen


@pytest.mark.parametrize("failing", [False, True], ids=["all go well", "a few fail at first"])
async def test_every_version_is_written_whole_and_in_order(place: Place, tmp_path: Path, failing: bool) -> None:
    url, namespace = address(place)
    files = files_at(url, namespace, tmp_path, versions=WRITERS, retries=5)
    flaky = Failing(files.blobs)
    if failing:
        files.blobs = flaky  # type: ignore[assignment]  # the rest is the real one's
    async with files.app as app:
        # Enqueued by as many writers at once: their order is that of the sequences which they were given.
        handles = await asyncio.gather(*(files.write(NAME, content_of(number)) for number in range(WRITERS)))
        jobs = [await handle.job() for handle in handles]
        order = [int(job.payload["order"]["seq"]) for job in jobs]
        assert sorted(order) == list(range(1, WRITERS + 1))
        over = asyncio.Event()
        reading = asyncio.create_task(read(files, over))
        async with app.worker(concurrency=8, poll=0.2):
            for handle in handles:
                assert (await handle.result(timeout=100))["success"]
        over.set()
        seen = await reading
        state = await files.state(NAME)
        assert [version.seq for version in state.versions] == list(range(1, WRITERS + 1))
        by_seq = dict(zip(order, range(WRITERS), strict=True))
        for version in state.versions:
            assert await files.blobs.get(version.sha256) == content_of(by_seq[version.seq])
        assert await files.read(NAME) == content_of(by_seq[WRITERS])
        places = {number: seq for seq, number in by_seq.items()}
        assert [places[number] for number in seen] == sorted(places[number] for number in seen)
        assert bool(flaky.failed) == failing
    app.close()


async def test_a_worker_that_stops_finishes_its_write_or_hands_it_back(one: Files) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Waiting(Failing):
        async def put(self, content: Content, *, largest: int) -> Blob:
            begun.set()
            await go_on.wait()
            return await self._real.put(content, largest=largest)

    real = one.blobs
    one.blobs = Waiting(real)  # type: ignore[assignment]  # the rest is the real one's
    handle = await one.write(NAME, b"one")
    async with asyncio.TaskGroup() as tasks, one.app.worker(grace=10):
        await begun.wait()
        tasks.create_task(_after(go_on, 0.05))
    assert (await handle.job()).status is Status.SUCCEEDED  # it was finished within the grace period

    begun.clear()
    go_on.clear()
    handle = await one.write(NAME, b"two")
    async with one.app.worker(grace=0.05):
        await begun.wait()
    job = await handle.job()
    assert (job.status, job.attempts) == (Status.QUEUED, 0)  # handed back, not counted
    assert Happened.RELEASED in [entry.happened for entry in await handle.history()]
    assert await one.read(NAME) == b"one"
    go_on.set()
    await one.app.worker(drain=True).run()
    assert await one.read(NAME) == b"two"


async def _after(event: asyncio.Event, seconds: float) -> None:
    await asyncio.sleep(seconds)  # a moment within the grace period
    event.set()


async def test_a_write_that_is_cancelled_gives_its_lock_back(one: Files) -> None:
    begun = asyncio.Event()

    class Stuck(Failing):
        async def put(self, content: Content, *, largest: int) -> Blob:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

    real, one.blobs = one.blobs, Stuck(one.blobs)  # type: ignore[assignment]  # the rest is the real one's
    first = await one.write(NAME, b"never")
    second = await one.write(NAME, b"second")
    async with one.app.worker(poll=0.1, heartbeat=0.1):
        await begun.wait()
        one.blobs = real
        await first.cancel()
        assert (await second.result(timeout=15))["success"]
    assert (await first.job()).status is Status.CANCELLED
    assert [version.seq for version in (await one.state(NAME)).versions] == [2]


async def test_content_that_nothing_names_is_collected_and_what_is_named_stays(one: Files) -> None:
    one.settings = one.settings.model_copy(update={"versions": 1, "inline": 0})
    handles = [await one.write(NAME, content) for content in (b"old", b"current", b"waits")]
    await one.app.jobs.cancel(handles[2].id)
    await one.app.worker(drain=True).run()
    lost = await one.blobs.put(b"nobody's", largest=100)
    one.settings = one.settings.model_copy(update={"keep": 0})
    assert await one.sweep() == 2  # nobody's, and the version that is not kept
    assert lost.sha256 not in {blob.sha256 async for blob in one.blobs.older_than(0)}
    assert await one.read(NAME) == b"current"
    await one.app.jobs.retry(handles[2].id)
    await one.app.worker(drain=True).run()
    assert await one.read(NAME) == b"waits"
