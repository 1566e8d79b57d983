from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.template import as_copy
from tests.support.until import until_sync
from windlass import __version__
from windlass.chaos.starting import Process, Start, as_program

pytestmark = pytest.mark.timeout(60)
STARTS = (as_copy, as_program)


@pytest.fixture(params=STARTS, ids=lambda start: start.__name__)
def start(request: pytest.FixtureRequest) -> Start:
    """A copy is held to what the program does."""
    found: Start = request.param
    return found


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def started(start: Start, folder: Path, kept: int, *words: str, **besides: str) -> Process:
    with (folder / "log").open("wb") as log:
        return start(words, {**os.environ, **besides}, log=log.fileno(), kept=kept)


def said(folder: Path) -> str:
    return (folder / "log").read_text()


def code_of(process: Process) -> int:
    until_sync(lambda: process.poll() is not None, "it to end", within=30)
    code = process.poll()
    assert code is not None
    return code


def test_a_command_writes_to_its_log_and_ends_with_its_code(
    start: Start, tmp_path: Path, pipe: tuple[int, int]
) -> None:
    assert code_of(started(start, tmp_path, pipe[0], "--version")) == 0
    assert __version__ in said(tmp_path)
    assert code_of(started(start, tmp_path, pipe[0], "worker", "no.such.module:app")) == 2
    assert "there is no module" in said(tmp_path)


def test_a_worker_has_its_environment_obeys_signals_and_ends_with_the_pipe(
    start: Start, tmp_path: Path, pipe: tuple[int, int]
) -> None:
    words = ("worker", "windlass.chaos.workload:app", f"--child={pipe[0]}")
    place = {"CHAOS_URL": f"sqlite:///{tmp_path}/jobs.db", "CHAOS_FOLDER": str(tmp_path)}
    polite, killed = (started(start, tmp_path, pipe[0], *words, **place) for _ in range(2))
    until_sync(lambda: "worker.started" in said(tmp_path), "it to be ready", within=30)
    assert (tmp_path / "jobs.db").exists()
    killed.send_signal(signal.SIGKILL)
    assert code_of(killed) == -signal.SIGKILL
    assert polite.poll() is None
    os.close(pipe[1])
    try:
        assert code_of(polite) == 0
    finally:
        os.dup2(pipe[0], pipe[1])  # the fixture closes both
