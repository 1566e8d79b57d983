"""Durable steps of a job in a process of its own: it asks over its pipe, and the worker answers from the store.

Questions and answers are JSON, each with a number. See `core.remembers.Remembers` for what can be asked.
"""

from __future__ import annotations

import asyncio
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter

from windlass.client.enqueueing import Ids
from windlass.core import errors
from windlass.core.draft import Draft
from windlass.core.errors import StoreError, TransactionRefused, WindlassError
from windlass.core.job import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from windlass.core.remembers import Remembers

T = TypeVar("T")
_drafts: TypeAdapter[list[Draft]] = TypeAdapter(list[Draft])
_children: TypeAdapter[list[Job | None]] = TypeAdapter(list[Job | None])


class Asking:
    """The child's end. Any of the handler's threads may ask."""

    def __init__(self, say: Callable[[dict[str, Any]], None]) -> None:
        self._say = say
        self._numbers = count(1)
        self._asked: dict[int, SimpleQueue[dict[str, Any]]] = {}
        self._ids = Ids()
        self.stopping = False
        """whether the worker is shutting down, as its last answer said"""

    def hear(self, message: dict[str, Any]) -> None:
        """An answer came."""
        asked = self._asked.pop(message["answer"], None)
        if asked is not None:
            asked.put(message)

    async def keep(self, name: str, text: str) -> None:
        """Return when the value is durable."""
        await self._ask(keep=[name, text])

    async def insert(self, drafts: Sequence[Draft]) -> None:
        """Insert children."""
        await self._ask(insert=_drafts.dump_python(list(drafts), mode="json"))

    async def look(self, ids: Sequence[str]) -> list[Job | None]:
        """The children as they are now."""
        return _children.validate_python(await self._ask(look=list(ids)))

    async def keep_in(self, tx: object, name: str, text: str) -> None:
        """Refused: the store is the worker's, the transaction is here."""
        raise _no_transaction()

    def keep_in_now(self, tx: object, name: str, text: str) -> None:
        """The same."""
        raise _no_transaction()

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Call it in a thread, with this context."""
        return await asyncio.to_thread(function)

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Take it to its end on this thread, which waits for the answers."""
        if _in_a_loop():
            call.close()
            raise WindlassError("what ends in _now would block this event loop: await the form without it, as ctx.step")
        try:
            while True:  # once: without a loop, questions are not awaited
                call.send(None)
        except StopIteration as end:
            result: T = end.value
            return result

    def new_id(self) -> str:
        """An id that no job has."""
        return self._ids()

    async def _ask(self, **question: Any) -> Any:
        return await asyncio.to_thread(self._answered, question) if _in_a_loop() else self._answered(question)

    def _answered(self, question: dict[str, Any]) -> Any:
        number, reply = next(self._numbers), SimpleQueue[dict[str, Any]]()
        self._asked[number] = reply
        self._say({"ask": number, **question})
        message = reply.get()
        self.stopping = message["stopping"]
        if "error" in message:
            raise _raised(message["error"], message["text"])
        return message["value"]


async def answer(remembers: Remembers | None, message: dict[str, Any]) -> dict[str, Any]:
    """The worker's end: what a child is told."""
    told: dict[str, Any] = {"answer": message["ask"], "stopping": remembers is not None and remembers.stopping}
    if remembers is None:
        return told | {"error": "WindlassError", "text": "there is no worker here to remember what a job has done"}
    try:
        return told | {"value": await _carried_out(remembers, message)}
    except Exception as error:  # noqa: BLE001  # raised on in the child, whose handler asked
        return told | {"error": type(error).__name__, "text": str(error)}


async def _carried_out(remembers: Remembers, message: dict[str, Any]) -> Any:
    if "keep" in message:
        name, text = message["keep"]
        return await remembers.keep(name, text)
    if "insert" in message:
        return await remembers.insert(_drafts.validate_python(message["insert"]))
    return _children.dump_python(await remembers.look(message["look"]), mode="json")


def _raised(name: str, text: str) -> WindlassError:
    kind = getattr(errors, name, None)
    kind = kind if isinstance(kind, type) and issubclass(kind, WindlassError) else StoreError
    error = kind.__new__(kind, text)  # of its facts only the words travel
    error.args = (text,)
    return error


def _no_transaction() -> TransactionRefused:
    return TransactionRefused(
        "a handler with process=True has no store here to save in its transaction: save without tx, or let it run in a"
        " thread"
    )


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
