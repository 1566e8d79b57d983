"""A Redis Cluster of real nodes: three that have slots, and one replica for the slot of windlass."""

from __future__ import annotations

import time
from typing import Any

from redis import Redis

from tests.support.processes import HOST, Node, Server, free_ports, is_free, new_home
from tests.support.servers import program, redis_answers
from tests.support.until import until_sync

SLOTS = 16384
BUS = 10_000
"""what Redis 6.2 adds to a node's port for the talk among nodes"""


class Cluster:
    """Its nodes, which can be asked one by one, and robbed of a slot."""

    def __init__(self, server: Server) -> None:
        self.server, self.nodes = server, server.nodes

    def url(self, node: Node, database: int = 0) -> str:
        return f"redis://{HOST}:{node.port}/{database}"

    def slot(self, namespace: str = "windlass") -> int:
        return int(ask(self._running()[0], "CLUSTER", "KEYSLOT", f"{{{namespace}}}:"))

    def owner(self, namespace: str = "windlass") -> Node:
        """The node that has the namespace's slot, as the first that answers says."""
        slot = self.slot(namespace)
        for first, last, (_, port, *_), *_ in ask(self._running()[0], "CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return next(one for one in self.nodes if one.port == port)
        raise AssertionError(f"nobody has slot {slot}")

    def primaries(self) -> list[Node]:
        return [node for node in self._running() if ask(node, "ROLE")[0] == b"master"]

    def heal(self) -> None:
        """Every node runs and knows of all, and the replica follows whoever has the slot of windlass."""
        for node in self.nodes:
            if not node.running:
                node.kill()  # forgets the old process
                node.start()
        until_sync(lambda: all(_well(node, len(self.nodes)) for node in self.nodes), "a whole cluster", within=20)
        until_sync(lambda: len(self.primaries()) < len(self.nodes), "one to be a replica", within=20)
        [replica] = [node for node in self.nodes if node not in self.primaries()]
        follow(replica, self.owner())

    def _running(self) -> list[Node]:
        return [node for node in self.nodes if node.running]

    def move(self, to: Node, *, hold: float = 0.0) -> int:
        """Move the slot of windlass to another node, key by key, as redis-cli does; returns how many keys.

        `hold` is how many seconds half of them are there and half of them here.
        """
        source, slot, moved = self.owner(), str(self.slot()), 0
        ask(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", id_of(source))
        ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", id_of(to))
        half = int(ask(source, "CLUSTER", "COUNTKEYSINSLOT", slot)) // 2
        held = False
        while keys := ask(source, "CLUSTER", "GETKEYSINSLOT", slot, "100"):
            ask(source, "MIGRATE", HOST, str(to.port), "", "0", "5000", "KEYS", *keys)
            moved += len(keys)
            if moved >= half and not held:
                held = True
                time.sleep(hold)  # the fault itself: a slot that lies on two nodes
        for node in (to, source, *[one for one in self.primaries() if one not in (to, source)]):
            ask(node, "CLUSTER", "SETSLOT", slot, "NODE", id_of(to))
        return moved


def ask(node: Node, *words: str | bytes) -> Any:
    driver: Any = Redis  # half of its methods have no types
    with driver(host=HOST, port=node.port, socket_timeout=10) as client:
        return client.execute_command(*words)


def id_of(node: Node) -> str:
    return str(ask(node, "CLUSTER", "MYID").decode())


def start_cluster(primaries: int = 3) -> Cluster:
    """Started on free ports; the last node is a replica of whoever has the slot of windlass."""
    redis, home = program("redis", "redis-server"), new_home("redis")
    ports = [port for port in free_ports(100) if port + BUS < 32_000 and is_free(port + BUS)][: primaries + 1]
    nodes: list[Node] = []
    for port in ports:
        node = Node(name="redis", port=port, home=home, command=[], ready=redis_answers)
        node.data.mkdir()
        where = ["--bind", HOST, "--port", str(port), "--dir", str(node.data), "--save", "", "--appendonly", "yes"]
        # A failover after seconds, not the usual 15: tests wait for it.
        shape = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1500", "--repl-diskless-sync-delay", "0"]
        node.command = [str(redis), *where, *shape]
        nodes.append(node)
    server = Server(name="redis", url=f"redis://{HOST}:{ports[0]}/0", nodes=nodes, home=home)
    server.launch()
    try:
        _join(nodes)
    except BaseException:
        server.stop()
        raise
    return Cluster(server)


def _join(nodes: list[Node]) -> None:
    *primaries, replica = nodes
    share = -(-SLOTS // len(primaries))
    for number, node in enumerate(primaries):
        slots = range(number * share, min(SLOTS, (number + 1) * share))
        ask(node, "CLUSTER", "ADDSLOTS", *map(str, slots))
        ask(node, "CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
    for node in nodes[1:]:
        ask(nodes[0], "CLUSTER", "MEET", HOST, str(node.port))
    until_sync(lambda: all(_well(node, len(nodes)) for node in nodes), "the cluster to be formed", within=20)
    slot = int(ask(nodes[0], "CLUSTER", "KEYSLOT", "{windlass}:"))
    follow(replica, primaries[slot // share])


def _well(node: Node, known: int) -> bool:
    told = ask(node, "CLUSTER", "INFO").decode()
    return "cluster_state:ok" in told and f"cluster_known_nodes:{known}" in told


def follow(replica: Node, primary: Node) -> None:
    """Have a node of a cluster follow another; returns when it has all that the other has."""
    ask(replica, "CLUSTER", "REPLICATE", id_of(primary))

    def follows() -> bool:
        found = ask(replica, "INFO", "replication")
        return (found.get("master_port"), found.get("master_link_status")) == (primary.port, "up")

    until_sync(follows, "the replica to follow", within=20)
