"""Application data and a job in one transaction: both are there after the commit, neither after a rollback."""

import asyncio
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

from windlass import Windlass

folder = TemporaryDirectory()
file = Path(folder.name) / "shop.db"
app = Windlass(f"sqlite:///{file}")  # the jobs live in the application's own file


@app.job
async def send_receipt(order_id: int) -> str:
    return f"receipt for order {order_id}"


async def place_order(db: sqlite3.Connection, order_id: int) -> None:
    db.execute("INSERT INTO orders (id) VALUES (?)", (order_id,))
    await send_receipt.using(tx=db).enqueue(order_id)


def place_order_sync(db: sqlite3.Connection, order_id: int) -> None:
    db.execute("INSERT INTO orders (id) VALUES (?)", (order_id,))
    with app.within(db):  # everything enqueued below joins the transaction
        send_receipt.enqueue_sync(order_id)


async def show(db: sqlite3.Connection) -> None:
    (orders,) = db.execute("SELECT count(*) FROM orders").fetchone()
    jobs = await app.jobs.count(type="send_receipt")
    print(f"{orders} orders, {jobs.n} jobs")


async def main() -> None:
    async with app:  # opening the store makes its tables
        db = sqlite3.connect(file)
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")

        with db:  # commits at the end
            await place_order(db, 1)
        with db:
            place_order_sync(db, 2)
        await show(db)

        try:
            with db:
                await place_order(db, 3)
                raise RuntimeError("payment declined")  # so the block rolls back
        except RuntimeError as error:
            print(f"order 3: {error}")
        await show(db)
        db.close()

        async with app.worker(drain=True) as worker:
            await worker.wait()
        for job in reversed((await app.jobs.find(status="succeeded")).jobs):
            print(job.result)


if __name__ == "__main__":
    asyncio.run(main())
    folder.cleanup()
