"""A replica set whose primary is deposed, killed or frozen, and a control that writes less durably beside windlass."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any
from urllib.parse import urlsplit

from pymongo import MongoClient
from pymongo.errors import PyMongoError
from pymongo.write_concern import WriteConcern

from tests.support.processes import HOST, Node, Server
from tests.support.until import until_sync


class ReplicaSet:
    """Three members, each of which can be deposed, killed, frozen, and brought back."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.nodes = server.nodes
        self._frozen: list[Node] = []
        self.heal()
        self._hasten()

    def _hasten(self) -> None:
        # A new primary waits for word from every member before it takes writes: of a frozen one for 10 s, by default.
        client: MongoClient[dict[str, Any]] = MongoClient(self.server.url, serverSelectionTimeoutMS=20_000)
        with client:
            config: dict[str, Any] = client.admin.command("replSetGetConfig")["config"]
            config["version"] += 1
            # While one is frozen the other two learn of each other's progress with every heartbeat, and only then can
            # acknowledge a write: every 2 s, by default.
            quick = {"heartbeatTimeoutSecs": 2, "catchUpTimeoutMillis": 2000, "heartbeatIntervalMillis": 500}
            config["settings"].update(quick)
            client.admin.command("replSetReconfig", config)

    def url(self, database: str) -> str:
        """The whole set, with a database of its own."""
        return urlsplit(self.server.url)._replace(path=f"/{database}").geturl()

    def primary(self) -> Node | None:
        """The member that says it is primary and answers; of two, the one of the later election."""
        answers = [(self._hello(node), node) for node in self.nodes]
        leading = [(answer["electionId"], node.port) for answer, node in answers if answer.get("isWritablePrimary")]
        port = max(leading)[1] if leading else None
        return next((node for node in self.nodes if node.port == port), None)

    def wait_for_primary(self, *, other_than: Node | None = None) -> Node:
        """The primary, once there is one, or another one than before."""

        def found() -> Node | None:
            leading = self.primary()
            return None if leading is other_than else leading

        node = until_sync(found, "a primary to be elected", within=25)
        assert node is not None
        return node

    def wait_for_durable_writes(self) -> None:
        """Returns when a majority acknowledges what is written through the primary, whichever that is by then."""

        def taken() -> bool:
            leading = self.primary()
            return leading is not None and _takes_durable_writes(leading)

        until_sync(taken, "a durable write to be acknowledged", within=60)

    def others(self, node: Node) -> list[Node]:
        return [one for one in self.nodes if one is not node]

    def step_down(self, node: Node) -> None:
        # The server may close the connection that asked.
        with contextlib.suppress(PyMongoError), _direct(node, 5000) as client:
            client.admin.command("replSetStepDown", 5, secondaryCatchUpPeriodSecs=2, force=True)

    def freeze(self, node: Node) -> None:
        os.kill(node.pid, signal.SIGSTOP)
        self._frozen.append(node)

    def thaw(self) -> None:
        for node in self._frozen:
            if node.running:
                os.kill(node.pid, signal.SIGCONT)
        self._frozen.clear()

    def heal(self) -> None:
        """Every member runs, one leads and the others follow."""
        self.thaw()
        for node in self.nodes:
            if not node.running:
                node.kill()  # forgets the old process
                node.start()

        def healthy() -> bool:
            answers = [self._hello(node) for node in self.nodes]
            return sum(bool(one.get("isWritablePrimary")) for one in answers) == 1 and all(
                one.get("isWritablePrimary") or one.get("secondary") for one in answers
            )

        until_sync(healthy, "every member to lead or follow", within=40)
        # A member killed before its first sync is on its disk would begin that again, and could not be elected.
        client: MongoClient[dict[str, Any]] = MongoClient(self.server.url, serverSelectionTimeoutMS=20_000)
        with client:
            seen_by_all = WriteConcern(w=len(self.nodes), j=True, wtimeout=20_000)
            client.get_database("healed", write_concern=seen_by_all).get_collection("healed").insert_one({})

    def _hello(self, node: Node) -> dict[str, Any]:
        if not node.running or node in self._frozen:
            return {}
        try:
            with _direct(node, 300) as client:
                return dict(client.admin.command("hello"))
        except PyMongoError:
            return {}


def _direct(node: Node, milliseconds: int) -> MongoClient[dict[str, Any]]:
    return MongoClient(
        HOST,
        node.port,
        directConnection=True,
        serverSelectionTimeoutMS=milliseconds,
        connectTimeoutMS=milliseconds,
        socketTimeoutMS=milliseconds,
    )


def _takes_durable_writes(node: Node) -> bool:
    with _direct(node, 2000) as client:
        probes = client.get_database("probes").get_collection("probes", write_concern=WriteConcern("majority"))
        try:
            probes.insert_one({})
        except PyMongoError:
            return False
    return True


def written_with_w1(node: Node, database: str, seconds: float) -> list[int]:
    """The control: numbers whose insert one member alone acknowledged, within so many seconds."""
    acknowledged: list[int] = []
    ends = time.monotonic() + seconds
    with _direct(node, 3000) as client:
        numbers = client.get_database(database).get_collection("control", write_concern=WriteConcern(w=1))
        while time.monotonic() < ends:
            try:
                numbers.insert_one({"_id": len(acknowledged)})
            except PyMongoError:
                break
            acknowledged.append(len(acknowledged))
    return acknowledged


def found_in_control(node: Node, database: str) -> set[int]:
    with _direct(node, 5000) as client:
        return {int(one["_id"]) for one in client.get_database(database).get_collection("control").find()}
