"""A store that did what it was asked and did not say so, for longer than a lease: M25 and M26 of the matrix.

The claims of that time leased jobs of which no worker knows. None of these may fail, or count as a crash, and no worker
may have more of them in doubt at a moment than it has room for.
"""

from __future__ import annotations

import asyncio
import signal
from collections import defaultdict
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from pymongo import MongoClient
from pymongo.errors import OperationFailure

from tests.faults.judging import heal, kind_of, resumed, slow_to_resume, spec_of
from tests.faults.network import hurried
from tests.faults.store_gone import KINDS
from tests.support.processes import HOST, Node, Server
from tests.support.servers import start_mongo
from tests.support.until import until_sync
from windlass import Happened
from windlass.chaos.checker import Evidence, check
from windlass.chaos.faults import Finding
from windlass.chaos.invariants import crowded
from windlass.chaos.place import Pace, Place
from windlass.chaos.trial import Trial
from windlass.chaos.waiting import until

WAITING = 40
PATIENCE = 0.8
"""seconds that workers wait for an answer in short trials"""
_NOT_YET = 125
"""MongoDB's code for a command that cannot be carried out now"""


async def majority_silent(place: Place, seed: int, *, long: bool) -> Finding:
    """M25: the primary stays and writes, its followers do not, so no write is acknowledged; claims go on."""
    name, pace = "majority silent", Pace(lease=2.0 if long else 1.0)
    with await asyncio.to_thread(lambda: start_mongo(3, own=True)) as server:
        own = replace(place, url=server.url, namespace="windlass")
        async with Trial(own, pace=pace, spec=spec_of(place), seed=seed) as trial:
            await trial.ready(2, CHAOS_URL=own.url if long else hurried(own.url, PATIENCE))
            await _fill(trial, 3 * WAITING if long else WAITING)
            await until(lambda: len(trial.runs()) > pace.slots, 10)
            with _locked(server):
                trial.strike(name)
                # The subject: for longer than a lease.
                await asyncio.sleep(30.0 if long else 1.5 if place.control else 4.0)
            return await _judged(name, trial, heal(trial, name))


@contextmanager
def _locked(server: Server) -> Generator[None, None, None]:
    """Both followers write nothing meanwhile, and say to the primary that they are well."""
    with ExitStack() as undone:
        followers = [undone.enter_context(client) for node in server.nodes if (client := _follower(node)) is not None]
        assert len(followers) == len(server.nodes) - 1
        for client in followers:
            until_sync(partial(_lock, client), "a follower to be locked")
            undone.callback(client.admin.command, "fsyncUnlock")
        yield


def _lock(client: MongoClient[dict[str, Any]]) -> bool:
    """A follower that has just come to its data can take no checkpoint yet, and says so."""
    try:
        client.admin.command("fsync", lock=True)
    except OperationFailure as error:
        if error.code != _NOT_YET:
            raise
        return False
    return True


def _follower(node: Node) -> MongoClient[dict[str, Any]] | None:
    client: MongoClient[dict[str, Any]] = MongoClient(HOST, node.port, directConnection=True)
    if client.admin.command("hello")["isWritablePrimary"]:
        client.close()
        return None
    return client


async def frozen_with_claims(place: Place, seed: int, *, long: bool) -> Finding:
    """M26: claims lie in the buffers of a frozen server until long after their callers gave up."""
    name, pace = "server frozen with claims", Pace(lease=2.0 if long else 1.0)
    kind = KINDS[kind_of(place)]
    with await asyncio.to_thread(kind.start) as server:
        faults = kind.faults(server)
        own = replace(place, url=server.url, namespace="windlass")
        async with Trial(own, pace=pace, spec=spec_of(place), seed=seed) as trial:
            await trial.ready(2, CHAOS_URL=own.url if long else hurried(own.url, PATIENCE))
            await _fill(trial, 4 * pace.slots)
            await trial.finished(10)
            async with _workers_halted(trial):
                # They wake when the server already stands still: what they ask for first is in its buffers.
                await _fill(trial, WAITING)
                trial.strike(name)
                freezing = asyncio.create_task(faults.freeze(25.0 if long else 3.0))
                await asyncio.sleep(0)
            await freezing
            await faults.until_it_answers()
            return await _judged(name, trial, heal(trial, name))


@asynccontextmanager
async def _workers_halted(trial: Trial) -> AsyncGenerator[None, None]:
    for hand in trial.hands:
        hand.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for hand in trial.hands:
            hand.signal(signal.SIGCONT)


async def _fill(trial: Trial, n: int) -> None:
    """Jobs that one crash fails."""
    await asyncio.gather(*(trial.enqueue("work", seconds=0.1, max_crashes=1) for _ in range(n)))


async def _all_resumed(trial: Trial, since: float) -> bool:
    """Whether every worker begins again, while jobs come in: one that comes back late finds something to begin, too."""
    for _ in range(30):
        if await resumed(trial, since, within=0.5):
            return True
        await _fill(trial, WAITING)
    return False


async def _judged(name: str, trial: Trial, healed: float) -> Finding:
    broken = bool(trial.place.control)
    await _fill(trial, WAITING)
    went_on = broken or await _all_resumed(trial, healed)
    await trial.finished(4 if broken else 40)
    evidence = await trial.evidence()
    report = check(evidence)
    unanswered = [hand.pid for hand in trial.hands if "cannot claim" in hand.log.read_text(errors="replace")]
    doubt = most_in_doubt(evidence)
    missing = [
        *slow_to_resume(report),
        *(["a worker did not resume"] * (not went_on)),
        *(["no claim was left without an answer: nothing was proved"] * (not unanswered)),
        *([f"{doubt} leases at one moment of which their worker never knew"] * (doubt > 0)),
    ]
    return Finding(fault=name, report=report, missing=tuple(missing))


def most_in_doubt(evidence: Evidence) -> int:
    """How many leases one worker had at one moment whose jobs it never began, if more than it has room for."""
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for job, history in evidence.histories.items():
        begun = {run.token for run in evidence.runs.get(job, ())}
        for entry, following in pairwise(history):
            if entry.happened is Happened.CLAIMED and entry.token not in begun and following.happened is Happened.LOST:
                spans[str(entry.actor)].append((entry.at.timestamp(), following.at.timestamp()))
    return max((crowded(some, evidence.pace.slots) for some in spans.values()), default=0)
