"""Draw top.svg and top-light.svg: `windlass top` over a store with a worker at work. `python docs/images/top.py`."""

from __future__ import annotations

import asyncio
import io
import random
import re
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME, TerminalTheme

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
                (HERE / "top.svg").write_text(drawn(view, SVG_EXPORT_THEME))
                (HERE / "top-light.svg").write_text(drawn(view, DEFAULT_TERMINAL_THEME))


def drawn(view: Live, theme: TerminalTheme) -> str:
    """What a terminal of these colours shows. Textual's own export knows one theme."""
    console = Console(width=SIZE[0], height=SIZE[1], file=io.StringIO(), force_terminal=True, record=True)
    console.print(view.screen._compositor.render_update(full=True))  # noqa: SLF001  # as its own export does
    # The picture asks nobody else for its letters.
    return re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="windlass top", theme=theme), flags=re.DOTALL)


if __name__ == "__main__":
    asyncio.run(main())
