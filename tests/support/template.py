"""A process that has imported windlass and the drivers, of which programs are forked: the imports are made once.

Started anew, most of what hundreds of short-lived workers and servers cost would be their imports. As a module it is
that process: it obeys one line for each program, ends with its caller, and has one thread, so that a fork is sound.
"""

from __future__ import annotations

import atexit
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

from windlass.chaos.starting import Process, as_program

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(ROOT), str(ROOT / "src")])
STORES = ("sqlite", "mongo", "postgres", "redis")
IMPORTED = ("windlass.cli.working", "windlass.worker", *(f"windlass.stores.{store}.store" for store in STORES))
BEFORE_PYTHON = ("LD_PRELOAD", "PYTHONMALLOC", "PYTHONDEVMODE")
"""what takes effect only where a program is loaded"""
LONGEST = 200_000
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

    def wait(self, timeout: float) -> int:
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
    def begun() -> Template:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, its):
            for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                end.setsockopt(socket.SOL_SOCKET, buffer, LONGEST)
        command = [sys.executable, "-m", "tests.support.template", str(its.fileno())]
        environment = {**os.environ, "PYTHONPATH": PATH}
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
def template() -> Template:
    """One for all trials of this process."""
    made = Template.begun()
    atexit.register(made.end)
    return made


def as_copy(words: Sequence[str], environment: Mapping[str, str], *, log: int, kept: int) -> Process:
    """The same worker as started as a program, in a fraction of the time."""
    if any(environment.get(name) != os.environ.get(name) for name in BEFORE_PYTHON):
        return as_program(words, environment, log=log, kept=kept)
    return _copied("windlass", words, environment, Path.cwd(), log, kept)


def started(
    *words: str, module: str = "windlass", environment: Mapping[str, str] = NOTHING, folder: Path, log: int = 2
) -> Copy:
    """`python -m windlass WORDS` in this folder, in our environment with more; it reads nothing and writes to `log`."""
    return _copied(module, words, {**os.environ, "PYTHONPATH": PATH, **environment}, folder, log)


def _copied(
    module: str, words: Sequence[str], environment: Mapping[str, str], folder: Path, log: int, kept: int | None = None
) -> Copy:
    asked = {
        "module": module,
        "words": list(words),
        "environment": dict(environment),
        "folder": str(folder),
        "kept": kept,
    }
    return Copy(template().ask(asked, log, *([] if kept is None else [kept])), template())


# The process itself.


def obey(line: socket.socket) -> None:
    """Fork what is asked for and tell of ends, until the caller is gone."""
    while True:
        told, files, _, _ = socket.recv_fds(line, LONGEST, 2)
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


def become(asked: dict[str, Any], log: int, kept: int | None = None) -> NoReturn:
    """What a new interpreter would be now, from its first line to its end."""
    with Path(os.devnull).open("rb") as nothing:
        for file, place in ((nothing.fileno(), 0), (log, 1), (log, 2)):
            os.dup2(file, place)
    os.close(log)
    if kept is not None:
        if kept != asked["kept"]:
            os.dup2(kept, asked["kept"])
            os.close(kept)
        os.set_inheritable(asked["kept"], True)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
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
