"""Claim: queued jobs become leased ones in one script; what may not run yet becomes blocked."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from windlass.stores.redis.records import Shared, as_duration_ms, job_of, told

if TYPE_CHECKING:
    from windlass.core.job import Job
    from windlass.stores.contract import Want
    from windlass.stores.redis.connection import Link, Value


async def claim(link: Link, want: Want) -> list[Job]:
    """At most `want.n` jobs, first by priority, then time, then id."""
    # A claim whose answer was lost is asked again under the same mark, and gets what it took the first time.
    mark = secrets.token_hex(8)
    queues: list[Value] = [-1]
    if want.queues is not None:
        queues = [len(want.queues)]
        for name, most in want.queues.items():
            queues += [name, most]
    lease, actor = as_duration_ms(want.lease), told(want.worker_id)

    def values(again: bool) -> list[Value]:  # noqa: FBT001  # called by the link alone
        return [want.worker_id, want.n, lease, mark, int(again), actor, *queues, *want.types]

    answer = await link.ask("claim", values)
    kinds: dict[bytes, Shared] = {}
    return [
        job_of(id_.decode(), record, kinds, apart.decode())
        for id_, record, apart in zip(answer[::3], answer[1::3], answer[2::3], strict=True)
    ]
