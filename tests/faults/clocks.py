"""Wall clocks that are wrong: a shim that is preloaded into a worker or a server and shifted while it runs."""

from __future__ import annotations

import atexit
import shutil
import struct
import subprocess
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

SOURCE = Path(__file__).with_name("clock.c")


@cache
def _shim() -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "to shift a clock a C compiler is needed: install gcc"
    made = Path(mkdtemp(prefix="windlass-clock-")) / "clock.so"
    atexit.register(shutil.rmtree, made.parent, ignore_errors=True)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", made, SOURCE, "-ldl"], check=True)
    made.parent.chmod(0o711)  # a server that runs as nobody has to find it, too
    return made


class Clock:
    """A wall clock that can be set, for processes started with its environment."""

    def __init__(self, folder: Path, name: str = "clock") -> None:
        self._file = folder / name
        self.shift(timedelta(0))

    @property
    def environment(self) -> dict[str, str]:
        """What a process has to be started with."""
        return {"LD_PRELOAD": str(_shim()), "SHIFTED_CLOCK": str(self._file)}

    def shift(self, by: timedelta) -> None:
        """Set it so much ahead of the right time, or behind."""
        text = struct.pack("q", by // timedelta(microseconds=1) * 1000)
        if self._file.exists():
            with self._file.open("r+b") as file:  # in place: the process has it mapped
                file.write(text)
        else:
            self._file.write_bytes(text)
