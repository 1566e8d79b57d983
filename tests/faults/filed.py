"""M31: workers are killed and frozen while they write files. Whatever happens, each file ends with what came last.

No reader ever sees a torn or an empty file, or an older one after a newer; versions come in the order in which they
were enqueued; nothing waits for ever.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windlass import Handle, Status
from windlass.apps.blobs.blobs import BlobMissing
from windlass.apps.files.files import Files, files_of
from windlass.apps.files.names import Name, name_of
from windlass.chaos.faults import Finding
from windlass.chaos.place import Pace, Place
from windlass.chaos.report import Report
from windlass.chaos.trial import Trial
from windlass.chaos.waiting import until

SPEC = "tests.faults.filer:app"
WORKERS, FILES = 3, 4
PACE = Pace(lease=1.0, slots=4)


def content_of(name: Name, n: int) -> bytes:
    """What the nth write of a file holds: another length each time, and a digest of itself at its end."""
    body = f"{name.file} {n}\n".encode() * (50 + 37 * n % 400)
    return body + hashlib.sha256(body).hexdigest().encode()


def number_of(content: bytes) -> int | None:
    """Which write this is; None if it is torn."""
    body, digest = content[:-64], content[-64:]
    if not body or hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    return int(body.split(b"\n", 1)[0].split()[1])


@dataclass
class Desk:
    """Who writes and who reads in a trial."""

    trial: Trial
    files: Files
    names: list[Name]
    handles: dict[Name, list[Handle[Any]]] = field(default_factory=dict[Name, list[Handle[Any]]])
    wrong: set[str] = field(default_factory=set[str])
    seen: Counter[tuple[str, Name]] = field(default_factory=Counter[tuple[str, Name]])
    """the newest write that was read, of records and of disks"""
    reads: int = 0

    async def write(self, over: asyncio.Event, least: int) -> None:
        """Writes of every file, until it is over, and so many at least."""
        await asyncio.gather(*(self._write(name, over, least) for name in self.names))

    async def _write(self, name: Name, over: asyncio.Event, least: int) -> None:
        n = 0
        while n < least or not over.is_set():
            n += 1
            made = await self.files.write(name, content_of(name, n), path=f"{name.file}.txt")
            self.handles.setdefault(name, []).append(made)
            await asyncio.sleep(self.trial.random.uniform(0.02, 0.2))  # writers come now and then

    async def read(self, over: asyncio.Event) -> None:
        """Readers of what is committed, and of what is on disk."""
        while not over.is_set():
            for name in self.names:
                await self._read_record(name)
                await asyncio.to_thread(self._read_disk, name)
            await asyncio.sleep(0.005)  # again and again, and no busier than that

    async def _read_record(self, name: Name) -> None:
        state = await (await self.files.records()).read(name)
        if state is None or state.current is None:
            return
        try:
            self._look("record", name, await self.files.blobs.get(state.current.sha256))
        except BlobMissing:
            self.wrong.add(f"the current version of {name.file} has no content")

    def _read_disk(self, name: Name) -> None:
        path = self.trial.place.folder / "disk" / name.space.project / f"{name.file}.txt"
        if path.exists():
            self._look("disk", name, path.read_bytes())

    def _look(self, where: str, name: Name, content: bytes) -> None:
        self.reads += 1
        number = number_of(content)
        if number is None:
            self.wrong.add(f"{name.file} is torn ({where})")
        elif number < self.seen[where, name]:
            self.wrong.add(f"{name.file} is stale ({where}): write {number} after {self.seen[where, name]}")
        else:
            self.seen[where, name] = number

    async def ended(self) -> bool:
        """Whether every write has."""
        ids = [handle.id for handles in self.handles.values() for handle in handles]
        jobs = await self.trial.desk.jobs.several(ids)
        return all(job is not None and job.status.finished for job in jobs)


async def filed(place: Place, seed: int, *, long: bool) -> Finding:
    """Writes and reads, while workers are killed and frozen at random moments."""
    async with Trial(place, pace=PACE, spec=SPEC, seed=seed) as trial:
        files = files_of(trial.app)
        assert files is not None
        desk = Desk(trial, files, [name_of(None, "trial", f"file{n}") for n in range(FILES)])
        await trial.ready(WORKERS)
        over, read = asyncio.Event(), asyncio.Event()
        writing = asyncio.create_task(desk.write(over, 5))
        reading = asyncio.create_task(desk.read(read))
        kills, freezes = await harmed(trial, 10 if long else 2)
        over.set()
        await writing
        done = await until(desk.ended, 8 if place.control else 60)
        read.set()
        await reading
        missing = sorted(desk.wrong) + await judged(desk)
        if not done:
            missing.append("not all writes have ended: a lock is stuck")
        report = Report(
            acknowledged=sum(len(handles) for handles in desk.handles.values()), faults=kills + freezes, deaths=kills
        )
        told = f"{kills} killed, {freezes} frozen, {desk.reads:,} reads, {await superseded(desk)} superseded"
        return Finding(fault="filed", report=report, missing=tuple(missing), figures=told)


async def harmed(trial: Trial, times: int) -> tuple[int, int]:
    """Kill and freeze workers in turn, each at a random moment; those that are frozen go on after their leases."""
    for _ in range(times):
        await asyncio.sleep(trial.random.uniform(0.05, 0.4))  # a moment of no meaning
        frozen = trial.random.choice(trial.alive)
        trial.freeze(frozen)
        await asyncio.sleep(trial.random.uniform(0, 0.3))  # another
        await trial.kill(trial.random.choice(trial.alive))
        trial.note_ends()
        trial.start(1)
        # Beyond the lease and the sweep behind it: others have gone on with its files by then.
        await asyncio.sleep(PACE.recovery + trial.random.uniform(0.2, 0.8))
        trial.thaw(frozen)
    return times, times


async def judged(desk: Desk) -> list[str]:
    """What must not be, in the end."""
    wrong: list[str] = []
    records = await desk.files.records()
    for name in desk.names:
        state = await records.read(name)
        handles = desk.handles[name]
        if state is None or state.current is None:
            wrong.append(f"{name.file} was never written")
            continue
        order = [version.seq for version in state.versions]
        if order != sorted(set(order)):
            wrong.append(f"versions of {name.file} are out of order: {order}")
        if state.waiting:
            wrong.append(f"writes of {name.file} wait for ever: {[one.seq for one in state.waiting]}")
        last = content_of(name, len(handles))
        if await desk.files.blobs.get(state.current.sha256) != last:
            wrong.append(f"{name.file} ends stale (record)")
        if _on_disk(desk.trial.place.folder, name) != last:
            wrong.append(f"{name.file} ends stale (disk)")
        jobs = await desk.trial.desk.jobs.several([handle.id for handle in handles])
        failed = [job for job in jobs if job is None or job.status is not Status.SUCCEEDED]
        if failed:
            wrong.append(f"writes of {name.file} did not succeed: {len(failed)}")
    return wrong


async def superseded(desk: Desk) -> int:
    """Writes that came too late; nothing of them was written."""
    ids = [handle.id for handles in desk.handles.values() for handle in handles]
    jobs = await desk.trial.desk.jobs.several(ids)
    return sum(bool(job and job.result and "superseded" in job.result) for job in jobs)


def _on_disk(folder: Path, name: Name) -> bytes | None:
    path = folder / "disk" / name.space.project / f"{name.file}.txt"
    return path.read_bytes() if path.exists() else None
