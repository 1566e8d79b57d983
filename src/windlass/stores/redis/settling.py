"""Settle: leases are extended, progress written and transitions applied, all fenced by the lease token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.blocked import Kind
from windlass.core.transition import go_on, refuse
from windlass.stores.contract import Extended, Lease, Report, Verdict
from windlass.stores.redis.records import CODES, EVENTS, as_duration_ms, packed, told

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.core.transition import Transition
    from windlass.stores.redis.connection import Link, Value

_AT_ONCE = 1000  # jobs in one script: others wait for as long as it runs
VERDICTS = {"a": Verdict.APPLIED, "c": Verdict.CANCELLED, "s": Verdict.STALE, "m": Verdict.MISSING}


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
        values += [one.lease.id, one.lease.token, packed([one.progress.text()])]
    return [VERDICTS[verdict.decode()] for verdict in await link.run("report", values)]


async def apply(link: Link, transitions: Sequence[Transition]) -> list[Verdict]:
    """Write every transition whose token still is its job's; one verdict each, in order."""
    verdicts: list[Verdict] = []
    for first in range(0, len(transitions), _AT_ONCE):
        part = transitions[first : first + _AT_ONCE]
        letters = await settle(link, "apply", part)
        verdicts += [VERDICTS[letter] for letter in letters]
        if "s" in letters:
            await _refuse(link, [late for late, letter in zip(part, letters, strict=True) if letter == "s"])
    return verdicts


_REFUSALS = 5  # how often a job may have moved on between the look at it and the line


async def _refuse(link: Link, late: Sequence[Transition]) -> None:
    """Leave a line in the history of each job whose transition came too late."""
    for _ in range(_REFUSALS):
        facts = await link.run("charged", [transition.id for transition in late])
        values: list[Value] = []
        for transition, token, charged in zip(late, facts[::2], facts[1::2], strict=True):
            note, acquits = refuse(transition, int(token or 0), int(charged) if charged else None)
            values += [transition.id, transition.token, token, told(note=note), int(acquits)]
        written = await link.run("refuse", values)
        late = [transition for transition, line in zip(late, written, strict=True) if not line]
        if not late:
            return


async def settle(link: Link, script: str, transitions: Sequence[Transition]) -> list[str]:
    """Have a script write transitions, those that end alike together; returns one letter for each, in order."""
    alike: dict[object, tuple[list[int], list[str]]] = {}
    for at, one in enumerate(transitions):
        id_, token, to, happened, delay, give_back, crashed, result, error, note, blocked_by = one
        group = alike.get(common := (token, to, happened, delay, give_back, crashed, error, note, blocked_by))
        if group is None:
            group = alike[common] = ([], [])
        group[0].append(at)
        group[1].extend((id_, result or ""))
    values: list[Value] = []
    for places, each in alike.values():
        values += [packed(_common(transitions[places[0]])), packed([*each, ""])]
    answer = (await link.run(script, values)).decode()
    letters = [""] * len(transitions)
    in_order = (at for places, _ in alike.values() for at in places)
    for at, letter in zip(in_order, answer, strict=True):
        letters[at] = letter
    return letters


def _common(one: Transition) -> tuple[str, ...]:
    return (
        str(one.token),
        CODES[one.to],
        EVENTS[one.happened],
        "" if one.delay is None else str(as_duration_ms(one.delay)),
        "1" if one.give_back else "0",
        "1" if one.crashed else "0",
        one.error.text() if one.error else "",
        told(note=one.note),
        one.blocked_by or "",
        told(note=go_on(one).note) if Kind.SIGNAL.blocks(one.blocked_by) else "",
    )
