"""Operate: what operators ask of jobs, recorded in the job's own history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.stores.contract import Action, Answer, Operated, Order
from windlass.stores.redis.records import CODES, STATUSES, told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.redis.connection import Link, Value

_ACTIONS = {Action.CANCEL: "c", Action.RETRY: "r", Action.DELETE: "x", Action.SIGNAL: "g"}
_AT_ONCE = 200  # orders in one script: each may free a line of blocked jobs


async def operate(link: Link, orders: Sequence[Order]) -> list[Answer]:
    """One answer per order, in order."""
    answers: list[Answer] = []
    for first in range(0, len(orders), _AT_ONCE):
        values: list[Value] = []
        for order in orders[first : first + _AT_ONCE]:
            name, text = order.signal or ("", "")
            rest = told(order.actor, name or order.reason)
            user = "" if order.user is None else f"={order.user}"
            values += [order.id, _ACTIONS[order.action], rest, _only(order), user, name, text]
        answers += [_answer(found) for found in await link.once("operate", values)]
    return answers


def _only(order: Order) -> str:
    return "" if order.only is None else "".join(CODES[status] for status in sorted(order.only)) or "-"


def _answer(found: list[Any]) -> Answer:
    words = [word.decode() for word in found if word is not None]
    return Answer(
        Operated(words[0]),
        STATUSES[words[1]] if len(words) > 1 else None,
        words[2] if len(words) > 2 else None,
    )
