"""A process that has imported windlass and the drivers, of which programs are forked: the imports are made once.

Started anew, most of what hundreds of short-lived workers and servers cost would be their imports. As a module it is
that process: it obeys one line for each program, ends with its caller, and has one thread, so that a fork is sound.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from windlass.chaos.starting import Process

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(ROOT), str(ROOT / "src")])
STORES = ("sqlite", "mongo", "postgres", "redis")
IMPORTED = (
    *("windlass.cli.main", "windlass.cli.working", "windlass.worker.worker"),
    *(f"windlass.client.{room}" for room in ("audit", "dead_letters", "operations", "workers")),
    *(f"windlass.stores.{store}.store" for store in STORES),
)
BEFORE_PYTHON = ("LD_PRELOAD", "PYTHONMALLOC", "PYTHONDEVMODE")
"""what takes effect only where a program is loaded"""
LONGEST = 200_000
ABOVE = 1000
"""files are moved beyond this number; no program of ours has as many"""
NOTHING: Mapping[str, str] = {}


@dataclass
class Copy:
    """A program that was forked of the template: for its caller, what `subprocess.Popen` would be."""

    pid: int
    _template: Template
    _code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            self._code = self._template.ask({"ended": self.pid})
        return self._code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:  # its number is nobody else's until its end was told
            os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float = 60) -> int:
        if self.poll() is None:
            file = os.pidfd_open(self.pid)
            try:
                select.select([file], [], [], timeout)
            finally:
                os.close(file)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(f"the copy {self.pid}", timeout)
        return code


@dataclass
class Template:
    """The process, and the line to it."""

    line: socket.socket
    process: subprocess.Popen[bytes] = field(repr=False)

    @staticmethod
    def begun(before: Mapping[str, str]) -> Template:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, its):
            for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                end.setsockopt(socket.SOL_SOCKET, buffer, LONGEST)
        command = [sys.executable, "-m", "tests.support.template", str(its.fileno())]
        known = {name: value for name, value in os.environ.items() if name not in BEFORE_PYTHON}
        environment = {**known, **before, "PYTHONPATH": PATH}
        with its:
            process = subprocess.Popen(command, env=environment, pass_fds=[its.fileno()])
        return Template(ours, process)

    def ask(self, asked: dict[str, Any], *files: int) -> Any:
        socket.send_fds(self.line, [json.dumps(asked).encode()], files)
        answer = self.line.recv(LONGEST)
        if not answer:
            raise RuntimeError(f"the template has ended: {self.process.wait()}")
        return json.loads(answer)

    def end(self) -> None:
        self.line.close()
        self.process.wait()


@cache
def template(before: tuple[tuple[str, str], ...]) -> Template:
    """One for all programs that this process starts with these variables of `BEFORE_PYTHON`."""
    made = Template.begun(dict(before))
    atexit.register(made.end)
    return made


def as_copy(words: Sequence[str], environment: Mapping[str, str], *, log: int, kept: int) -> Process:
    """The same worker as started as a program, in a fraction of the time."""
    with Path(os.devnull).open("rb") as nothing:
        return copied("windlass", words, environment, Path.cwd(), nothing.fileno(), log, log, kept)


def started(
    *words: str, module: str = "windlass", environment: Mapping[str, str] = NOTHING, folder: Path, log: int = 2
) -> Copy:
    """`python -m windlass WORDS` in this folder, in our environment with more; it reads nothing and writes to `log`."""
    known = {**os.environ, "PYTHONPATH": PATH, **environment}
    with Path(os.devnull).open("rb") as nothing:
        return copied(module, words, known, folder, nothing.fileno(), log, log)


def copied(module: str, words: Sequence[str], environment: Mapping[str, str], folder: Path, *files: int | None) -> Copy:
    """`python -m MODULE WORDS`; `files` are what it reads, where it writes, where it complains, and one it inherits."""
    sent = [file for file in files if file is not None]
    told = {"module": module, "words": list(words), "environment": dict(environment), "folder": str(folder)}
    source = template(tuple((name, environment[name]) for name in BEFORE_PYTHON if name in environment))
    return Copy(source.ask({**told, "files": [0, 1, 2, *sent[3:]]}, *sent), source)


# The process itself.


def obey(line: socket.socket) -> None:
    """Fork what is asked for and tell of ends, until the caller is gone."""
    while True:
        told, files, _, _ = socket.recv_fds(line, LONGEST, 4)
        if not told:
            return
        asked = json.loads(told)
        if "ended" in asked:
            pid, status = os.waitpid(asked["ended"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if not answer:
                line.close()
                signal.signal(signal.SIGINT, signal.default_int_handler)
                become(asked, *files)
            for file in files:
                os.close(file)
        line.send(json.dumps(answer).encode())


def become(asked: dict[str, Any], *files: int) -> NoReturn:
    """What a new interpreter would be now, from its first line to its end."""
    # Out of the way first: one file may have the number that another is to have.
    apart = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, ABOVE) for file in files]
    for file in files:
        os.close(file)
    for file, place in zip(apart, asked["files"], strict=True):
        os.dup2(file, place)
        os.close(file)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  # as a new interpreter opens them, until it ends
    sys.stdout = open(1, "w", closefd=False, buffering=1 if os.isatty(1) else -1)  # noqa: SIM115  # the same
    sys.stderr = open(2, "w", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115  # the same
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    if "SHIFTED_CLOCK" in os.environ:
        ctypes.CDLL(None).follow_clock()  # of tests/faults/clock.c, which is loaded before Python
    named = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    sys.path[:] = [asked["folder"], *dict.fromkeys([*named, *sys.path[1:]])]
    sys.argv = [asked["module"], *asked["words"]]
    runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, who then closes the line
    for name in IMPORTED:
        import_module(name)
    obey(socket.socket(fileno=int(sys.argv[1])))
