"""The shop of the demo: handlers that show what windlass does, and now and then fail as such work does."""

from __future__ import annotations

import asyncio
import random
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from windlass import Ctx, Limit, Rate, Reject, Retention, Retry, Secret, Unique, Windlass, cron, every
from windlass.cli.demo_shop import trouble
from windlass.client.vault import new_key

# However long the demo goes on, it stays small.
_KEPT = Retention(succeeded=timedelta(hours=4), failed=timedelta(hours=16), cancelled=timedelta(hours=4), most=20_000)
# The demo moves it to its store before anything opens it. What is secret in its jobs is sealed with a key of this
# process, so that it can be read by no other.
app = Windlass("sqlite:///:memory:", version="2.4.0", secret_keys=[new_key()], retention=_KEPT)
closing = threading.Event()
"""set when the demo ends: who stands in a thread goes home"""


def _chance(part: float) -> bool:
    return random.random() < part


async def _takes(usual: float, most: float) -> None:
    """As long as such work takes: mostly as usual, sometimes much longer."""
    await asyncio.sleep(min(random.lognormvariate(0.0, 0.6) * usual, most))


@app.job(queue="mail", timeout=30, retry=Retry(5, base=4.0), tags=["customer"])
async def send_receipt(order_id: int, to: str) -> str:  # noqa: ARG001  # nothing is really sent
    """A letter for every order."""
    await _takes(0.25, 4)
    if _chance(0.04):
        trouble.mail_busy()
    if _chance(0.01):
        trouble.mail_away()
    return f"receipt for {order_id} sent"


@app.job(queue="payments", limit=Limit("account:{account}", 1), retry=Retry(4, base=3.0, never=(trouble.CardDeclined,)))
async def charge_card(order_id: int, account: str, cents: int) -> dict[str, int]:  # noqa: ARG001  # the limit's key
    """One charge at a time for each account; a declined card is not tried again."""
    await _takes(1.6, 9)
    if _chance(0.03):
        trouble.declined()
    if _chance(0.03):
        raise ConnectionResetError("[Errno 104] the bank hung up")
    return {"order_id": order_id, "charged": cents}


@app.job(queue="media", timeout=20, retry=Retry(3, base=2.0))
def render_thumbnail(path: str, width: Literal[160, 320, 640] = 320) -> str:
    """Runs in a thread."""
    closing.wait(min(random.lognormvariate(0.0, 0.7) * 0.9, 9.0))
    if _chance(0.03):
        trouble.no_picture()
    return f"{path}@{width}"


@app.job(queue="stock", rate=Rate(12, 60), retry=Retry(6, base=10.0))
async def refresh_price(sku: str) -> dict[str, str]:
    """The price service lets us ask twelve times a minute."""
    await _takes(0.4, 5)
    if _chance(0.08):
        trouble.garbled()
    return {"sku": sku, "price": f"{random.randint(100, 99_900) / 100:.2f}"}


@app.job(queue="stock", unique=Unique(queued="stock:{warehouse}"), retry=Retry(2, base=20.0))
async def count_stock(ctx: Ctx, warehouse: str) -> int:  # noqa: ARG001  # the unique key
    """At most one waits for each warehouse."""
    shelves = 40
    for shelf in range(1, shelves + 1):
        await asyncio.sleep(0.15)
        ctx.progress(shelf, shelves, f"shelf {shelf}")
    if _chance(0.25):
        trouble.miscounted()
    return shelves * 31


@dataclass(frozen=True)
class Period:
    """From one day to another."""

    first: str
    last: str


@app.job(queue="reports", timeout=300)
async def build_report(ctx: Ctx, kind: Literal["sales", "returns", "stock"], period: Period, rows: int = 400) -> str:
    """Says how far it is."""
    for row in range(0, rows, 10):
        await asyncio.sleep(0.8)
        ctx.progress(row + 10, rows, f"{kind}, {row + 10:,} rows")
    return f"{kind} from {period.first} to {period.last}: {rows:,} rows"


