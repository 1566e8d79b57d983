"""Operating: the one way from an order to the store, so that every order that was carried out is announced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from windlass.core.events import JobOperated, JobOperatedInTransaction, JobSignalled
from windlass.stores.contract import Action, Operated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windlass.client.client import Client
    from windlass.core.events import Event
    from windlass.stores.contract import Answer, Order

    Tell: TypeAlias = Callable[[Order, Answer], Event]


_CARRIED_OUT: dict[Action, Literal["cancel", "retry", "delete"]] = {
    Action.CANCEL: "cancel",
    Action.RETRY: "retry",
    Action.DELETE: "delete",
}


async def operate(
    client: Client, orders: Sequence[Order], tell: Tell | None = None, tx: object | None = None
) -> list[Answer]:
    """Carry out the orders, one answer each, and tell of those that changed something.

    Inside the caller's transaction that is told as what it is: whether it comes true is not known here.
    """
    joined = client.transaction(tx)
    if joined is not None:
        return announced(client, orders, await client.store.jobs.operate(orders, joined), _joined)
    store = await client.ready()
    return announced(client, orders, await store.jobs.operate(orders), tell or _operated)


def operate_now(client: Client, orders: Sequence[Order], tx: object) -> list[Answer]:
    """The same inside a synchronous driver's transaction, on the calling thread."""
    return announced(client, orders, client.store.jobs.operate_now(orders, tx), _joined)


def announced(client: Client, orders: Sequence[Order], answers: list[Answer], tell: Tell) -> list[Answer]:
    """The answers, once it is told which orders changed something."""
    for order, answer in zip(orders, answers, strict=True):
        if answer.verdict in (Operated.DONE, Operated.REQUESTED, Operated.KEPT):
            client.hub.tell(tell(order, answer))
    return answers


def _operated(order: Order, answer: Answer) -> Event:
    if order.signal is not None:
        return JobSignalled(order.id, order.signal.name, order.actor, answer.verdict is Operated.DONE)
    requested = answer.verdict is Operated.REQUESTED
    return JobOperated(order.id, _CARRIED_OUT[order.action], order.actor, order.reason, requested)


def _joined(order: Order, answer: Answer) -> Event:
    requested = answer.verdict is Operated.REQUESTED
    reason = order.reason if order.signal is None else order.signal.name
    return JobOperatedInTransaction(order.id, order.action.value, order.actor, reason, requested)
