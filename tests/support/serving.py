"""`windlass serve` as a process of its own, for tests that ask it over a real network."""

from __future__ import annotations

import re
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.template import Copy, started
from tests.support.until import until_sync
from windlass import Windlass

NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class Serving:
    """A server that is up."""

    process: Copy
    url: str
    """without the path of the API"""
    log_file: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def stopped(self) -> int:
        """Its exit code, once it was told to stop."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(40)


@contextmanager
def serving(
    home: Path, *words: str, store: str | None = None, environment: Mapping[str, str] = NOTHING
) -> Generator[Serving, None, None]:
    """A server whose working directory is `home`, on a port of its own; `words` go to `windlass serve`.

    It is told to stop at the end, and has to end well, unless it has ended by then.
    """
    log = home / "log"
    named = [] if store is None else ["--store", store]
    with log.open("w") as output:
        process = started(
            *(*named, "serve", *words, "--port", "0"), environment=environment, folder=home, log=output.fileno()
        )
    try:
        until_sync(lambda: "/api/v1" in log.read_text() or process.poll() is not None, "it to listen", within=30)
        found = re.findall(r"(http://\S+)/api/v1", log.read_text())
        assert found, log.read_text()
        made = Serving(process, found[0], log)
        yield made
        assert process.poll() is not None or made.stopped() == 0, made.log
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)


def key_at(url: str, *, owner: str = "*", scopes: tuple[str, ...] = ("admin",), namespace: str | None = None) -> str:
    """The secret of a key made in the store at this address."""
    app = Windlass(url, namespace=namespace)
    try:
        return app.run_sync(app.keys.create("a test", owner=owner, scopes=scopes)).secret
    finally:
        app.close()
