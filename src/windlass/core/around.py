"""Layers around a run or an enqueue: what a user registers, in one form, entered and left in order.

A layer is a generator function that yields once, asynchronous or not, or a class of context managers. It may change
what comes of its job by raising; it cannot hide what was raised inside it.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from windlass.core.errors import HandlerError
from windlass.core.keys import shown

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

V = TypeVar("V")
Surrounds: TypeAlias = Callable[
    [V], AsyncIterator[Any] | Iterator[Any] | AbstractAsyncContextManager[Any] | AbstractContextManager[Any]
]
"""what can be a layer: called with what it surrounds"""
_NOT_ONCE = {"generator didn't yield": "ended without a yield", "generator didn't stop": "yielded a second time"}


@dataclass(frozen=True, slots=True)
class Layer(Generic[V]):
    """One layer, whatever form it was given in."""

    source: str
    awaits: bool
    """whether it is asynchronous: such a one needs a loop"""
    open: Callable[[V], Any]

    def around(self, value: V) -> Around[V]:
        """The layer around one run or enqueue, to be entered with `async with`, or with `with` if it does not await."""
        return Around(self, value)


class Around(Generic[V]):
    """One layer around one value. It never hides an error: what it swallows is raised on."""

    __slots__ = ("_layer", "_manager", "_value")

    def __init__(self, layer: Layer[V], value: V) -> None:
        self._layer, self._value = layer, value
        self._manager: Any = None

    async def __aenter__(self) -> Any:
        if not self._layer.awaits:
            return self.__enter__()
        try:
            self._manager = self._layer.open(self._value)
            return await self._manager.__aenter__()
        except BaseException as error:  # noqa: BLE001  # raised on, with a word on where it came from
            raise self._blamed(error, "before") from error.__cause__

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._layer.awaits:
            self.__exit__(kind, error, trace)
            return
        try:
            await self._manager.__aexit__(kind, error, trace)
        except BaseException as raised:  # noqa: BLE001  # the same
            if raised is error:
                return
            raise self._blamed(raised, "after") from raised.__cause__

    def __enter__(self) -> Any:
        try:
            self._manager = self._layer.open(self._value)
            return self._manager.__enter__()
        except BaseException as error:  # noqa: BLE001  # raised on, with a word on where it came from
            raise self._blamed(error, "before") from error.__cause__

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._manager.__exit__(kind, error, trace)
        except BaseException as raised:  # noqa: BLE001  # the same
            if raised is error:
                return
            raise self._blamed(raised, "after") from raised.__cause__

    def _blamed(self, error: BaseException, when: str) -> BaseException:
        """The error with a word on where it came from; in plainer words where the layer does not yield once."""
        misuse = _NOT_ONCE.get(str(error)) if type(error) is RuntimeError else None
        if misuse is not None:
            return HandlerError(f"{self._layer.source} {misuse}: a layer around a job yields once")
        error.add_note(f"raised by the layer {self._layer.source}, {when} what it surrounds")
        return error


def layer_of(given: Surrounds[V]) -> Layer[V]:
    """The layer in the one form; HandlerError for what cannot be one."""
    source = f"{getattr(given, '__module__', '?')}.{getattr(given, '__qualname__', shown(given))}"
    if inspect.isasyncgenfunction(given):
        return Layer(source, awaits=True, open=asynccontextmanager(given))
    if inspect.isgeneratorfunction(given):
        return Layer(source, awaits=False, open=contextmanager(given))
    awaits = _makes_managers(given)
    if awaits is None:
        raise HandlerError(
            f"{source} cannot be a layer around jobs: expected a function that yields once, async or not, or a class of"
            " context managers"
        )
    return Layer(source, awaits=awaits, open=cast("Callable[[V], Any]", given))


def layers_of(given: Iterable[Surrounds[V]]) -> tuple[Layer[V], ...]:
    """Several, in order: the first is the outermost."""
    return tuple(layer_of(layer) for layer in given)


def _makes_managers(given: object) -> bool | None:
    """Whether what it makes is asynchronous; None where that cannot be told, or is no context manager."""
    made = inspect.unwrap(given) if callable(given) else None  # @contextmanager and its like name what they wrap
    if made is not given and inspect.isasyncgenfunction(made):
        return True
    if made is not given and inspect.isgeneratorfunction(made):
        return False
    if not isinstance(given, type):
        return None
    if hasattr(given, "__aenter__") and hasattr(given, "__aexit__"):
        return True
    return False if hasattr(given, "__enter__") and hasattr(given, "__exit__") else None
