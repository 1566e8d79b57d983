"""The pages of the documentation, and how their blocks are run.

A page's Python blocks share one namespace and one event loop, so that `await` may stand at the top as in `python -m
asyncio`. A block whose first line is a comment such as `# jobs.py` is also saved under that name. `sh` blocks run in
the same folder, with `windlass` on the path. Blocks of other languages are only read.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser

import windlass

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")],
    key=lambda path: path.relative_to(ROOT).as_posix(),
)
_FILE = re.compile(r"# (\w+\.py)\n")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


class Runner:
    """Runs the blocks of one page, in order, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.printed = ""
        """what its shell blocks wrote to standard output"""
        self._loop = asyncio.new_event_loop()
        self._namespace: dict[str, Any] = {"__name__": "__main__"}
        self._apps: list[windlass.Windlass] = []

    def run(self, page: Path) -> None:
        parsers = [CodeBlockParser("python", self._python), CodeBlockParser("sh", self._sh)]
        for example in Sybil(parsers=parsers).parse(page).examples():
            example.evaluate()

    def close(self) -> None:
        """Close every application the page made, as its reader's program would on its way out."""
        for one in self._apps:
            self._loop.run_until_complete(one.client.close())
            one.close()
        self._loop.close()

    def _python(self, example: Example) -> None:
        text = str(example.parsed)
        named = _FILE.match(text)
        if named:
            (self.folder / named[1]).write_text(text, encoding="utf-8")
        # Empty lines, so that a traceback shows the page's own line numbers.
        lines = "\n" * (example.line + example.parsed.line_offset)
        code = compile(lines + text, example.path, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        if code.co_flags & inspect.CO_COROUTINE:
            self._loop.run_until_complete(eval(code, self._namespace))
        else:
            exec(code, self._namespace)
        # A later block may give the name to another: what this one made is closed at the end all the same.
        made = [value for value in self._namespace.values() if isinstance(value, windlass.Windlass)]
        self._apps += [one for one in made if one not in self._apps]

    def _sh(self, example: Example) -> None:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", str(example.parsed)],
            cwd=self.folder,
            env={**os.environ, "PATH": f"{programs(self.folder)}:{os.environ['PATH']}", "PYTHONPATH": source()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        self.printed += done.stdout
        assert done.returncode == 0, f"{example.path}, line {example.line}: {done.stdout}{done.stderr}"


def source() -> str:
    return str(Path(windlass.__file__).parents[1])


def programs(folder: Path) -> Path:
    """A folder with `windlass` and `python` of this very environment."""
    bin_ = folder / ".bin"
    bin_.mkdir(exist_ok=True)
    for name, command in (("windlass", f"{sys.executable} -m windlass"), ("python", sys.executable)):
        script = bin_ / name
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return bin_


@contextmanager
def runner(folder: Path) -> Generator[Runner, None, None]:
    one = Runner(folder)
    try:
        yield one
    finally:
        one.close()
