"""The ten slowest tests of several runs: `python -m tests.support.slowest *.xml`, with the reports of `--junitxml`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from heapq import nlargest
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

MOST = 10


class Case(NamedTuple):
    """One test and its seconds, set-up and tear-down among them."""

    seconds: float
    name: str


def cases(report: Path) -> list[Case]:
    """The tests of one report, which our own pytest wrote."""
    tree = ET.parse(report)
    return [
        Case(float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}")
        for case in tree.iter("testcase")
    ]


def slowest(reports: Iterable[Path]) -> list[Case]:
    """The slowest tests of all reports, the slowest first."""
    return nlargest(MOST, (case for report in reports for case in cases(report)))


if __name__ == "__main__":
    for case in slowest(map(Path, sys.argv[1:])):
        sys.stdout.write(f"{case.seconds:7.1f} s  {case.name}\n")
