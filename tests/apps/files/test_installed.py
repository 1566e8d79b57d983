"""What installing files does to an application: its workers' leases, one write at a time if asked, what ships."""

from __future__ import annotations

import itertools
from datetime import timedelta
from pathlib import Path

import pytest

from tests.apps.files.conftest import files_at, work
from windlass import Windlass
from windlass.apps.files.files import files_of
from windlass.apps.files.names import name_of


def lease(app: Windlass, **words: float) -> timedelta:
    return app.worker(**words).config.lease  # type: ignore[arg-type]  # durations


async def test_the_lock_of_a_lost_worker_is_free_after_the_lock_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    files = files_at(url, "windlass", tmp_path, lock_timeout=5)
    assert lease(files.app) == timedelta(seconds=5)
    assert lease(files.app, lease=12) == timedelta(seconds=12)
    files.app.lease_at_most(60)
    assert lease(files.app) == timedelta(seconds=5)
    assert lease(files_at(url, "windlass", tmp_path, lock_timeout=0.1).app) == timedelta(seconds=1)
    assert lease(Windlass(url)) == timedelta(seconds=30)
    monkeypatch.setenv("WINDLASS_LEASE_MS", "20000")
    assert lease(files_at(url, "windlass", tmp_path, lock_timeout=5).app) == timedelta(seconds=20)


async def test_one_write_runs_at_a_time_if_that_is_set(tmp_path: Path) -> None:
    files = files_at(f"sqlite:///{tmp_path}/jobs.db?synchronous=OFF", "windlass", tmp_path, sequential=True)
    names = [name_of(None, "shop", f"file{number}") for number in range(6)]
    async with files.app as app:
        handles = [await files.write(name, b"x") for name in names]
        assert {(await handle.job()).limit_key for handle in handles} == {"lock:files"}
        await work(files, concurrency=6)
        jobs = [await handle.job() for handle in handles]
        spans = sorted((job.started_at, job.finished_at) for job in jobs if job.started_at and job.finished_at)
        assert [begun for begun, _ in spans] == [job.started_at for job in jobs]
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
    app.close()


async def test_the_lock_of_a_file_has_the_name_that_was_described(tmp_path: Path) -> None:
    files = files_at(f"sqlite:///{tmp_path}/jobs.db?synchronous=OFF", "windlass", tmp_path)
    async with files.app as app:
        handles = [await files.write(name_of(owner, "p1", "a.js"), b"x") for owner in (None, "ann")]
        assert [(await handle.job()).limit_key for handle in handles] == [
            "lock:project:p1:file:a.js",
            "lock:project:ann/p1:file:a.js",
        ]
        assert files_of(app) is files
    app.close()
