"""A program of the crew: `race` takes one lock again and again, `hold` takes it and keeps it until told to let go.

The witnesses stand outside windlass: a file that only one may create while it is there, and a ledger.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from windlass import LockLost, Windlass

FOLDER = Path(os.environ["CREW_FOLDER"])
app = Windlass(os.environ["CREW_URL"], namespace=os.environ["CREW_NAMESPACE"])


def write(*words: object) -> None:
    """One line in one write, so that processes do not mix theirs."""
    with (FOLDER / "ledger").open("a", encoding="utf-8") as ledger:
        ledger.write(f"{' '.join(map(str, words))}\n")


async def told(word: str) -> None:
    while not (FOLDER / word).exists():
        await asyncio.sleep(0.01)  # a file cannot be waited for otherwise


async def race(times: int) -> None:
    write("ready", os.getpid())
    await told("go")
    for _ in range(times):
        async with app.lock("mast", ttl=10, wait=60) as lock:
            try:
                (FOLDER / "inside").touch(exist_ok=False)
            except FileExistsError:
                write("clash", os.getpid(), lock.token)
            write("inside", os.getpid(), lock.token)
            await asyncio.sleep(0.002)  # its work inside
            (FOLDER / "inside").unlink(missing_ok=True)


async def hold(ttl: float) -> None:
    try:
        async with app.lock("mast", ttl=ttl) as lock:
            write("held", os.getpid(), lock.token)
            await told(f"let-go-{os.getpid()}")
            write("lost" if lock.lost else "kept", os.getpid(), lock.token)
    except LockLost as error:
        write("refused", os.getpid(), error.token)
    else:
        write("released", os.getpid())


async def main(what: str, figure: str) -> None:
    async with app:
        await (race(int(figure)) if what == "race" else hold(float(figure)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
