"""`script/bench [--store …] [--scale | --http | --listeners | --dashboard | --imports | --files | --resumes] …`."""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sys
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from bench.dashboard import measure_dashboard
from bench.files import measure_files
from bench.http import measure_http
from bench.imports import measure_imports
from bench.listeners import measure_listeners
from bench.mongo import measure_mongo
from bench.postgres import measure_postgres
from bench.redis import measure_redis
from bench.resumes import measure_resumes
from bench.scale import measure_scale
from bench.sqlite import measure_sqlite

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from bench.figures import Figure

STORES = {"sqlite": measure_sqlite, "mongo": measure_mongo, "postgres": measure_postgres, "redis": measure_redis}


def main() -> int:
    """Run the measurements; exit 1 when a figure misses its floor and --check was given."""
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__)
    parser.add_argument("--store", choices=sorted(STORES), default="sqlite")
    parser.add_argument("--scale", action="store_true", help="count the work beside very many, instead of seconds")
    parser.add_argument("--http", action="store_true", help="the API over HTTP, and live streams beside a worker")
    parser.add_argument("--dashboard", action="store_true", help="pages, paints and viewers beside a million jobs")
    parser.add_argument("--listeners", action="store_true", help="what logs, metrics and traces cost, and scrapes")
    parser.add_argument("--imports", action="store_true", help="a workbook into a table, against a bare chain")
    parser.add_argument("--files", action="store_true", help="small files of many projects, against a bare loop")
    parser.add_argument("--resumes", action="store_true", help="tailored from what is stored, against from the file")
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    parser.add_argument("--quick", action="store_true", help="fewer jobs: for a first look, not for a claim")
    parser.add_argument("--check", action="store_true", help="exit 1 when a figure misses its floor")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only these measurements")
    given = parser.parse_args()
    if not given.json:
        print(f"windlass on {given.store}, Python {platform.python_version()}, {platform.machine()}")
    figures = asyncio.run(_measured(given))
    missed = [figure.name for figure in figures if not figure.ok]
    if missed:
        print(f"missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed and given.check else 0


async def _measured(given: argparse.Namespace) -> list[Figure]:
    figures: list[Figure] = []
    async for figure in _measure(given)(quick=given.quick, only=given.only):
        figures.append(figure)
        row = figure.row(72 if given.scale else 28)
        shown = json.dumps(asdict(figure) | {"ok": figure.ok}) if given.json else row
        print(shown, flush=True)  # a long measurement shows as it goes on
    return figures


def _measure(given: argparse.Namespace) -> Callable[..., AsyncGenerator[Figure, None]]:
    if given.http:
        return measure_http
    if given.dashboard:
        return partial(measure_dashboard, given.store)
    if given.files:
        return partial(measure_files, given.store)
    if given.imports:
        return partial(measure_imports, given.store)
    if given.resumes:
        return measure_resumes
    if given.listeners:
        return partial(measure_listeners, given.store)
    return partial(measure_scale, given.store) if given.scale else STORES[given.store]


if __name__ == "__main__":
    sys.exit(main())
