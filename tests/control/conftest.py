"""What the acceptance tests of control share: an application on every store, and processes on the same place."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.contract.places import MongoPlace, Place, PostgresPlace, RedisPlace, SqlitePlace
from tests.support.template import ROOT, Copy, started
from tests.support.until import until_sync
from windlass import Windlass


def address(place: Place) -> tuple[str, str]:
    """The URL and the namespace by which another process finds the place."""
    match place:
        case SqlitePlace():
            return f"sqlite:///{place.path}?synchronous=NORMAL", "windlass"
        case MongoPlace():
            return place.url, "windlass"
        case PostgresPlace():
            return f"{place.url}?schema={place.schema}", "windlass"
        case RedisPlace():
            return place.url, place.namespace
        case _:
            raise AssertionError(f"no address for {place}")


@pytest.fixture
async def app(place: Place) -> AsyncIterator[Windlass]:
    """An application on an empty store."""
    app = Windlass(store=place.store())
    async with app:
        yield app
    app.close()


@pytest.fixture
async def another(app: Windlass, place: Place) -> AsyncIterator[Windlass]:
    """The same store as another process would see it."""
    other = Windlass(store=place.store())
    async with other:
        yield other
    other.close()


@dataclass
class Crew:
    """Processes that run one of the programs in this folder on the same store, and a ledger that all of them write."""

    place: Place
    folder: Path
    begun: list[Copy] = field(default_factory=list[Copy])

    def start(self, program: str, *words: str) -> Copy:
        """A program of this folder."""
        return self.begin(f"tests.control.{program}", *words)

    def run(self, module: str, *words: str) -> int:
        """Any module as a program, to its end; its exit code."""
        return self.begin(module, *words).wait(60)

    def begin(self, module: str, *words: str) -> Copy:
        """Any module as a program."""
        url, namespace = address(self.place)
        environment = {"CREW_URL": url, "CREW_NAMESPACE": namespace, "CREW_FOLDER": str(self.folder)}
        process = started(*words, module=module, environment=environment, folder=ROOT)
        self.begun.append(process)
        return process

    def ledger(self) -> list[list[str]]:
        """What was written so far, line by line, word by word."""
        path = self.folder / "ledger"
        return [line.split() for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    def wait_for(self, word: str, process: Copy) -> list[str]:
        """The line of this process that begins with the word, once it is there."""

        def found() -> list[str]:
            return next((line for line in self.ledger() if line[:2] == [word, str(process.pid)]), list[str]())

        return until_sync(found, f"{word!r} from {process.pid}", within=30)

    def tell(self, word: str) -> None:
        """Let processes that wait for this word go on."""
        (self.folder / word).touch()


@pytest.fixture
def crew(place: Place, tmp_path: Path) -> Iterator[Crew]:
    folder = tmp_path / "crew"
    folder.mkdir()
    made = Crew(place, folder)
    yield made
    for process in made.begun:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.wait(10)
