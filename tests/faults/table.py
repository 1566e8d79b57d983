"""Runs the fault matrix long and writes its figures into docs/reliability.md: `python -m tests.faults.table --help`."""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from tests.faults.matrix import EVERY, ROWS, Row
from tests.faults.trials import figures, missed, tried
from windlass.chaos.faults import Finding
from windlass.chaos.report import Report, spread, together

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- %s figures: written by script/faults -->", "<!-- end of %s figures -->"
HEADS = (
    *("trial", "store", "run", "trials", "n", "faults", "must be 0", "late refused", "run again", "effects twice"),
    *("recovery p50 / p95 / max", "resumed max", "hand-back max", "3/n", "mistakes caught", "also"),
)
RUN = HEADS.index("run")


@dataclass
class Cell:
    """One row of the matrix on one store: what is under way, and later what was found."""

    row: Row
    store: str
    trials: list[Future[tuple[Finding, str]]] = field(default_factory=list[Future[tuple[Finding, str]]])
    mistakes: dict[str, Future[list[str]]] = field(default_factory=dict[str, Future[list[str]]])

    def start(self, pool: ProcessPoolExecutor, seed: int, *, long: bool) -> None:
        """One trial."""
        self.trials.append(pool.submit(carried_out, self.row.number, self.store, seed, long))

    def start_mistakes(self, pool: ProcessPoolExecutor) -> None:
        """All that can be made here."""
        if self.store in self.row.mistaken_stores:
            self.mistakes = {
                one: pool.submit(looked_for, self.row.number, self.store, one) for one in self.row.controls
            }

    def line(self) -> list[str]:
        """As the table shows it."""
        findings = self.findings
        report = together([finding.report for finding in findings])
        bad = sorted({*report.broken, *(one for finding in findings for one in finding.missing)})
        mistakes = [one for one in self.mistakes.values() if not one.cancelled()]
        caught = sum(not one.result() for one in mistakes)
        return [
            self.row.number,
            self.store,
            "",
            str(len(findings)),
            f"{report.acknowledged:,}" if report.acknowledged else "–",
            str(report.faults or report.deaths or "–"),
            f"**{', '.join(bad)}**" if bad else "0",
            str(report.late_refused),
            str(report.dup_total),
            str(report.effects_twice),
            " / ".join(f"{one:.2f}" for one in spread(report.recovery).values() if one is not None) or "–",
            f"{max(report.resume):.2f}" if report.resume else "–",
            f"{max(report.handback):.2f}" if report.handback else "–",
            bound(report),
            f"{caught} of {len(mistakes)}" if mistakes else "–",
            next((one.figures for one in reversed(findings) if one.figures), ""),
        ]

    @property
    def findings(self) -> list[Finding]:
        """Of the trials that there was time for."""
        return [one.result()[0] for one in self.trials if not one.cancelled()]

    @property
    def good(self) -> bool:
        """Whether all was well, and every mistake found."""
        return all(one.good for one in self.findings) and not any(
            one.result() for one in self.mistakes.values() if not one.cancelled()
        )


def bound(report: Report) -> str:
    return f"{report.bound:.1e}" if report.acknowledged else "–"


def carried_out(number: str, store: str, seed: int, long: bool) -> tuple[Finding, str]:  # a pool hands on positions
    """One trial, in a process of a pool."""
    try:
        found = asyncio.run(tried(ROWS[number], store, seed, long=long))
    except Exception as error:  # noqa: BLE001  # hours of other trials are not to be lost with one that broke off
        why = f"broke off: {type(error).__name__}: {error}"
        found = Finding(fault=number, report=Report(acknowledged=0), missing=(why[:300],)), ""
    said = f"ok: {figures(found[0])}" if found[0].good else f"FAILED {found[0].told()} ({figures(found[0])})"
    sys.stdout.write(f"{number} {store} seed {seed}: {said}\n")
    sys.stdout.flush()
    return found


def looked_for(number: str, store: str, control: str) -> list[str]:
    """One mistake, in a process of a pool."""
    try:
        told = asyncio.run(missed(ROWS[number], store, control))
    except Exception as error:  # noqa: BLE001  # as above
        told = [f"broke off: {type(error).__name__}: {error}"]
    sys.stdout.write(f"{number} {store} {control}: {f'NOT CAUGHT {told}' if told else 'caught'}\n")
    sys.stdout.flush()
    return told


def machine(versions: dict[str, str], seeds: int, size: str, at_once: int) -> str:
    memory = psutil.virtual_memory().total / 2**30
    servers = ", ".join(f"{store} {version}" for store, version in sorted(versions.items()))
    return (
        f"{datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} cores, {memory:.0f} GiB of memory, {platform.system()}, Python"
        f" {platform.python_version()}; {servers}; up to {seeds} seeds, {size} trials, {at_once} at once."
    )


