"""Insert: drafts become records, all in one script."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from windlass.core.blocked import BlockedBy, Kind
from windlass.core.errors import StoreError, ValueRefused
from windlass.stores.contract import Created, Duplicate, Full, Inserted, Replaced
from windlass.stores.redis.records import FIELDS, LONG, NUL, PART, as_duration_ms, as_ms, packed, told

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.core.draft import Draft, Options
    from windlass.stores.redis.connection import Link, Value

_MOST = 10_000  # drafts in one script: others wait for as long as it runs, which is most of a second then


class Groups:
    """What drafts asked for alike share, told once."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._known: dict[tuple[int, str], int] = {}
        self._ends: dict[int, tuple[list[str], list[str]]] = {}
        self._kept: list[Options] = []  # so that no two live under one id()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, draft: Draft) -> int:
        """The number of a draft's group, from 1."""
        options = draft.options
        key = (id(options), draft.type)
        if key not in self._known:
            self._known[key] = len(self._known) + 1
            self._kept.append(options)
            self.values += _group(draft.type, options)
        return self._known[key]

    def ends(self, options: Options) -> tuple[list[str], list[str]]:
        """The parts of a record that come from the options alone."""
        if id(options) not in self._ends:
            self._kept.append(options)
            self._ends[id(options)] = _lineage(options), _tail(options)
        return self._ends[id(options)]


async def insert(link: Link, drafts: Sequence[Draft]) -> list[Inserted]:
    """One verdict per draft, in order."""
    if len(drafts) > _MOST:
        raise StoreError(f"{len(drafts)} drafts are too many for one step on Redis: insert at most {_MOST} at once")
    if _meets_nobody(drafts) and await link.run("enqueue", _alike(drafts)):
        return [Created(draft.id) for draft in drafts]
    return await _insert(link, drafts)


def _meets_nobody(drafts: Sequence[Draft]) -> bool:
    """Whether these have no key to be met by and are in no lists but those of their status."""
    for draft in drafts:
        if draft.unique_queued or draft.idempotency_key or draft.fair_key or draft.next_id:
            return False
    options = {id(draft.options): draft.options for draft in drafts}
    alone = not any(_listed(one) or one.awaits for one in options.values())
    return alone and len({draft.id for draft in drafts}) == len(drafts)


def _alike(drafts: Sequence[Draft]) -> list[Value]:
    """Drafts by what they share: of each only its id and payload are told."""
    groups: dict[object, list[Value]] = {}
    for draft in drafts:
        apart = len(draft.payload_json) > LONG
        key = (id(draft.options), draft.type, apart, draft.unique_running, draft.limit_key, draft.limit, draft.rate_key)
        group = groups.get(key)
        if group is None:
            group = groups[key] = _shared(draft, apart=apart)
        if NUL in draft.payload_json:
            raise ValueRefused("Redis cannot keep a payload with a NUL character")
        group += (draft.id, draft.payload_json)
    values: list[Value] = []
    for group in groups.values():
        group[_COUNT] = (len(group) - _COUNT - 1) // 2
        values += group
    return values


_COUNT = 13  # where a group of `_alike` has its number of drafts
_PAYLOAD_AT = FIELDS.index("payload") - FIELDS.index("wait")  # scripts write what comes before the wait


def _shared(draft: Draft, *, apart: bool) -> list[Value]:
    fields = _body(draft, Groups(), "" if apart else "-").split(b"\0")
    before, after = fields[:_PAYLOAD_AT], fields[_PAYLOAD_AT + 1 :]
    ends = b"\0".join([*before, b""]), b"\0".join([b"", *after])
    return [*_group(draft.type, draft.options), *ends, int(apart), 0]


async def _insert(link: Link, drafts: Sequence[Draft]) -> list[Inserted]:
    groups = Groups()
    values: list[Value] = []
    for draft in drafts:
        values += draft_values(draft, groups)
    return [_verdict(answer) for answer in await link.run("insert", [len(groups), *groups.values, *values])]


def draft_values(draft: Draft, groups: Groups) -> list[Value]:
    """A draft as scripts read it; inserting.lua says what each value is."""
    options = draft.options
    apart = draft.payload_json if len(draft.payload_json) > LONG else ""
    return [
        groups.of(draft),
        draft.id,
        _body(draft, groups, "" if apart else draft.payload_json),
        apart,
        int(_listed(options) or draft.next_id is not None),
        draft.unique_queued or "",
        draft.idempotency_key or "",
    ]


def _body(draft: Draft, groups: Groups, payload: str) -> bytes:
    options = draft.options
    lineage, tail = groups.ends(options)
    key = draft.unique_queued or ""
    limit = "" if draft.limit is None else str(draft.limit)
    shared = [
        options.queue,
        draft.type,
        str(options.priority),
        *_UNTOUCHED,
        limit,
        "" if options.awaits is None else BlockedBy(Kind.FLOW, draft.id).text,
        options.schedule or "",
        *_NOTHING_YET,
        str(options.max_attempts),
        str(options.max_crashes),
        _ms(options.timeout),
        _control(options),
        "" if payload else "1",
    ]
    piece, keys = packed(shared), packed([key, key, draft.unique_running or "", draft.limit_key or "", _more(draft)])
    rest = packed([*lineage, draft.idempotency_key or "", payload, *tail])
    return b"\0".join((b"", b"", keys, str(len(piece)).encode(), piece, rest))  # neither wait nor result yet


def _more(draft: Draft) -> str:
    more = (draft.rate_key or "", draft.fair_key or "", draft.next_id or "")
    return PART.join(more) if any(more) else ""


def _control(options: Options) -> str:
    rate = options.rate
    control = (str(rate.n) if rate else "", str(rate.per_ms) if rate else "", options.awaits or "", options.takes or "")
    return PART.join(control) if any(control) else ""


_UNTOUCHED = ("0", "0", "0", "", "", "", "", "", "")
"""attempts, crashes, token, worker, expires_at, started_at, cancel_at, finished_at, duration"""
_NOTHING_YET = ("", "", "1")
"""progress, error, moves"""


def _lineage(options: Options) -> list[str]:
    return [
        "" if options.tick is None else str(as_ms(options.tick)),
        options.parent_id or "",
        options.user_id or "",
        options.entity_name or "",
        options.entity_id or "",
        options.correlation_id or "",
    ]


def _tail(options: Options) -> list[str]:
    return [
        options.replay_of or "",
        json.dumps(options.tags) if options.tags else "",
        options.metadata_json or "",
        options.trace or "",
    ]


def _group(type_: str, options: Options) -> list[Value]:
    return [
        options.queue,
        type_,
        options.priority,
        _ms(options.delay),
        "" if options.run_at is None else str(as_ms(options.run_at)),
        told(note=f"replay of {options.replay_of}" if options.replay_of else None),
        int(options.on_conflict == "replace"),
        _ms(options.longest_wait),
        _ms(options.idempotency_window),
        int(options.awaits is not None),
    ]


def _ms(value: timedelta | None) -> str:
    return "" if value is None else str(as_duration_ms(value))


def _listed(options: Options) -> bool:
    return bool(
        options.user_id
        or options.entity_name
        or options.entity_id
        or options.correlation_id
        or options.schedule
        or options.parent_id
    )


def _verdict(answer: list[Any]) -> Inserted:
    kind, about = answer[0].decode(), answer[1].decode()
    if kind == "created":
        return Created(about)
    if kind == "replaced":
        return Replaced(about)
    if kind == "full":
        return Full(about, answer[2])
    return Duplicate(about, answer[2].decode())
