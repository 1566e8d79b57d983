"""M15: one SQLite file with eight writing processes, a reader that holds a snapshot, and workers killed in between."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from windlass.chaos.faults import Finding
from windlass.chaos.history import What
from windlass.chaos.place import Place
from windlass.chaos.trial import Trial

WRITERS = 8
WAL_MOST = 64 * 2**20
"""bytes; a held snapshot keeps the log from beginning anew, so it grows with what is written meanwhile"""
HURRY = "&timeout=0.001"


async def crowded_file(place: Place, seed: int, *, long: bool) -> Finding:
    """Producers here, and workers, of which one is killed and replaced all the time."""
    jobs, kills = (110, 25) if long else (60, 8)
    file = Path(urlsplit(place.url).path.removeprefix("/"))
    if place.control == "no_patience":
        # Who does not wait for the others is told that the file is locked.
        place = replace(place, url=place.url + HURRY, control="")
    wal = file.with_name(f"{file.name}-wal")
    largest = 0
    async with Trial(place, seed=seed) as trial:
        await trial.ready(WRITERS - 1)
        await trial.fill(jobs // 2, 0.02)
        with closing(sqlite3.connect(file, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            seen = reader.execute("SELECT count(*) FROM windlass_jobs").fetchone()
            async with trial.producing(0.02, producers=2, pause=0.05):
                for _ in range(kills):
                    await trial.kill(trial.random.choice(trial.alive))
                    trial.start(1)
                    await asyncio.sleep(trial.random.uniform(0.05, 0.3))  # the others get on before the next dies
                    largest = max(largest, wal.stat().st_size)
            held = reader.execute("SELECT count(*) FROM windlass_jobs").fetchone() == seen
            reader.execute("COMMIT")
        await trial.fill(jobs // 2, 0.02)
        await trial.finished(120 if long else 30)
        largest = max(largest, wal.stat().st_size)
        report = await trial.judged()
        lines = trial.history.lines()
        logs = [hand.log.read_text(errors="replace") for hand in trial.hands]
    with closing(sqlite3.connect(file)) as db:
        [whole] = db.execute("PRAGMA integrity_check").fetchone()
    locked = [str(line.note) for line in lines if line.what is What.UNKNOWN]
    locked += [text for log in logs for text in log.splitlines() if "locked" in text]
    missing = [f"{len(locked)} times it was told that the file is locked, as {locked[0]}"] if locked else []
    missing += [] if whole == "ok" else [f"integrity_check: {whole}"]
    missing += [] if held else ["the reader did not hold its snapshot: nothing was proved"]
    missing += [f"the log grew to {largest:,} bytes"] if largest > WAL_MOST else []
    figures = f"{kills} kills, log at most {largest / 2**20:.1f} MiB"
    return Finding(fault="crowded file", report=report, missing=tuple(missing), figures=figures)
