"""An import that is killed with SIGKILL again and again before your eyes, and is exactly right in the end.

The rows and the cursor of the job commit in one transaction: `ctx.save_now(row, tx=db)`. Whenever its worker dies, the
next one goes on behind the last row that is really there. With `worker` as its argument, this program is that worker.
"""

import asyncio
import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from tempfile import gettempdir

from windlass import Ctx, Windlass

ROWS, KILLS = 60, 3
file = Path(os.environ.setdefault("SHOP", f"{gettempdir()}/shop-{os.getpid()}.db"))  # its workers are told, too
app = Windlass(f"sqlite:///{file}")  # the jobs live in the application's own file


@app.job(max_crashes=100)
def import_rows(ctx: Ctx, n: int) -> str:
    with closing(sqlite3.connect(file, timeout=30)) as db:
        for row in range((ctx.saved or 0) + 1, n + 1):
            with db:  # commits at the end
                db.execute("INSERT INTO rows VALUES (?)", (row,))
                ctx.save_now(row, tx=db)
    return f"{n} rows"


async def work() -> None:
    await app.worker(lease=1.0, rescue=0.2, poll=0.1).run()


def imported() -> list[int]:
    with closing(sqlite3.connect(file, timeout=30)) as db:
        return [row for (row,) in db.execute("SELECT row FROM rows ORDER BY row")]


async def main() -> None:
    async with app:  # opening the store makes its tables
        with closing(sqlite3.connect(file)) as db, db:
            db.execute("CREATE TABLE rows (row INTEGER)")
        handle = await import_rows.enqueue(ROWS)
        for number in range(1, KILLS + 1):
            worker = await asyncio.create_subprocess_exec(sys.executable, __file__, "worker")
            while len(imported()) < number * ROWS // (KILLS + 1):  # noqa: ASYNC110  # another process sets no event here
                await asyncio.sleep(0.002)
            worker.send_signal(signal.SIGKILL)
            await worker.wait()
            print(f"killed worker {number} in the middle of it")
        async with app.worker(lease=1.0, rescue=0.2, poll=0.1):
            print(await handle.result(timeout=30))
        rows = imported()
        print(f"each row once: {rows == list(range(1, ROWS + 1))}")
    for left in file.parent.glob(f"{file.name}*"):
        left.unlink()


if __name__ == "__main__":
    asyncio.run(work() if sys.argv[1:] == ["worker"] else main())
