"""M13: the disk of the store is full for a while. Whoever enqueues is told so; nothing that was acknowledged is lost.

The disk is a small file system in memory, mounted where the store keeps its data, and filled by a file that is removed
later. Mounting needs root; without it `DiskNotOurs` says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from tests.faults.judging import kind_of, spec_of
from tests.faults.own_server import own_server
from tests.support.processes import Server, give
from windlass.chaos.faults import Finding
from windlass.chaos.history import What
from windlass.chaos.place import Place
from windlass.chaos.trial import Trial
from windlass.chaos.waiting import until

SIZES = {"sqlite": 16, "redis": 32, "postgres": 160, "mongo": 512}
"""MiB"""
BALLAST = "ballast"
TYPED = ("StoreUnavailable", "StoreError")


class DiskNotOurs(Exception):
    """No disk can be made small here."""


@contextmanager
def small_disk(at: Path, megabytes: int) -> Generator[None, None, None]:
    """A file system of this size at a folder; what lay in the folder is moved onto it, and back out of sight."""
    if os.geteuid() != 0:
        raise DiskNotOurs(
            "M13 was NOT PROVED HERE: to mount a small disk one has to be root. What is proved without: "
            "tests/stores/sqlite/test_engine.py limits the pages of a file"
        )
    info = at.stat()
    aside = at.with_name(f"{at.name}-aside")
    subprocess.run(["cp", "-a", at, aside], check=True)
    owner = f"uid={info.st_uid},gid={info.st_gid},mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,{owner}", "windlass-disk", at], check=True)
    try:
        subprocess.run(["cp", "-a", f"{aside}/.", at], check=True)
        shutil.rmtree(aside)
        yield
    finally:
        # Lazily: a process that is slow to end may hold a file of it.
        subprocess.run(["umount", "-l", at], check=True)


def fill(at: Path) -> None:
    """Leave no room at all."""
    with (at / BALLAST).open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"\0" * 65_536):
            pass
    with (at / BALLAST).open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"\0" * 512):
            pass


def free(at: Path) -> None:
    (at / BALLAST).unlink()


async def full_disk(place: Place, seed: int, *, long: bool) -> Finding:
    """Fill the disk under load, wait until an enqueue is refused, free it, and go on."""
    if kind_of(place) == "sqlite":
        place.folder.mkdir(parents=True, exist_ok=True)
        disk = place.folder / "disk"
        disk.mkdir()
        with small_disk(disk, SIZES["sqlite"]):
            own = replace(place, url=f"sqlite:///{disk}/jobs.db?synchronous=NORMAL&timeout=3")
            return await _filled(own, seed, disk, None, long=long)
    with own_server(place) as (server, own):
        [node] = server.nodes
        await asyncio.to_thread(node.stop)
        with small_disk(node.data, SIZES[kind_of(place)]):
            try:
                await asyncio.to_thread(server.restart)
                return await _filled(own, seed, node.data, server, long=long)
            finally:
                await asyncio.to_thread(node.stop)


async def _filled(place: Place, seed: int, disk: Path, server: Server | None, *, long: bool) -> Finding:
    missing: list[str] = []
    async with Trial(place, spec=spec_of(place), seed=seed) as trial:
        await trial.ready(2)
        await trial.fill(100 if long else 20, 0.05)
        trial.fault("disk")
        fill(disk)
        if kind_of(place) == "mongo":
            await asyncio.to_thread(_checkpoint, place.url)
        async with trial.producing(0.05, producers=2, pause=0.02):
            if not await until(lambda: bool(_refused(trial)), 3 if place.control else 30):
                missing.append("no enqueue was refused while the disk was full: nothing was proved")
            await asyncio.sleep(1.5)  # the subject: workers and producers beside a full disk
            free(disk)
            if server is not None:
                await asyncio.to_thread(_start_again, server)
            trial.healed("disk")
            enough = len(_acknowledged(trial)) + 5
            if not await until(partial(_goes_on, trial, enough), 30):
                missing.append("no enqueue was acknowledged after the disk was freed")
        if not await trial.finished(90 if long else 40):
            missing.append("not all ended after the disk was freed")
        report = await trial.judged()
        refused = _refused(trial)
    untyped = [note for note in refused if not note.startswith(TYPED)]
    missing += [f"an error that says nothing: {untyped[0]}"] if untyped else []
    if server is None:
        with closing(sqlite3.connect(disk / "jobs.db")) as db:
            [whole] = db.execute("PRAGMA integrity_check").fetchone()
        missing += [] if whole == "ok" else [f"integrity_check: {whole}"]
    return Finding(fault="disk", report=report, missing=tuple(missing))


def _refused(trial: Trial) -> list[str]:
    return [str(line.note) for line in trial.history.lines() if line.what is What.UNKNOWN]


def _acknowledged(trial: Trial) -> list[str]:
    return [str(line.job) for line in trial.history.lines() if line.what is What.ACKNOWLEDGED]


def _goes_on(trial: Trial, enough: int) -> bool:
    return len(_acknowledged(trial)) >= enough


def _checkpoint(url: str) -> None:
    """Have MongoDB write its files now: its journal was laid out beforehand, and would hold for a minute."""
    client: MongoClient[dict[str, Any]] = MongoClient(url, serverSelectionTimeoutMS=2_000, timeoutMS=3_000)
    with client, contextlib.suppress(PyMongoError):
        client.admin.command("fsync")


def _start_again(server: Server) -> None:
    """A server that stopped for want of room is started by whoever made room."""
    [node] = server.nodes
    if not node.running:
        give(node.data, node.account)
        server.restart()
