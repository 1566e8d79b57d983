"""Insert: drafts become records, all in one script."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from windlass.core.blocked import BlockedBy, Kind
from windlass.core.draft import Draft
from windlass.core.errors import StoreError, ValueRefused
from windlass.core.fields import Origin
from windlass.stores.columns import of_draft
from windlass.stores.contract import Created, Duplicate, Full, Inserted, Replaced
from windlass.stores.redis.records import (
    FIELDS,
    KEPT,
    LONG,
    NUL,
    PART,
    PARTS,
    REST,
    STAMP,
    as_duration_ms,
    as_ms,
    asked_of,
    packed,
    told,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import timedelta

    from windlass.core.draft import Options
    from windlass.stores.redis.connection import Link, Value

_MOST = 10_000  # drafts in one script: others wait for as long as it runs, which is most of a second then


class Groups:
    """What drafts asked for alike share, told once."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._known: dict[tuple[int, str], int] = {}
        self._bodies: dict[int, list[str]] = {}
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

    def body(self, options: Options) -> list[str]:
        """The fields of a record, as far as they follow from the options."""
        if id(options) not in self._bodies:
            self._kept.append(options)
            self._bodies[id(options)] = _from_options(options)
        return self._bodies[id(options)]


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


_besides = itemgetter(
    *(at for at, name in enumerate(Draft._fields) if name not in ("id", "payload_json", "options"))
)  # what a draft has beside these


def _alike(drafts: Sequence[Draft]) -> list[Value]:
    """Drafts by what they share: of each only its id and payload are told."""
    groups: dict[object, list[Value]] = {}
    for draft in drafts:
        apart = len(draft.payload_json) > LONG
        key = (id(draft.options), apart, *_besides(draft))
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


_COUNT = 14  # where a group of `_alike` has its number of drafts


def _shared(draft: Draft, *, apart: bool) -> list[Value]:
    body = _body(draft, Groups(), "" if apart else "-")
    before, after = packed([*body[:_PAYLOAD], ""]), packed(["", *body[_PAYLOAD + 1 :]])
    return [*_group(draft.type, draft.options), before, after, int(apart), 0]


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
        packed(_body(draft, groups, "" if apart else draft.payload_json)),
        apart,
        int(_listed(options) or draft.next_id is not None),
        draft.unique_queued or "",
        draft.idempotency_key or "",
    ]


# A new record but for its instants and its history, which scripts write.
_BODY = FIELDS[FIELDS.index("wait") : FIELDS.index("history")]
_NEW = {**dict.fromkeys(_BODY, ""), "attempts": "0", "crashes": "0", "token": "0", "moves": "1"}
_SIZE, _SHARED_END, _PAYLOAD, _APART, _BLOCKED_BY, _KEY, _MORE, _CONTROL = (
    _BODY.index(name) for name in ("size", REST[0], "payload", "apart", "blocked_by", "key", "more", "control")
)
_PLACES = {**{name: at for at, name in enumerate(_BODY)}, **{name: None for part in PARTS.values() for name in part}}
_OWN, _ASKED = ([_PLACES.get(name) for name in KEPT.of(origin)] for origin in (Origin.DRAFT, Origin.OPTIONS))
_MORE_OF = itemgetter(*(Draft._fields.index(name) for name in PARTS["more"] if name in Draft._fields))
_FROM_OPTIONS = [*KEPT.of(Origin.OPTIONS)]
_CONTROL_OF = itemgetter(*(_FROM_OPTIONS.index(name) for name in PARTS["control"] if name in _FROM_OPTIONS))


def _from_options(options: Options) -> list[str]:
    body, asked = list(_NEW.values()), asked_of(options)
    for at, text in zip(_ASKED, asked, strict=True):
        if text is not None and at is not None:
            body[at] = text
    body[_CONTROL] = _joined(_CONTROL_OF(asked))
    return body


def _joined(parts: Iterable[str | None]) -> str:
    return PART.join([part or "" for part in parts]) if any(parts) else ""


def _body(draft: Draft, groups: Groups, payload: str) -> list[str]:
    body = groups.body(draft.options).copy()
    for at, value in zip(_OWN, of_draft(draft), strict=True):
        if value is not None and at is not None:
            body[at] = str(value)
    body[_KEY] = draft.unique_queued or ""
    options = draft.options
    body[_MORE] = _joined((*_MORE_OF(draft), None if options.expires is None else STAMP, options.origin))
    body[_PAYLOAD], body[_APART] = payload, "" if payload else "1"
    if options.awaits is not None:
        body[_BLOCKED_BY] = BlockedBy(Kind.FLOW, draft.id).text
    body[_SIZE] = str(len(NUL.join(body[_SIZE + 1 : _SHARED_END]).encode()))
    return body


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
        _ms(options.expires),
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