@app.job(queue="imports", timeout=600, retry=Retry(3, base=15.0))
async def import_customers(ctx: Ctx, file: str, rows: int) -> dict[str, int]:
    """Remembers how far it came: after a crash it goes on from there."""
    known: list[str] = await ctx.step("columns", _columns, file)
    done = ctx.saved or 0
    failed = 0
    while done < rows:
        await asyncio.sleep(0.25)
        done = min(done + 250, rows)
        failed += random.choice((0, 0, 0, 1, 2))
        ctx.progress(done, rows, f"{failed} rows refused")
        await ctx.save(done)
    if _chance(0.15):
        trouble.missing_column()
    return {"rows": rows, "inserted": rows - failed, "refused": failed, "columns": len(known)}


async def _columns(file: str) -> list[str]:
    await asyncio.sleep(0.3)
    return ["name", "email", "city"] if file else []


@app.job(queue="orders", retry=Retry(2, base=5.0))
async def pick_items(order_id: int, items: list[str]) -> int:
    """A part of an order."""
    await _takes(1.2, 8)
    return order_id * 10 + len(items)


@app.job(queue="orders")
async def book_courier(order_id: int, express: bool = False) -> str:
    """Another part."""
    await _takes(0.6 if express else 1.4, 6)
    if _chance(0.05):
        raise Reject("no courier goes to this address")
    return f"parcel-{order_id:08d}"


@app.job(queue="orders")
async def fulfil_order(ctx: Ctx, order_id: int, items: list[str]) -> str:
    """Has its parts done by others, and waits without taking up a worker."""
    parts = [pick_items.bind(order_id, items), book_courier.bind(order_id)]
    _, parcel = await ctx.gather("parts", parts, errors="return")
    return f"order {order_id}: {parcel}"


@app.job(queue="orders")
async def close_order(order_id: int) -> str:
    """What follows when an order's parts have succeeded."""
    await _takes(0.2, 2)
    return f"order {order_id} is closed"


@app.job(queue="orders")
async def onboard_supplier(ctx: Ctx, supplier: str) -> str:
    """Waits for a person: `windlass signal ID approved true`, or the dashboard."""
    account = await ctx.step("account", _open_account, supplier)
    approved = await ctx.wait("approved", 3 * 86_400)
    await ctx.step("welcome", _takes, 0.3, 2.0)
    return f"{account} {'opened' if approved else 'left closed'}"


async def _open_account(supplier: str) -> str:
    await asyncio.sleep(0.4)
    return f"account of {supplier}"


@app.job(queue="newsletter", rate=Rate(50, 60), expires=86_400)
async def send_newsletter(issue: int, to: str) -> None:  # noqa: ARG001  # as above
    """Its queue is paused: somebody has to look at it first."""
    await _takes(0.2, 2)


@app.job(queue="payments", retry=Retry(3, base=5.0))
async def transfer_payout(iban: Secret[str], cents: int) -> str:
    """Takes a secret, which is shown nowhere."""
    await _takes(0.7, 4)
    return f"{cents / 100:.2f} to the account ending in {iban.reveal()[-2:]}"


@app.job(queue="media", timeout=3, retry=1)
def probe_printer(name: str) -> str:
    """Hangs sometimes: its thread goes on past the timeout, and counts as stuck."""
    closing.wait(45 if _chance(0.5) else 0.5)
    return f"{name} answers"


@app.job(queue="reports", schedule=cron("0 9 * * mon-fri", tz="Europe/Berlin"))
async def morning_report() -> str:
    """Weekdays at nine, where the shop is."""
    await _takes(2, 20)
    return "sent"


@app.job(queue="reports", schedule=cron("30 2 * * *", tz="America/New_York", missed="all", limit=3))
async def close_day() -> str:
    """At night, when the clocks change, too."""
    await _takes(3, 30)
    return "closed"


@app.job(queue="stock", schedule=every(60, overlap="skip"))
async def recount() -> str:
    """Takes longer than its interval now and then: ticks in between are skipped."""
    await asyncio.sleep(random.choice((5, 8, 12, 75)))
    if _chance(0.2):
        trouble.miscounted()
    return "counted"


@app.job(queue="mail", schedule=cron("*/5 * * * *", missed="none"))
async def look_for_bounces() -> int:
    """Every five minutes; what was missed is not made up for."""
    await _takes(0.5, 4)
    return random.randrange(4)
