"""Real worker processes, started, frozen and killed by their own pid."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.template import Copy, started
from tests.support.until import until_sync
from windlass import Windlass

if TYPE_CHECKING:
    from collections.abc import Iterator

QUICK = ("--lease", "900ms", "--heartbeat", "200ms", "--poll", "200ms")


@dataclass
class Journey:
    """One store, one ledger, and the processes that were started on them."""

    folder: Path
    processes: list[Copy] = field(default_factory=list[Copy])

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'jobs.db'}"

    def app(self) -> Windlass:
        """The same store seen from the test's own process, without handlers."""
        return Windlass(self.url)

    def worker(self, *arguments: str, lease: tuple[str, ...] = QUICK) -> Copy:
        """Start a worker process."""
        environment = {
            "JOURNEY_URL": self.url,
            "JOURNEY_MARKS": str(self.folder),
            "WINDLASS_RESCUE_MS": "200",
        }
        words = ["worker", "tests.journeys.shop:app", *lease, *arguments]
        process = started(*words, environment=environment, folder=self.folder)
        self.processes.append(process)
        return process

    def ledger(self) -> list[list[str]]:
        """The marks so far, word by word."""
        path = self.folder / "ledger"
        return [line.split() for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    def begun_by(self, process: Copy) -> list[str]:
        """The names of the jobs this process has begun."""
        return [words[1] for words in self.ledger() if words[0] == "begin" and words[2] == str(process.pid)]

    def let_go(self, process: Copy) -> None:
        """Let the jobs held by one process end."""
        (self.folder / f"go-{process.pid}").touch()

    def wait_until_begun(self, process: Copy, n: int) -> None:
        """Wait until a process has begun n jobs."""
        until_sync(lambda: len(self.begun_by(process)) >= n, f"{n} jobs begun by {process.pid}", within=15)


@pytest.fixture
def journey(tmp_path: Path) -> Iterator[Journey]:
    made = Journey(tmp_path)
    yield made
    for process in made.processes:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.wait(10)
