"""Runs the fault matrix long and writes its figures into docs/reliability.md: `python -m tests.faults.table --help`."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil

from tests.contract.places import open_place
from tests.control.conftest import address
from tests.faults.matrix import EVERY, ROWS, Row
from windlass import Windlass
from windlass.chaos.faults import Finding
from windlass.chaos.place import Place
from windlass.chaos.report import Report, spread, together

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- figures: written by script/faults -->", "<!-- end of figures -->"
HEADS = (
    *("trial", "store", "trials", "n", "faults", "must be 0", "late refused", "run again", "effects twice"),
    *("recovery p50 / p95 / max", "hand-back max", "3/n", "also"),
)


async def trial(row: Row, store: str, seed: int, *, long: bool) -> tuple[Finding, str]:
    """One trial on a place of its own, and the version of its server."""
    with tempfile.TemporaryDirectory(prefix="windlass-faults-") as folder:
        async with open_place(store, Path(folder)) as place:
            url, namespace = address(place)
            finding = await row.run(Place(url=url, namespace=namespace, folder=Path(folder) / "trial"), seed, long=long)
            async with Windlass(url, namespace=namespace) as app:
                version = str((await app.store.health())["version"])
            app.close()
            return finding, version


def line(row: Row, store: str, findings: Sequence[Finding]) -> list[str]:
    """One line of the table."""
    report = together([finding.report for finding in findings])
    bad = sorted({*report.broken, *(one for finding in findings for one in finding.missing)})
    return [
        row.number,
        store,
        str(len(findings)),
        f"{report.acknowledged:,}",
        str(report.faults or report.deaths),
        f"**{', '.join(bad)}**" if bad else "0",
        str(report.late_refused),
        str(report.dup_total),
        str(report.effects_twice),
        " / ".join(f"{one:.2f}" for one in spread(report.recovery).values() if one is not None) or "–",
        f"{max(report.handback):.2f}" if report.handback else "–",
        bound(report),
        "; ".join(dict.fromkeys(one.figures for one in findings if one.figures)) or "–",
    ]


def bound(report: Report) -> str:
    return f"{report.bound:.1e}"


def machine(versions: dict[str, str], seeds: int, size: str) -> str:
    memory = psutil.virtual_memory().total / 2**30
    servers = ", ".join(f"{store} {version}" for store, version in sorted(versions.items()))
    return (
        f"{datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} cores, {memory:.0f} GiB of memory, {platform.system()}, Python"
        f" {platform.python_version()}; {servers}; {seeds} seeds, {size} trials."
    )


def write(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def rows_of(cells: Sequence[Sequence[str]]) -> str:
    lines = [HEADS, ["---"] * len(HEADS), *cells]
    return "\n".join(f"| {' | '.join(some)} |" for some in lines)


def main() -> int:
    told = argparse.ArgumentParser(prog="script/faults", description=__doc__)
    told.add_argument("--seeds", type=int, default=1, metavar="N", help="trials of each kind on each store")
    told.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed; the others follow")
    told.add_argument("--store", default=",".join(EVERY), help="some of %(default)s")
    told.add_argument("--trial", default=",".join(ROWS), help="some of %(default)s")
    told.add_argument("--short", action="store_true", help="as small as in the tests")
    told.add_argument("--dry-run", action="store_true", help="print the table, leave the page alone")
    given = told.parse_args()
    cells: list[list[str]] = []
    versions: dict[str, str] = {}
    good = True
    for row in (ROWS[number] for number in given.trial.split(",")):
        for store in (one for one in given.store.split(",") if one in row.stores):
            findings: list[Finding] = []
            for seed in range(given.first, given.first + given.seeds):
                finding, versions[store] = asyncio.run(trial(row, store, seed, long=not given.short))
                findings.append(finding)
                said = f"ok {finding.figures}".rstrip() if finding.good else f"FAILED {finding.told()}"
                sys.stdout.write(f"{row.number} {store} seed {seed}: {said}\n")
                sys.stdout.flush()
            good = good and all(finding.good for finding in findings)
            cells.append(line(row, store, findings))
    text = f"{machine(versions, given.seeds, 'short' if given.short else 'long')}\n\n{rows_of(cells)}"
    if given.dry_run:
        sys.stdout.write(f"{text}\n")
    else:
        write(text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
