"""Claims in doubt: what a claim may have leased although it raised, and how the next one finds out.

A lost answer, a timeout or a majority that did not acknowledge leaves it open which jobs a claim leased. They are kept
here by the claim's mark, until a renewal of their leases that a majority acknowledges shows which they are.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.status import Status
from windlass.stores.mongo.records import NO_HISTORY, as_ms, job_of

if TYPE_CHECKING:
    from datetime import datetime

    from bson import ObjectId

    from windlass.core.job import Job
    from windlass.stores.contract import Want
    from windlass.stores.mongo.connection import Doc, Link


class Doubt(NamedTuple):
    """What one claim may have leased."""

    mark: ObjectId
    tokens: dict[str, int]
    """of each job, in the order in which they were chosen: the token of its lease, if it was leased"""
    until: datetime
    """after this instant the server leases nothing under the mark any more"""


class Doubts:
    """The claims in doubt of one store's workers."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._open: dict[str, list[Doubt]] = {}
        self._asking = asyncio.Lock()

    def add(self, worker_id: str, doubt: Doubt) -> None:
        """Remember what a worker may hold without knowing."""
        if doubt.tokens:
            self._open.setdefault(worker_id, []).append(doubt)

    async def adopt(self, want: Want) -> list[Job]:
        """What the worker holds without knowing, at most as many as it wants; raises if that cannot be found out."""
        if want.worker_id not in self._open:
            return []
        async with self._asking:
            doubts = self._open.get(want.worker_id, [])
            for doubt in tuple(doubts):
                held, rest = await self._renew(doubt, want)
                doubts.remove(doubt)
                doubts += [rest] if rest.tokens else []
                if not doubts:
                    del self._open[want.worker_id]
                if held:
                    return held
        return []

    async def _renew(self, doubt: Doubt, want: Want) -> tuple[list[Job], Doubt]:
        """What of it is the worker's, its leases renewed, and what stays in doubt."""
        now = await self._link.look()
        alike: dict[int, list[str]] = defaultdict(list)
        for job_id, token in doubt.tokens.items():
            alike[token].append(job_id)
        until = [{"$set": {"lease_expires_at": {"$add": ["$$NOW", as_ms(want.lease)]}}}]
        docs: dict[str, Doc] = {}
        for token, ids in alike.items():
            held: Doc = {
                "_id": {"$in": ids},
                "status": Status.PROCESSING.value,
                "worker_id": want.worker_id,
                "lease_token": token,
                "history.mark": doubt.mark,
            }
            await self._link.update_many(held, until)
            docs |= {doc["_id"]: doc for doc in await self._link.jobs.find(held, NO_HISTORY).to_list()}
        ours = [docs[job_id] for job_id in doubt.tokens if job_id in docs]
        for doc in ours[: want.n]:
            self._link.hold(doc)
        kept = {doc["_id"] for doc in ours[want.n :]}
        if now <= doubt.until:
            kept |= doubt.tokens.keys() - docs.keys()  # the server may still come to lease these
        rest = {job_id: token for job_id, token in doubt.tokens.items() if job_id in kept}
        return [job_of(doc) for doc in ours[: want.n]], doubt._replace(tokens=rest)
