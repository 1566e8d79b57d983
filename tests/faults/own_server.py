"""A server for one trial alone, of the kind that the trial's place is on: its clock and its disk may be harmed."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

from tests.faults.judging import kind_of
from tests.support.processes import Server
from tests.support.servers import OURS_ONLY, start_mongo, start_postgres, start_redis
from windlass.chaos.place import Place


@contextmanager
def own_server(place: Place, environment: Mapping[str, str] = OURS_ONLY) -> Generator[tuple[Server, Place], None, None]:
    """A server that nobody else uses, and the same place on it."""
    with _start(kind_of(place), environment) as server:
        yield server, replace(place, url=server.url, namespace="windlass")


def _start(name: str, environment: Mapping[str, str]) -> Server:
    match name:
        case "mongo":
            return start_mongo(own=True, environment=environment)
        case "postgres":
            # Some trials have fifty workers, each with connections of its own.
            return start_postgres("-c", "max_connections=500", own=True, environment=environment)
        case _:
            return start_redis(own=True, environment=environment)


def open_folder() -> Path:
    """A folder that a server which runs as nobody can pass through."""
    made = Path(mkdtemp(prefix="windlass-faults-"))
    made.chmod(0o711)
    return made


@contextmanager
def removing(folder: Path) -> Generator[None, None, None]:
    """Remove it afterwards."""
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
