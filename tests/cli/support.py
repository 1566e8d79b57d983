"""Running the command line: in this process where that is enough, as a real process where it matters."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar

import pytest

from tests.support.template import Copy, copied
from tests.support.until import until_sync
from windlass import Windlass
from windlass.cli.main import run

T = TypeVar("T")
SOURCE = Path(__file__).parents[2] / "src"
SHOP = """
import asyncio
from windlass import Ctx, Limit, Reject, Windlass, cron

app = Windlass("sqlite:///shop.db")

@app.job
async def hello(name: str = "you") -> str:
    return f"hello {name}"

@app.job(queue="mail")
async def nasty(text: str) -> None:
    raise Reject(text)

@app.job(retry=2)
async def bad() -> None:
    raise ValueError("no good")

@app.job
async def steps(ctx: Ctx, n: int = 3) -> int:
    for i in range(n):
        ctx.progress(i + 1, n, f"step {i + 1}")
        await asyncio.sleep(0.25)
    return n

@app.job
async def endless() -> None:
    await asyncio.Event().wait()
"""


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def facts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def fact(self) -> dict[str, Any]:
        [one] = self.facts
        return one


@dataclass
class Shop:
    """A directory with an application in it, and the command line started there."""

    home: Path
    capsys: pytest.CaptureFixture[str]
    started: list[Copy] = field(default_factory=list[Copy])

    @property
    def url(self) -> str:
        return f"sqlite:///{self.home / 'shop.db'}"

    def call(self, *words: str) -> Said:
        """A command in this process, on the shop's store."""
        self.capsys.readouterr()
        code = run(["--store", self.url, *words])
        said = self.capsys.readouterr()
        return Said(code, said.out, said.err)

    def ok(self, *words: str) -> str:
        """The same, for one that must succeed."""
        said = self.call(*words)
        assert said.code == 0, said
        return said.out.strip()

    def process(self, *words: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> Said:
        """A command as a process of its own."""
        with TemporaryFile("w+") as read, TemporaryFile("w+") as out, TemporaryFile("w+") as err:
            read.write(stdin or "")
            read.seek(0)
            files = [one.fileno() for one in (read, out, err)]
            code = copied("windlass", words, self.environment(env), self.home, *files).wait(60)
            for printed in (out, err):
                printed.seek(0)
            return Said(code, out.read(), err.read())

    def terminal(self, *words: str, typed: str = "", env: Mapping[str, str] | None = None) -> Said:
        """A command on a terminal of its own; what it prints is all in `out`."""
        ours, theirs = pty.openpty()
        child = subprocess.Popen(
            [sys.executable, "-m", "windlass", "--store", self.url, *words],
            cwd=self.home,
            env=self.environment({"TERM": "xterm-256color", "COLUMNS": "160", **(env or {})}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        os.write(ours, typed.encode())
        printed = b""
        try:
            while some := os.read(ours, 65536):
                printed += some
        except OSError:  # how a terminal says on Linux that its last program has ended
            pass
        finally:
            os.close(ours)
        return Said(child.wait(10), printed.decode(errors="replace"), "")

    def start(self, *words: str) -> Copy:
        """A command that goes on; what it prints goes to `self.log`."""
        with (self.home / "log").open("a") as log, Path(os.devnull).open("rb") as nothing:
            files = [one.fileno() for one in (nothing, log, log)]
            child = copied("windlass", words, self.environment(None), self.home, *files)
        self.started.append(child)
        return child

    @property
    def log(self) -> str:
        return (self.home / "log").read_text()

    def says(self, text: str, times: int = 1) -> None:
        """Wait until the started commands have printed this so often."""
        until_sync(lambda: self.log.count(text) >= times, f"{text!r} {times} times in:\n{self.log}", within=20)

    def ask(self, work: Callable[[Windlass], Awaitable[T]]) -> T:
        """Something done to the store without the command line."""

        async def inside() -> T:
            async with Windlass(self.url) as app:
                return await work(app)

        return asyncio.run(inside())

    def environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        known = {name: value for name, value in os.environ.items() if not name.startswith(("WINDLASS_", "QUEUE_"))}
        known.pop("NO_COLOR", None)
        told = {"WINDLASS_LOG_FORMAT": "text", "WINDLASS_LOG_LEVEL": "debug"}
        return {**known, "PYTHONPATH": str(SOURCE), **told, **(more or {})}

    def end(self) -> None:
        for child in self.started:
            if child.poll() is None:
                child.terminate()
        for child in self.started:
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait(10)
