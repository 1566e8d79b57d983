"""Rows of the matrix that other tests prove: a long run runs those."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from windlass.chaos.faults import Finding
from windlass.chaos.place import Place
from windlass.chaos.report import Report

ROOT = Path(__file__).parents[2]


class ProvenBy:
    """Runs the tests of a file, or those whose names hold one of the words."""

    def __init__(self, file: str, words: str = "") -> None:
        self.file, self.words = file, words

    def _command(self) -> list[str]:
        chosen = ["-k", self.words] if self.words else []
        return [sys.executable, "-m", "pytest", "-q", "-n0", self.file, *chosen]

    def tests(self) -> list[str]:
        """The names of those tests."""
        names = re.findall(r"^(?:async )?def (test_\w+)", (ROOT / self.file).read_text(encoding="utf-8"), re.MULTILINE)
        words = self.words.split(" or ")
        return [name for name in names if any(word in name for word in words)]

    async def __call__(self, place: Place, seed: int, *, long: bool) -> Finding:
        code, said = await self._carried_out()
        return Finding(fault=self.file, report=Report(acknowledged=0), missing=(said[-2000:],) if code else ())

    async def _carried_out(self) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *self._command(), cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        said, _ = await process.communicate()
        return process.returncode or 0, said.decode(errors="replace")
