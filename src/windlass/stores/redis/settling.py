"""Settle: leases are extended, progress written and transitions applied, all fenced by the lease token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.stores.contract import Extended, Lease, Report, Verdict
from windlass.stores.redis.records import CODES, EVENTS, as_duration_ms, error_json, packed, progress_json, told

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.core.transition import Transition
    from windlass.stores.redis.connection import Link, Value

_AT_ONCE = 1000  # jobs in one script: others wait for as long as it runs
_VERDICTS = {b"a": Verdict.APPLIED, b"s": Verdict.STALE, b"m": Verdict.MISSING}


async def extend(link: Link, worker_id: str, leases: Sequence[Lease], lease: timedelta) -> Extended:
    """Renew what is still the worker's and say what is not."""
    lost: set[str] = set()
    cancels: set[str] = set()
    for first in range(0, len(leases), _AT_ONCE):
        part = leases[first : first + _AT_ONCE]
        values: list[Value] = [worker_id, as_duration_ms(lease)]
        for one in part:
            values += [one.id, one.token]
        for one, found in zip(part, await link.run("extend", values), strict=True):
            if found == b"l":
                lost.add(one.id)
            elif found == b"c":
                cancels.add(one.id)
    return Extended(lost=frozenset(lost), cancels=frozenset(cancels))


async def cancels(link: Link, worker_id: str) -> frozenset[str]:
    """What this worker should stop."""
    return frozenset(id_.decode() for id_ in await link.run("cancels", [worker_id]))


async def report(link: Link, reports: Sequence[Report]) -> list[Verdict]:
    """Write progress, one verdict each."""
    values: list[Value] = []
    for one in reports:
        values += [one.lease.id, one.lease.token, packed([progress_json(one.progress)])]
    return [_VERDICTS[verdict] for verdict in await link.run("report", values)]


async def apply(link: Link, transitions: Sequence[Transition]) -> list[Verdict]:
    """Write every transition whose token still is its job's; one verdict each, in order."""
    verdicts: list[Verdict] = []
    for first in range(0, len(transitions), _AT_ONCE):
        values: list[Value] = []
        for one in transitions[first : first + _AT_ONCE]:
            values += transition_values(one)
        verdicts += [_VERDICTS[verdict] for verdict in await link.run("apply", values)]
    return verdicts


def transition_values(one: Transition) -> tuple[Value, ...]:
    """A transition as scripts read it; settling.lua says what each value is."""
    return (
        one.id,
        one.token,
        CODES[one.to],
        EVENTS[one.happened],
        "" if one.delay is None else as_duration_ms(one.delay),
        int(one.give_back),
        int(one.crashed),
        "" if one.result_json is None else packed([one.result_json]),
        error_json(one.error),
        told(note=one.note),
    )
