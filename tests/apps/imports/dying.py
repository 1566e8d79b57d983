"""Workers that import, to be killed: `python -m tests.apps.imports.dying STORE NAMESPACE FOLDER`.

Each line at standard input, `BATCHES SECONDS`, starts one, which kills itself so long after it has begun to write so
many batches; with 0 batches it lives. They are forked of a process that has loaded everything and does nothing: a
fresh one would take longer to start than it is to live.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

import asyncpg
import pymongo

from windlass import Windlass
from windlass.apps.imports import running
from windlass.apps.imports.imports import install
from windlass.apps.imports.settings import ImportsSettings
from windlass.apps.imports.targets import mongo, postgres, sqlite
from windlass.apps.imports.targets.target import Batch, Counts, Run, Target

LOADED = (asyncpg, pymongo, running, mongo, postgres, sqlite)


async def work(url: str, namespace: str, folder: Path, batches: int, seconds: float) -> None:
    """Work until killed."""
    app = Windlass(url, namespace=namespace)
    imports = install(app, ImportsSettings(folder=folder, uploads=folder / "uploads", batch=20, crashes=1000))
    async with app, app.worker(lease=0.5, poll=0.05, rescue=0.05):
        if batches:
            die_while_writing(imports.target, batches, seconds)
        await asyncio.Event().wait()


def die_while_writing(target: Target, batches: int, seconds: float) -> None:
    write, left = target.write, batches

    async def counted(run: Run, batch: Batch, before: Counts) -> Counts:
        nonlocal left
        left -= 1
        if left == 0:
            threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return await write(run, batch, before)

    target.write = counted  # type: ignore[method-assign]  # the clock for its death; nothing else is changed


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            batches, seconds = line.split()
            asyncio.run(work(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(batches), float(seconds)))
        os.waitpid(pid, 0)
        say("dead")
