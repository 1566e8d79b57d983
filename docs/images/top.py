"""Draw docs/images/top.svg: `windlass top` over a store with a worker at work. `python docs/images/top.py`."""

from __future__ import annotations

import asyncio
import random
import re
import tempfile
from pathlib import Path

from windlass import Ctx, Reject, Windlass
from windlass.cli.desk import Desk
from windlass.cli.output import Screen
from windlass.cli.top.live import Live

HERE = Path(__file__).parent
SIZE = (120, 36)


def declare(app: Windlass, chance: random.Random) -> None:
    """Handlers of a shop."""

    @app.job(name="send_receipt", queue="mail", retry=1)
    async def send_receipt(order: int) -> None:
        await asyncio.sleep(chance.random() * 0.15)
        if order % 29 == 0:
            raise Reject(f"order {order} has no address")

    @app.job(name="resize_photo", queue="images")
    async def resize_photo(photo: int) -> None:
        await asyncio.sleep(20 + photo)

    @app.job(name="import_customers", queue="imports")
    async def import_customers(ctx: Ctx, rows: int) -> None:
        for row in range(0, rows, 25):
            ctx.progress(row, rows, f"row {row:,} of customers.xlsx")
            await asyncio.sleep(0.1)


async def main() -> None:
    """Let it work for some seconds, then draw."""
    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as home:
        app = Windlass(f"sqlite:///{home}/shop.db?synchronous=OFF")
        declare(app, chance)
        async with app, app.worker(queues={"mail": 2, "images": 3, "imports": 2}, heartbeat=0.5, grace=0.1):
            await app.enqueue("resize_photo", {"photo": 1}, queue="nightly")
            await app.queues.pause("nightly")
            await app.enqueue_many([("resize_photo", {"photo": n}) for n in range(5)])
            await app.enqueue_many([("import_customers", {"rows": rows}) for rows in (1200, 4000)])
            await app.enqueue_many([("send_receipt", {"order": n}) for n in range(1, 900)])
            view = Live(Desk(Screen(), app), 1.0, "postgresql://db.shop/jobs")
            async with view.run_test(size=SIZE) as pilot:
                await asyncio.sleep(12)  # until there is something to see
                await pilot.pause()
                drawn = view.export_screenshot(title="windlass top")
    # The picture asks nobody else for its letters.
    (HERE / "top.svg").write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL))


if __name__ == "__main__":
    asyncio.run(main())
