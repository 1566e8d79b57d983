"""The history of a trial: what every producer and handler did, in lines that a killed process cannot take back.

All processes of a trial share one host, so the monotonic clock of their lines is one clock. Effects have a second
witness, one file each, so that one done twice is counted even where a line is missing.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any


class What(StrEnum):
    """What a line tells of."""

    INVOKED = "enqueue.invoke"
    ACKNOWLEDGED = "enqueue.ok"
    UNKNOWN = "enqueue.unknown"
    """the enqueue raised: the job may exist or not"""
    BEGUN = "exec.begin"
    ACTED = "exec.act"
    """a handler that may be ended without a word is still at it"""
    ENDED = "exec.end"
    STOPPED = "exec.stopped"
    """the handler was cancelled, or raised on purpose"""
    EFFECT = "effect"
    FAULT = "fault"
    HEALED = "healed"
    STALLED = "stalled"
    """a process found that it had not run for a while; `seconds` says how long"""
    EXITED = "exited"
    """a worker process ended; `note` holds its exit code"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that happened. `name` is a job's own, known before it has an id; or that of a fault."""

    what: What
    at: float
    wall: float
    pid: int | None = None
    name: str | None = None
    job: str | None = None
    token: int | None = None
    seconds: float | None = None
    key: str | None = None
    """the unique key it was enqueued under"""
    limit: int | None = None
    """how many of its key may run at once"""
    expect: str | None = None
    """how the job should end"""
    note: str | None = None


class History:
    """The lines and the effects in one folder; any number of processes may write at once."""

    def __init__(self, folder: Path) -> None:
        self._path, self._effects = folder / "history", folder / "effects"
        self._effects.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._read = 0
        self._tail = b""
        self._lines: list[Line] = []

    def tell(self, what: What, *, pid: int | None = None, **members: object) -> None:
        """Append a line; one write, so that lines of several processes do not mix."""
        line = {"what": what, "at": time.monotonic(), "wall": time.time(), "pid": pid, **members}
        told = {name: value for name, value in line.items() if value is not None}
        os.write(self._file, f"{json.dumps(told)}\n".encode())

    def effect(self, job: str, token: int) -> None:
        """Do something to the world outside: a file that was not there before, then its line."""
        number = 0
        while True:
            number += 1
            try:
                file = os.open(self._effects / f"{job}.{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                continue
            os.write(file, f"{token} {os.getpid()}\n".encode())
            os.close(file)
            break
        self.tell(What.EFFECT, pid=os.getpid(), job=job, token=token)

    def first(self, name: str) -> bool:
        """Whether this was never asked before of this name, by any process."""
        try:
            os.close(os.open(self._effects.parent / f"once-{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return False
        return True

    def lines(self) -> list[Line]:
        """Every line so far; each is read once."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            found = file.read()
        self._read += len(found)
        *whole, self._tail = (self._tail + found).split(b"\n")
        self._lines += map(_line, whole)
        return self._lines

    def effects(self) -> Counter[str]:
        """How many effects there are of each job, by the files."""
        return Counter(path.name.rpartition(".")[0] for path in self._effects.iterdir())

    def close(self) -> None:
        """Let the file go."""
        os.close(self._file)


def _line(text: bytes) -> Line:
    members: dict[str, Any] = json.loads(text)
    members["what"] = What(members["what"])
    return Line(**members)


def as_told(line: Line) -> str:
    """A line for people."""
    return " ".join(f"{name}={value}" for name, value in asdict(line).items() if value is not None)


PULSE = 0.02
LONG = 0.06


@cache
def pulse(history: History) -> threading.Thread:
    """A thread that notes whenever this process did not get to run for a while: frozen, starved, or its GIL held."""
    thread = threading.Thread(target=_beat, args=(history,), name="chaos-pulse", daemon=True)
    thread.start()
    return thread


def _beat(history: History) -> None:
    last = time.monotonic()
    while True:
        time.sleep(PULSE)
        now = time.monotonic()
        if now - last > LONG:
            history.tell(What.STALLED, pid=os.getpid(), seconds=now - last)
        last = now