@dataclass
class Table:
    """A section of the page: numbered runs, and lines that each name theirs."""

    runs: list[str]
    lines: list[list[str]]

    @classmethod
    def read(cls, text: str) -> Table:
        """As it was written."""
        told = text.splitlines()
        runs = [line.partition(". ")[2] for line in told if line[:1].isdigit()]
        return cls(runs, [line[2:-2].split(" | ") for line in told if line.startswith("| M")])

    def take(self, run: str, lines: Sequence[list[str]]) -> None:
        """Put new lines in the place of old ones of the same trials and stores; the others stay."""
        new = {(line[0], line[1]) for line in lines}
        kept = [(self.runs[int(line[RUN]) - 1], line) for line in self.lines if (line[0], line[1]) not in new]
        every = [*kept, *((run, line) for line in lines)]
        every.sort(key=lambda one: (int(one[1][0].strip("Mb")), one[1][0], EVERY.index(one[1][1])))
        self.runs = list(dict.fromkeys(of for of, _ in every))
        self.lines = [[*line[:RUN], str(self.runs.index(of) + 1), *line[RUN + 1 :]] for of, line in every]

    def __str__(self) -> str:
        runs = [f"{number}. {run}" for number, run in enumerate(self.runs, 1)]
        table = [f"| {' | '.join(some)} |" for some in (HEADS, ["---"] * len(HEADS), *self.lines)]
        return "\n".join([*runs, "", *table])


def write(run: str, lines: Sequence[list[str]], section: str) -> None:
    """Put lines in their place on the page; the others stay."""
    begin, end = BEGIN % section, END % section
    page = PAGE.read_text(encoding="utf-8")
    before, found, rest = page.partition(begin)
    old, ended, after = rest.partition(end)
    if not found or not ended:
        raise SystemExit(f"{PAGE} has no place for {section} figures: {begin} and {end}")
    table = Table.read(old)
    table.take(run, lines)
    PAGE.write_text(f"{before}{begin}\n\n{table}\n\n{end}{after}", encoding="utf-8")


def given() -> argparse.Namespace:
    told = argparse.ArgumentParser(prog="script/faults", description=__doc__)
    told.add_argument("--seeds", type=int, default=1, metavar="N", help="trials of each kind on each store")
    told.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed; the others follow")
    told.add_argument("--store", default=",".join(EVERY), help="some of %(default)s")
    told.add_argument("--trial", default=",".join(ROWS), help="some of %(default)s")
    told.add_argument("--short", action="store_true", help="as small as in the tests")
    told.add_argument(
        "--at-once", type=int, default=1, metavar="N", help="trials beside each other; most of each waits"
    )
    told.add_argument("--minutes", type=float, metavar="N", help="begin no more trials after so long")
    told.add_argument("--no-mistakes", action="store_true", help="leave out what must be caught")
    told.add_argument("--dry-run", action="store_true", help="print the table, leave the page alone")
    return told.parse_args()


def run(cells: Sequence[Cell], at_once: int, until: float | None, asked: argparse.Namespace) -> None:
    """All of their trials and mistakes, so many beside each other, as far as there is time."""
    # Not a copy of this process: each has servers of its own, which it stops in the end.
    with ProcessPoolExecutor(at_once, multiprocessing.get_context("spawn")) as pool:
        for seed in range(asked.seeds):
            # One seed after the other, so that all rows have as many trials when time is over.
            for cell in cells:
                if seed < (cell.row.seeds or asked.seeds):
                    cell.start(pool, asked.first + seed, long=not asked.short)
                if seed == 0 and not asked.no_mistakes:
                    cell.start_mistakes(pool)
        under_way: list[Future[Any]] = []
        for cell in cells:
            under_way += [*cell.trials, *cell.mistakes.values()]
        wait(under_way, None if until is None else max(0.0, until - time.monotonic()))
        for one in under_way:
            one.cancel()


def main() -> int:
    asked = given()
    rows = [ROWS[number] for number in asked.trial.split(",")]
    cells = [Cell(row, store) for row in rows for store in asked.store.split(",") if store in row.stores]
    until = time.monotonic() + asked.minutes * 60 if asked.minutes else None
    run([cell for cell in cells if cell.row.alone], 1, until, asked)
    run([cell for cell in cells if not cell.row.alone], asked.at_once, until, asked)
    cells = [cell for cell in cells if cell.findings]
    lines = [cell.line() for cell in cells]
    versions = {
        cell.store: version
        for cell in cells
        for one in cell.trials
        if not one.cancelled() and (version := one.result()[1])
    }
    size = "short" if asked.short else "long"
    about = machine(versions, asked.seeds, size, asked.at_once)
    if asked.dry_run:
        table = Table([], [])
        table.take(about, lines)
        sys.stdout.write(f"{table}\n")
    else:
        write(about, lines, size)
    return 0 if all(cell.good for cell in cells) else 1


if __name__ == "__main__":
    sys.exit(main())
