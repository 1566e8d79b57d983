"""Claim: queued jobs become leased ones in one script; what may not run yet becomes blocked."""

from __future__ import annotations

import random
import secrets
from functools import lru_cache
from typing import TYPE_CHECKING

from windlass.stores.contract import Claimed
from windlass.stores.redis.records import Shared, as_duration_ms, job_of, kept_of, told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.core.job import Job
    from windlass.stores.contract import Want
    from windlass.stores.redis.connection import Link, Value

_MOST_MARKS = 1000
"""of one worker, while nothing answers: the server keeps them for an hour anyway"""

_told = lru_cache(told)
_REST = 2  # more was in doubt than was wanted


class Marks:
    """What the server is still to be told of each worker's earlier claims; claim.lua says what it makes of it."""

    def __init__(self) -> None:
        self._past: dict[str, list[str]] = {}

    def of(self, worker_id: str) -> tuple[str, ...]:
        """To be told with the worker's next claim."""
        return tuple(self._past.get(worker_id, ()))

    def told(self, worker_id: str, marks: tuple[str, ...]) -> None:
        """The server knows of these."""
        left = [mark for mark in self._past.pop(worker_id, ()) if mark not in marks]
        if left:
            self._past[worker_id] = left

    def add(self, worker_id: str, mark: str) -> None:
        """One more."""
        past = self._past.setdefault(worker_id, [])
        past.append(mark)
        del past[:-_MOST_MARKS]


async def claim(link: Link, want: Want, marks: Marks) -> Claimed:
    """At most `want.n` jobs, first by priority, then queue by queue in turns."""
    # A claim whose answer was lost is asked again under the same mark, and gets what it took the first time.
    mark, past = secrets.token_hex(8), marks.of(want.worker_id)
    lease, actor = as_duration_ms(want.lease), _told(want.worker_id)
    weights = _pairs({queue: weight for queue, weight in want.weights.items() if weight != 1})
    queues: list[Value] = [-1] if want.queues is None else _pairs(want.queues)
    draw, repeated = random.getrandbits(24), False

    def values(again: bool) -> list[Value]:  # noqa: FBT001  # called by the link alone
        nonlocal repeated
        repeated = again
        asked: list[Value] = [want.worker_id, want.n, lease, mark, int(again), actor, draw]
        return [*asked, len(past), *past, *weights, *queues, *want.types]

    try:
        more, *answer = await link.ask("claim", values)
    except BaseException:  # a cancelled one, too, may have been carried out
        marks.add(want.worker_id, f"?{mark}")
        raise
    marks.told(want.worker_id, past)
    if repeated:
        marks.add(want.worker_id, f"!{mark}")
    elif answer:
        marks.add(want.worker_id, f"-{mark}")
    if more == _REST:
        marks.add(want.worker_id, f"?{mark}+")
    kinds: dict[bytes, Shared] = {}
    return Claimed(
        [
            job_of(id_.decode(), record, kinds) if beside == b"" else _with(beside, id_.decode(), record, kinds)
            for id_, record, beside in zip(answer[::3], answer[1::3], answer[2::3], strict=True)
        ],
        more=bool(more),
    )


def _with(beside: bytes | list[bytes], id_: str, record: bytes, kinds: dict[bytes, Shared]) -> Job:
    """The job with its payload, if that lies beside its record, and with what it has kept, if it has."""
    *kept, payload = [beside] if isinstance(beside, bytes) else beside
    return job_of(id_, record, kinds, payload.decode(), kept_of(kept) if kept else None)


def _pairs(numbers: Mapping[str, int]) -> list[Value]:
    values: list[Value] = [len(numbers)]
    for queue, number in numbers.items():
        values += [queue, number]
    return values
