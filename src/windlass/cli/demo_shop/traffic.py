"""The present of the demo's shop: what customers ask for while somebody looks, at a pace its workers keep up with."""

from __future__ import annotations

import asyncio
import random
from itertools import count
from typing import TYPE_CHECKING, Any

from windlass.cli.demo_sheet import start
from windlass.cli.demo_shop import jobs, orders
from windlass.cli.demo_shop.jobs import app
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.apps.imports.imports import Imports
    from windlass.client.flows import Bound

_FIRST = 10_000
"""the first order of the present"""
_LETTERS = 120
_ROUND = 1.0
_ROWS, _IMPORTED_EVERY = 20_000, 240.0
"""of the spreadsheet, and seconds from one import of it to the next"""
# How many of each come in a minute.
_PER_MINUTE: tuple[tuple[float, Callable[[int], Bound[Any]]], ...] = (
    (9, orders.receipt),
    (7, orders.charge),
    (6, orders.thumbnail),
    (4, orders.price),
    (3, orders.order),
    (0.5, orders.stock),
    (2.4, orders.report),
    (1.5, orders.customers),
    (0.8, orders.payout),
    (0.4, orders.printer),
    (0.4, orders.supplier),
)
_WAVE = 0.03
"""the chance in each round that many of some come at once, and wait for a limit or a rate"""
_IN_WAVES = (orders.receipt, orders.charge, orders.price)


async def prepare() -> None:
    """What stands from the beginning: a paused queue, people's decisions, jobs that nobody handles."""
    for owner in orders.USERS:
        await app.keys.create(f"the shop's {owner}", owner=owner, scopes=["enqueue", "read", "operate"])
    await app.queues.pause("newsletter")
    await app.enqueue_many(orders.newsletter(n) for n in range(_LETTERS))
    await app.enqueue_many(
        [("send_fax", {"number": f"+49 30 1234{n}"}, {"queue": "fax", "unique": f"fax:{n}"}) for n in range(3)]
    )
    await app.enqueue_many(orders.supplier(n) for n in range(4))
    await app.enqueue_many(orders.customers(n) for n in range(2))
    await app.enqueue_many(orders.report(n) for n in range(3))
    for hours in (1, 3, 8, 20):
        await jobs.send_receipt.using(delay=hours * 3600, tags=["reminder"]).enqueue(9_000 + hours, "you@example.com")
    await app.group([orders.picking(9_001), orders.parcel(9_001, express=True)]).then(orders.closing(9_001)).enqueue()
    await app.audit.record("ann", "order.enter", "order:9001", origin="the shop's counter")


async def keep_coming(imports: Imports | None) -> None:
    """Enqueue until cancelled, and import the shop's spreadsheet now and then.

    What is kept is bounded: by the workers' retention, and by keys of which one waits.
    """
    numbers = count(_FIRST)
    imported = -_IMPORTED_EVERY
    while True:
        if imports is not None and asyncio.get_running_loop().time() - imported >= _IMPORTED_EVERY:
            imported = asyncio.get_running_loop().time()
            await start(imports, _ROWS, owner=random.choice(orders.USERS))
        n = next(numbers)
        many = 60 if random.random() < _WAVE else 1
        wanted = [
            make(next(numbers))
            for per_minute, make in _PER_MINUTE
            for _ in range(many if make in _IN_WAVES else 1)
            if random.random() < per_minute * _ROUND / 60
        ]
        if n % 20 == 0:
            flow = app.group([orders.picking(n), orders.parcel(n)]).then(orders.closing(n))
            await flow.enqueue()
        if wanted:
            await app.enqueue_many(wanted)
        if n % 90 == 0:
            await _decide()
        await asyncio.sleep(_ROUND * random.uniform(0.5, 1.5))


async def _decide() -> None:
    """Somebody approves a supplier; the others go on waiting."""
    found = await app.jobs.find(type=jobs.onboard_supplier.name, status=Status.BLOCKED, limit=10)
    if len(found.jobs) > 3:
        await app.jobs.signal(found.jobs[-1].id, "approved", True, actor="ben")
