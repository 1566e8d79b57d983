"""`script/bench --files`: 1,000 small files over 50 projects by four workers, against a bare loop beside it.

The bare loop is four processes that write as many files to the same disk: a temporary file, fsync, rename, fsync of the
folder, and a look at what is there. It has no queue, no order, no versions and no records. Both ways take turns.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import Figure, median
from bench.filed import CONTENT, PROJECTS, files_at
from bench.mongo import MongoGround
from bench.postgres import PostgresGround
from bench.redis import RedisGround
from bench.sqlite import SqliteGround
from tests.support.servers import start_mongo, start_postgres, start_redis
from windlass.apps.files.names import name_of

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncGenerator, Sequence

    from bench.measures import Ground

_ROOT = Path(__file__).parents[1]
_WORKERS, _ROUNDS, _FILES = 4, 5, 1_000
_SERVERS = {
    "postgres": (start_postgres, PostgresGround),
    "mongo": (start_mongo, MongoGround),
    "redis": (start_redis, RedisGround),
}


async def measure_files(store: str, *, quick: bool = False, **_: object) -> AsyncGenerator[Figure, None]:
    """The figure of a store."""
    rounds = 1 if quick else _ROUNDS
    with tempfile.TemporaryDirectory(prefix="windlass-bench-", dir=Path.cwd()) as folder:
        place = Path(folder)
        if store == "sqlite":
            yield await _against(SqliteGround(place), place, rounds)
            return
        start, ground = _SERVERS[store]
        with start() as server:
            yield await _against(ground(server.url, place), place, rounds)


async def _against(ground: Ground, folder: Path, rounds: int) -> Figure:
    found: dict[str, list[float]] = {"windlass": [], "bare": []}
    for number in range(rounds):
        for way in list(found) if number % 2 else reversed(found):
            place = folder / f"{way}{number}"
            place.mkdir()
            rate = await (_bare(place) if way == "bare" else _ours(ground.url(f"files{number}"), place))
            found[way].append(rate)
    shares = [ours / bare for ours, bare in zip(found["windlass"], found["bare"], strict=True)]
    told = {f"{way} files/s": median(rates) for way, rates in found.items()}
    return Figure(name="small files / bare", value=median(shares), unit="", least=0.35, told=told)


async def _bare(folder: Path) -> float:
    """Files a second, of four processes that begin together."""
    share = _FILES // _WORKERS
    processes = [await _begin("bare", str(folder), str(number * share), str(share)) for number in range(_WORKERS)]
    spans = await _together(processes)
    return _FILES / (max(end for _, end in spans) - min(begin for begin, _ in spans))


async def _ours(url: str, folder: Path) -> float:
    """Files a second, from the first that is begun until the last has ended, by the clock of the store."""
    files = files_at(url, folder)
    names = [name_of(None, f"project{n % PROJECTS}", f"file{n // PROJECTS}.txt") for n in range(_FILES)]
    async with files.app as app:
        # Workers that have done something before are compared with a loop that has nothing to load.
        warm = [await files.write(name_of(None, "warm", f"file{n}"), CONTENT) for n in range(40)]
        processes = [await _begin("worker", url, str(folder)) for _ in range(_WORKERS)]
        for handle in warm:
            await handle.wait(timeout=60)
        await app.queues.pause("files")
        handles = await asyncio.gather(*(files.write(name, CONTENT + name.text.encode()) for name in names))
        await app.queues.resume("files")
        for handle in handles:
            await handle.wait(timeout=60)
        jobs = [job for job in await app.jobs.several([handle.id for handle in handles]) if job is not None]
        for process in processes:
            process.terminate()
        for process in processes:
            await process.wait()
        assert all(job.result["success"] for job in jobs)
        begun = min(job.started_at for job in jobs if job.started_at is not None)
        ended = max(job.finished_at for job in jobs if job.finished_at is not None)
    app.close()
    return _FILES / (ended - begun).total_seconds()


async def _begin(*words: str) -> Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.filed", *words), cwd=_ROOT, stdin=pipe, stdout=pipe
    )


async def _together(processes: Sequence[Process]) -> list[tuple[float, float]]:
    """Let them begin when all are ready; from when to when each was at it."""
    for process in processes:
        assert process.stdout is not None
        await process.stdout.readline()
    told = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
    return [tuple(map(float, out.split())) for out, _ in told]  # type: ignore[misc]  # two numbers each
