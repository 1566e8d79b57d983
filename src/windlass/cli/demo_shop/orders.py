"""What the customers of the demo's shop ask for, as jobs not yet enqueued: the same for its past and its present."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from windlass.cli.demo_shop import jobs
from windlass.core.secret import Secret

if TYPE_CHECKING:
    from windlass.client.flows import Bound
    from windlass.client.options import Asked

USERS = ("ann", "ben")
"""two of the shop's people have jobs of their own; the rest are the shop's"""
_ACCOUNTS = ("acme", "globex", "initech", "umbrella")
_ITEMS = ("lamp", "chair", "table", "shelf", "rug", "clock", "mirror")
_WAREHOUSES = ("north", "south", "harbour")
_SUPPLIERS = ("Brandt & Söhne", "Ohm Lighting", "Atelier Nord", "Kiln Ceramics", "Tallow Works")


def _about(n: int) -> Asked:
    """Whose order it is, and what else is known of it."""
    asked: Asked = {"entity": ("order", n), "correlation": f"req-{n * 2654435761 % 2**32:08x}"}
    if n % 3 < len(USERS):
        asked["user"] = USERS[n % 3]
    if n % 7 == 0:
        asked |= {"tags": ["vip"], "priority": "high"}
    return asked


def _account(n: int) -> str:
    """One of them orders more than all others: its charges wait for each other."""
    return _ACCOUNTS[0] if n % 2 else _ACCOUNTS[n // 2 % len(_ACCOUNTS)]


def _items(n: int) -> list[str]:
    return [_ITEMS[(n + k) % len(_ITEMS)] for k in range(1 + n % 4)]


def receipt(n: int) -> Bound[Any]:
    """A letter to a customer."""
    return jobs.send_receipt.using(**_about(n)).bind(n, f"customer{n % 97}@example.com")


def charge(n: int) -> Bound[Any]:
    """Money for an order."""
    return jobs.charge_card.using(**_about(n)).bind(n, _account(n), 500 + n * 7919 % 40_000)


def thumbnail(n: int) -> Bound[Any]:
    """A picture of something."""
    return jobs.render_thumbnail.using(tags=["catalogue"]).bind(f"products/{n:05d}.png", (160, 320, 640)[n % 3])


def price(n: int) -> Bound[Any]:
    """The price of something."""
    return jobs.refresh_price.bind(f"SKU-{4000 + n % 900}")


def stock(n: int) -> Bound[Any]:
    """What is on the shelves of a warehouse."""
    return jobs.count_stock.bind(_WAREHOUSES[n % len(_WAREHOUSES)])


def report(n: int) -> Bound[Any]:
    """Figures of a month for somebody."""
    period = jobs.Period(f"2026-{1 + n % 9:02d}-01", f"2026-{1 + n % 9:02d}-28")
    return jobs.build_report.using(user=USERS[n % 2], priority="low").bind(
        ("sales", "returns", "stock")[n % 3], period, 300 + n % 5 * 100
    )


def customers(n: int) -> Bound[Any]:
    """A file of customers."""
    return jobs.import_customers.using(user=USERS[n % 2], entity=("file", n), tags=["import"]).bind(
        f"customers-{n:04d}.csv", 20_000 + n % 4 * 10_000
    )


def order(n: int) -> Bound[Any]:
    """A whole order, whose parts are jobs of their own."""
    return jobs.fulfil_order.using(**_about(n)).bind(n, _items(n))


def parcel(n: int, express: bool = False) -> Bound[Any]:
    """The way of an order to its customer."""
    return jobs.book_courier.using(**_about(n)).bind(n, express)


def picking(n: int) -> Bound[Any]:
    """What an order is made of."""
    return jobs.pick_items.using(**_about(n)).bind(n, _items(n))


def closing(n: int) -> Bound[Any]:
    """The end of an order."""
    return jobs.close_order.using(**_about(n)).bind(n)


def supplier(n: int) -> Bound[Any]:
    """A new supplier, for whom a person has to say yes."""
    name = _SUPPLIERS[n % len(_SUPPLIERS)]
    return jobs.onboard_supplier.using(entity=("supplier", name), unique=f"supplier:{name}").bind(name)


def payout(n: int) -> Bound[Any]:
    """Money for a supplier, to an account that is nobody's business."""
    iban = Secret(f"DE89 3704 0044 0532 0130 {random.randrange(100):02d}")
    return jobs.transfer_payout.using(entity=("supplier", _SUPPLIERS[n % len(_SUPPLIERS)])).bind(iban, 10_000 + n * 37)


def newsletter(n: int) -> Bound[Any]:
    """One of many letters."""
    return jobs.send_newsletter.using(correlation="issue-42", unique=f"letter:42:{n}").bind(
        42, f"reader{n:04d}@example.com"
    )


def printer(n: int) -> Bound[Any]:
    """Whether a printer is there."""
    return jobs.probe_printer.bind(f"label printer {1 + n % 3}")
