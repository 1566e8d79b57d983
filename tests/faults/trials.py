"""Trials of the matrix, each on a place of its own: for the tests, and for the table."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.contract.places import STORES, open_place
from tests.control.conftest import address
from tests.faults.matrix import EVERY, ROWS, Row
from tests.support.template import as_copy
from windlass import Windlass
from windlass.chaos.faults import Finding
from windlass.chaos.place import Place
from windlass.chaos.starting import as_program

TRIES = 6
"""a mistake that needs two at one moment may stay hidden once: as many seeds are tried"""

SHORT = [
    (row.number, store)
    for row in ROWS.values()
    if not row.long_only and not row.proof
    for store in row.stores
    if store in STORES
]
"""what the tests run: every row on every store it names"""


async def tried(row: Row, store: str, seed: int, *, long: bool, control: str = "") -> tuple[Finding, str]:
    """One trial, and the version of its server."""
    with tempfile.TemporaryDirectory(prefix="windlass-faults-") as folder:
        async with open_place(store, Path(folder)) as place:
            url, namespace = address(place)
            start = as_program if long else as_copy
            spot = Place(url=url, namespace=namespace, folder=Path(folder) / "trial", control=control, start=start)
            finding = await row.run(spot, seed, long=long)
            async with Windlass(url, namespace=namespace) as app:
                version = str((await app.store.health())["version"])
            app.close()
            return finding, version


async def missed(row: Row, store: str, control: str, first: int = 1) -> list[str]:
    """What was found of a store, or a use of it, that is wrong on purpose; nothing if the mistake was caught."""
    told: list[str] = []
    for seed in range(first, first + TRIES):
        finding, _ = await tried(row, store, seed, long=False, control=control)
        if any(word in finding.told() for word in row.controls[control]):
            return []
        told.append(finding.told())
    return told


def mistakes() -> list[tuple[str, str, str]]:
    """Row, mistake and store: for the tests each mistake on one store, another one for each, the long run tries all."""
    every = [(row, control) for row in ROWS.values() if not row.long_only for control in row.controls]
    found: list[tuple[str, str, str]] = []
    for number, (row, control) in enumerate(every):
        stores = [store for store in row.mistaken_stores if store in STORES]
        if stores:
            found.append((row.number, control, stores[number % len(stores)]))
    return found


def figures(finding: Finding) -> str:
    """What to read in a finding, in a line."""
    report = finding.report
    slowest = {"recovered in": report.recovery, "resumed in": report.resume, "handed back in": report.handback}
    told = [f"acknowledged {report.acknowledged}, unknown {report.unknown}, late refused {report.late_refused}"]
    told += [f"{name} {max(found):.2f} s" for name, found in slowest.items() if found]
    return ", ".join([*told, finding.figures] if finding.figures else told)


def seed_of(store: str) -> int:
    """Another one on each store, so that they see different choices."""
    return EVERY.index(store)
