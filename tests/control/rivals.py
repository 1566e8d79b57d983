"""A program of the crew: clients that all want one unique key at once, half of them in transactions rolled back."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from tests.contract.places import MongoPlace, Place, PostgresPlace, SqlitePlace
from tests.control.deckhand import told, write
from windlass import StoreUnavailable, Windlass

URL = os.environ["CREW_URL"]


def place() -> Place | None:
    """Where a caller's own transaction can be had."""
    plain, _, query = URL.partition("?")
    if plain.startswith("sqlite:///"):
        return SqlitePlace(Path(plain.removeprefix("sqlite:///")))
    if plain.startswith("postgres"):
        return PostgresPlace(plain, query.removeprefix("schema="))
    if plain.startswith("mongodb"):
        return MongoPlace(URL, urlsplit(URL).path.strip("/"))
    return None


async def one(app: Windlass) -> None:
    handle = await app.enqueue("noop", unique="mast")
    write("created" if handle.created else "found", os.getpid(), handle.id)


async def undone(app: Windlass, where: Place) -> None:
    while True:
        try:
            async with where.transaction() as transaction:
                await app.enqueue("noop", unique="mast", tx=transaction.tx)
                await transaction.rollback()
        except StoreUnavailable:
            continue  # a conflict with another transaction: as its caller would, begin again
        write("undone", os.getpid())
        return


async def all_undone(app: Windlass, where: Place, n: int) -> None:
    for _ in range(n):
        await undone(app, where)


async def main(clients: int) -> None:
    app = Windlass(URL, namespace=os.environ["CREW_NAMESPACE"])
    where = place()
    half = clients if where is None else clients // 2
    async with app:
        write("ready", os.getpid())
        await told("go")
        async with asyncio.TaskGroup() as group:
            if where is not None:
                group.create_task(all_undone(app, where, clients - half))
            for _ in range(half):
                group.create_task(one(app))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
