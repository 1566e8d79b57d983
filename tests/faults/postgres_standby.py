"""A standby of a PostgreSQL server: made by pg_basebackup, following through any port, and promoted."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from tests.faults.postgres_faults import Faults
from tests.support.processes import HOST, Node, Server, free_ports, give, new_home
from tests.support.servers import postgres_answers, run_as
from tests.support.until import until

STREAMING = "SELECT state = 'streaming' AND sync_state = $1 FROM pg_stat_replication"


def start_standby(primary: Server, through: int) -> Server:
    """A copy of the primary that follows it through this port."""
    [model] = primary.nodes
    home, [port] = new_home("standby"), free_ports(1)
    node = Node(name="standby", port=port, home=home, command=[], ready=postgres_answers)
    node.stop_signal, node.account = signal.SIGINT, model.account
    node.data.mkdir(mode=0o700)
    give(node.data, node.account)
    changed = {str(model.data): str(node.data), f"port={model.port}": f"port={port}"}
    node.command = [changed.get(word, word) for word in model.command]
    try:
        _copy(Path(model.command[0]).with_name("pg_basebackup"), node, through)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    url = f"postgresql://postgres@{HOST}:{port}/postgres"
    return Server(name="postgres", url=url, nodes=[node], home=home).launch()


def _copy(program: Path, node: Node, through: int) -> None:
    where = ["--host", HOST, "--port", str(through), "--username", "postgres", "--pgdata", str(node.data)]
    run_as(node, program, *where, "--write-recovery-conf", "--checkpoint=fast", "--no-sync")


async def wait_for_standby(primary: Server) -> None:
    """Have the primary acknowledge from now on only what its standby has on its disk."""
    async with Faults(primary).connected() as db:
        await db.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        await db.execute("SELECT pg_reload_conf()")


async def until_streaming(primary: Server, *, synchronous: bool) -> None:
    """The standby follows, and is waited for or not."""

    async def follows() -> bool:
        async with Faults(primary).connected() as db:
            return await db.fetchval(STREAMING, "sync" if synchronous else "async") is True

    await until(follows, "the standby to follow", within=20)


async def promote(standby: Server) -> None:
    """Make it a server that writes."""
    async with Faults(standby).connected() as db:
        assert await db.fetchval("SELECT pg_promote(true, 20)") is True
