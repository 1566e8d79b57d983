"""Lines of several processes in one pipe: each stays whole, and nobody waits for ever for who has been stopped."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

import pytest

from windlass.observability import turns
from windlass.observability.turns import WholeLines

PROCESSES, LINES, LENGTH = 3, 60, 20_000
WRITER = """
import logging, sys
from windlass.observability.forms import write_lines
write_lines(sys.stdout, "json")
logger = logging.getLogger("windlass.sub")
print("here", file=sys.stderr, flush=True)
sys.stdin.readline()
for n in range(int(sys.argv[2])):
    logger.warning(sys.argv[1] * int(sys.argv[3]))
    logger.warning("short")
"""
HOLDER = """
import fcntl, sys
fcntl.lockf(int(sys.argv[1]), fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_lines_that_are_longer_than_a_pipe_takes_at_once_stay_whole() -> None:
    reading, writing = os.pipe()
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(number), str(LINES), str(LENGTH)],
            stdin=subprocess.PIPE,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    os.close(writing)
    for one in writers:
        assert one.stderr is not None
        assert one.stderr.readline() == "here\n"
    for one in writers:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    with os.fdopen(reading) as pipe:
        told = [json.loads(line)["message"] for line in pipe]
    for one in writers:
        assert one.communicate()[1] == ""
    wanted = [str(number) * LENGTH for number in range(PROCESSES) for _ in range(LINES)]
    assert sorted(told) == sorted([*wanted, *["short"] * (PROCESSES * LINES)])


def test_a_line_does_not_wait_for_ever_for_a_process_that_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.2)
    reading, writing = os.pipe()
    with os.fdopen(reading) as pipe, os.fdopen(writing, "w") as stream:
        handler = WholeLines(stream)
        with held(writing):
            waited = [timed(handler, stream), timed(handler, stream)]
        assert waited[0] >= 0.2
        assert waited[1] < 0.2  # it is not waited for again
        with held(writing):
            timed(handler, stream)
        timed(handler, stream)
        with held(writing):
            assert timed(handler, stream) >= 0.2  # it had its turn in between
        stream.close()
        assert pipe.read() == "line\n" * 5


def timed(handler: logging.Handler, stream: TextIO) -> float:
    began = time.monotonic()
    handler.handle(logging.makeLogRecord({"msg": "line"}))
    stream.flush()
    return time.monotonic() - began


@contextmanager
def held(file: int) -> Generator[None]:
    """Another process has its turn, and does not give it up."""
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(file)],
        pass_fds=(file,),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    try:
        yield
    finally:
        other.communicate()
