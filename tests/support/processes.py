"""Server processes: started, stopped, killed, started again on the same port and data, and never left behind."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tests.support.until import until_sync

HOST = "127.0.0.1"
START_WITHIN = 30.0
STOP_WITHIN = 15.0

# What ends the servers if this process dies without a word: it sees its standard input close, then stops each process
# listed in pids/, and removes the data.
GUARD = """
read -r _
for pid in $(ls "$1/pids"); do kill -s "$2" "$pid"; done
for pid in $(ls "$1/pids"); do
  tries=0
  while kill -0 "$pid" && [ "$tries" -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
  kill -s KILL "$pid"
done
rm -rf "$1"
"""


@dataclass(frozen=True, kw_only=True)
class Account:
    """Who a server runs as; by default whoever runs this."""

    user: int | None = None
    group: int | None = None
    groups: list[int] | None = None


OURS = Account()


def not_root() -> Account:
    """PostgreSQL refuses to run as root. The account `nobody` exists everywhere, so none has to be made."""
    if os.geteuid() != 0:
        return OURS
    import pwd

    entry = pwd.getpwnam("nobody")
    return Account(user=entry.pw_uid, group=entry.pw_gid, groups=[])


def give(path: Path, account: Account) -> None:
    if account.user is not None and account.group is not None:
        os.chown(path, account.user, account.group, follow_symlinks=False)


@dataclass(kw_only=True)
class Node:
    """One server process, which can be started again on the same port and data."""

    name: str
    port: int
    home: Path
    command: Sequence[str]
    ready: Callable[[Node], bool]
    stop_signal: signal.Signals = signal.SIGTERM
    account: Account = OURS
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """what it is started with besides ours"""
    _process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.home / f"data-{self.port}"

    @property
    def log(self) -> Path:
        return self.home / f"log-{self.port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError(f"{self.name} on port {self.port} is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                cwd=self.data,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                user=self.account.user,
                group=self.account.group,
                extra_groups=self.account.groups,
                start_new_session=True,  # Ctrl-C is for us: we stop the server in our own time
            )
        self._listing.touch()
        until_sync(self._ready_or_dead, f"{self.name} on port {self.port} to answer", within=START_WITHIN)

    def ask_to_stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(self.stop_signal)

    def stop(self) -> None:
        """Asks for a clean end and insists when there is none."""
        if self._process is None:
            return
        self.ask_to_stop()
        try:
            self._process.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self.kill()
        self._forget()

    def kill(self) -> None:
        """The whole server is gone at once, as after `kill -9` or a lost machine."""
        if self._process is None:
            return
        family = descendants(self._process.pid)
        self._process.kill()
        for child in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        self._process.wait()
        # PostgreSQL does not start while an orphan holds the old shared memory.
        until_sync(lambda: all(map(ended, family)), f"the children of {self.name} to end", within=STOP_WITHIN)
        self._forget()

    def restart(self) -> None:
        self.stop()
        self.start()

    @property
    def _listing(self) -> Path:
        return self.home / "pids" / str(self.pid)

    def _forget(self) -> None:
        if self._process is not None:
            self._listing.unlink(missing_ok=True)
            self._process = None

    def _ready_or_dead(self) -> bool:
        if self.running:
            return self.ready(self)
        self._forget()
        raise RuntimeError(f"{self.name} did not start: {self.log.read_text(errors='replace')[-2000:]}")


@dataclass(kw_only=True)
class Server:
    """A running server with its `url`: a context manager that stops it. With several `nodes`, it is all of them."""

    name: str
    url: str
    nodes: list[Node] = field(default_factory=list[Node])
    home: Path | None = None
    settle: Callable[[], None] = lambda: None
    _guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._ours()[0].pid

    def kill(self) -> None:
        """`kill -9`; the data stays for `restart`."""
        for node in self._ours():
            node.kill()

    def restart(self) -> None:
        """Starts again on the same port and data, stopping first what still runs."""
        self._end(self._ours())
        for node in self.nodes:
            node.start()
        self.settle()

    def stop(self) -> None:
        """Ends the processes started here and removes their data; may be called twice."""
        self._end(self.nodes)
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None
        if self.home is not None:
            shutil.rmtree(self.home, ignore_errors=True)

    def launch(self) -> Self:
        """Starts every node; after a failure nothing is left running."""
        assert self.home is not None
        how = self.nodes[0].stop_signal.name.removeprefix("SIG")
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "guard", str(self.home), how],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            for node in self.nodes:
                node.start()
            self.settle()
        except BaseException:
            self.stop()
            raise
        return self

    @staticmethod
    def _end(nodes: Sequence[Node]) -> None:
        for node in nodes:  # all at once: members of a replica set wait for each other
            node.ask_to_stop()
        for node in nodes:
            node.stop()

    def _ours(self) -> list[Node]:
        if not self.nodes:
            raise RuntimeError(f"the {self.name} at {self.url} was not started here, so it is not ended here")
        return self.nodes


def free_ports(count: int) -> list[int]:
    """Below the ports that outgoing connections take, so that no other process gets one while its server is down."""
    # Not `random` itself: pytest-randomly gives it the same seed in every test process.
    some = random.SystemRandom().sample(range(15000, 32000), 200)
    found = [port for port in some if is_free(port)][:count]
    if len(found) < count:
        raise RuntimeError(f"wanted {count} free ports between 15000 and 32000, found {len(found)}")
    return found


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def new_home(name: str) -> Path:
    """A temporary directory that `nobody` can pass through, but in which only we write."""
    usable = [path for path in map(Path, (tempfile.gettempdir(), "/tmp", "/var/tmp")) if open_to_all(path)]
    home = Path(tempfile.mkdtemp(prefix=f"windlass-{name}-", dir=usable[0] if usable else None))
    home.chmod(0o711)
    (home / "pids").mkdir()
    return home


def open_to_all(directory: Path) -> bool:
    return all(mode(path) & stat.S_IXOTH for path in (directory.resolve(), *directory.resolve().parents))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def ended(process: psutil.Process) -> bool:
    """Also true of a zombie: in a container nobody may ever collect it."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
