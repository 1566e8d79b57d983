"""One server that is killed or frozen and comes back, and what every store has to stand while worker processes run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import psutil

from tests.faults.ledger import Judgement, Trial
from tests.support.processes import Node, Server
from tests.support.until import until
from windlass import Windlass

WORKERS = 4
WAITING = 400
"""jobs enqueued before the fault, so that no worker runs dry"""
RESUMED_WITHIN = 5.0
"""seconds from the first answer of the server until every worker has begun a job"""
DOWN = 4.0
"""seconds that a killed server stays away; longer than a lease"""
FREEZE = float(os.environ.get("WINDLASS_TEST_FREEZE_S", "5"))
"""seconds that a server stands still; longer than a lease. Beyond the store's timeout (10) enqueues are refused"""


class OneServer(ABC):
    """What may befall it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._frozen: list[psutil.Process] = []

    @abstractmethod
    async def answers(self) -> bool:
        """Whether a connection made anew is answered; may raise nothing."""

    @property
    def node(self) -> Node:
        [node] = self.server.nodes
        return node

    async def kill(self, down: float = DOWN) -> None:
        """`kill -9`, and started again on the same data and port after a while."""
        await asyncio.to_thread(self.node.kill)
        await asyncio.sleep(down)  # the fault itself
        await asyncio.to_thread(self.start)

    def start(self) -> None:
        """On the same data and port."""
        if not self.node.running:
            self.node.kill()  # forgets the old process
            self.node.start()

    async def freeze(self, seconds: float = FREEZE) -> None:
        """Every process of the server stands still; its sockets stay open, and take what is sent."""
        leader = psutil.Process(self.node.pid)
        leader.send_signal(signal.SIGSTOP)  # first, so that it starts no other
        self._frozen = [leader, *leader.children(recursive=True)]
        for process in self._frozen[1:]:
            process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)  # the fault itself
        self.thaw()

    def thaw(self) -> None:
        for process in reversed(self._frozen):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)
        self._frozen = []

    async def until_it_answers(self) -> float:
        """When it answered a connection made anew."""
        await until(self.answers, "the server to answer", within=40)
        return time.monotonic()


@dataclass(frozen=True, kw_only=True)
class Struck:
    """What a fault did to a trial under load."""

    at: float
    able: float
    resumed: dict[int, float]
    went_on: int
    """jobs that were acknowledged after every worker had resumed"""
    found: Judgement

    def __str__(self) -> str:
        return (
            f"{self.found}, the server answered after {self.able - self.at:.2f} s, workers resumed"
            f" {', '.join(f'{seconds:.2f}' for seconds in sorted(self.resumed.values()))} s later"
        )

    def insist(self) -> None:
        """Whatever was lost, nobody ran what another might, all else ended, and work went on soon."""
        assert not self.found.unfinished, self.found.unfinished[:10]
        assert not self.found.wrong, "\n".join(self.found.wrong[:3])
        assert self.went_on, "producers went on"
        assert max(self.resumed.values()) < RESUMED_WITHIN


async def under_load(
    trial: Trial, client: Windlass, fault: Callable[[], Awaitable[None]], able: Callable[[], Awaitable[float]]
) -> Struck:
    """Workers run and producers enqueue while the fault comes and goes; `able` says when the server answered again."""
    await trial.fill(client, WAITING, 0.3)
    for _ in range(WORKERS):
        trial.start_worker("--concurrency", "8")
    await trial.until_all_resumed(0, within=60)

    async with trial.producing(client, producers=4, pause=0.1, seconds=0.3):
        # Longer than a server may take to write down what it has acknowledged: what is lost of that is lost for good.
        await asyncio.sleep(2.5)
        at = time.monotonic()
        await fault()
        answered = await able()
        resumed = await trial.until_all_resumed(answered, within=40)
        acknowledged_then = len(trial.acknowledged)
        with contextlib.suppress(AssertionError):  # judged by `insist`
            await until(lambda: len(trial.acknowledged) > acknowledged_then + 20, "producers to go on")

    found = await trial.judged(client, within=60)
    went_on = len(trial.acknowledged) - acknowledged_then
    return Struck(at=at, able=answered, resumed=resumed, went_on=went_on, found=found)
