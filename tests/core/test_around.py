from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any

import pytest

from windlass import Cancel, HandlerError
from windlass.core.around import layer_of, layers_of

STEPS: list[str] = []


@pytest.fixture(autouse=True)
def _no_steps() -> None:
    STEPS.clear()


async def awaiting(value: str) -> AsyncGenerator[str, None]:
    STEPS.append(f"into {value}")
    try:
        yield value.upper()
    except ValueError as error:
        STEPS.append(f"saw {error}")
        raise
    finally:
        STEPS.append(f"out of {value}")


def plain(value: str) -> Generator[str, None, None]:
    STEPS.append(f"into plain {value}")
    yield value
    STEPS.append(f"out of plain {value}")


class Managed:
    def __init__(self, value: str) -> None:
        self.value = value

    def __enter__(self) -> str:
        STEPS.append(f"entered {self.value}")
        return self.value

    def __exit__(self, *error: object) -> None:
        STEPS.append(f"left {self.value}")


class ManagedLater:
    def __init__(self, value: str) -> None:
        self.value = value

    async def __aenter__(self) -> str:
        STEPS.append(f"entered later {self.value}")
        return self.value

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        STEPS.append(f"left later {self.value}")
        return True


FORMS: list[Callable[[str], Any]] = [awaiting, plain, Managed, ManagedLater]


async def through(given: list[Callable[[str], Any]], body: Callable[[], None]) -> list[Any]:
    async with AsyncExitStack() as stack:
        entered = [await stack.enter_async_context(layer.around("a")) for layer in layers_of(given)]
        body()
    return entered


async def test_layers_of_every_form_are_entered_in_order_and_left_in_reverse() -> None:
    assert await through(FORMS, lambda: STEPS.append("run")) == ["A", "a", "a", "a"]
    assert STEPS == [
        "into a",
        "into plain a",
        "entered a",
        "entered later a",
        "run",
        "left later a",
        "left a",
        "out of plain a",
        "out of a",
    ]


def test_without_a_loop_the_synchronous_ones_work_too() -> None:
    with ExitStack() as stack:
        for layer in layers_of([plain, Managed]):
            assert not layer.awaits
            stack.enter_context(layer.around("a"))
    assert STEPS == ["into plain a", "entered a", "left a", "out of plain a"]


async def test_functions_that_make_context_managers_are_layers_too() -> None:
    assert await through([asynccontextmanager(awaiting), contextmanager(plain)], lambda: None) == ["A", "a"]


def fails() -> None:
    raise ValueError("no good")


def swallows(value: str) -> Iterator[None]:
    try:
        yield
    except ValueError:
        STEPS.append(f"swallowed {value}")


async def swallows_later(value: str) -> AsyncIterator[None]:
    try:
        yield
    except ValueError:
        STEPS.append(f"swallowed later {value}")


@pytest.mark.parametrize("inner", [swallows, swallows_later, ManagedLater])
async def test_a_layer_sees_what_is_raised_inside_and_cannot_hide_it_from_those_outside(
    inner: Callable[[str], Any],
) -> None:
    with pytest.raises(ValueError, match="no good"):
        await through([awaiting, inner], fails)
    assert STEPS[-2:] == ["saw no good", "out of a"]


def test_without_a_loop_neither() -> None:
    with pytest.raises(ValueError, match="no good"), ExitStack() as stack:
        for layer in layers_of([plain, swallows]):
            stack.enter_context(layer.around("a"))
        fails()


def raises_before(value: str) -> Iterator[None]:
    if value:
        raise KeyError(value)
    yield


async def raises_before_later(value: str) -> AsyncIterator[None]:
    if value:
        raise KeyError(value)
    yield


def raises_after(value: str) -> Iterator[None]:
    try:
        yield
    finally:
        raise KeyError(value)


async def raises_after_later(value: str) -> AsyncIterator[None]:
    try:
        yield
    finally:
        raise KeyError(value)


@pytest.mark.parametrize(
    ("layer", "when"),
    [
        (raises_before, "before"),
        (raises_before_later, "before"),
        (raises_after, "after"),
        (raises_after_later, "after"),
    ],
)
@pytest.mark.parametrize("body", [fails, lambda: None])
async def test_what_a_layer_raises_says_where_it_came_from(
    layer: Callable[[str], Any], when: str, body: Callable[[], None]
) -> None:
    with pytest.raises(KeyError) as raised:
        await through([layer], body)
    assert raised.value.__notes__ == [f"raised by the layer {__name__}.{layer.__qualname__}, {when} what it surrounds"]


async def test_a_layer_may_raise_a_signal_in_place_of_an_error() -> None:
    def cancels(_: str) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise Cancel("enough") from error

    with pytest.raises(Cancel) as raised:
        await through([cancels], fails)
    assert isinstance(raised.value.__cause__, ValueError)


def never(value: str) -> Iterator[None]:
    if value == "":
        yield


def twice(_: str) -> Iterator[None]:
    yield
    yield


async def twice_later(_: str) -> AsyncIterator[None]:
    yield
    yield


@pytest.mark.parametrize(
    ("layer", "why"), [(never, "ended without a yield"), (twice, "a second time"), (twice_later, "a second time")]
)
async def test_a_layer_that_does_not_yield_once_is_told_so(layer: Callable[[str], Any], why: str) -> None:
    with pytest.raises(HandlerError, match=why) as raised:
        await through([layer], lambda: None)
    assert layer.__qualname__ in str(raised.value)


async def forgot_to_yield(_: str) -> None: ...


def returns(value: str) -> str:
    return value


@pytest.mark.parametrize("given", [forgot_to_yield, returns, 3, int])
def test_what_cannot_be_a_layer_is_refused_when_it_is_registered(given: Any) -> None:
    with pytest.raises(HandlerError, match="expected a function that yields once"):
        layer_of(given)


class RaisesOn:
    """Raises again what it was given, which most context managers leave to the statement."""

    def __init__(self, value: str) -> None:
        self.value = value

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            raise error


class RaisesOnLater:
    def __init__(self, value: str) -> None:
        self.value = value

    async def __aenter__(self) -> None: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            raise error


@pytest.mark.parametrize("layer", [RaisesOn, RaisesOnLater])
async def test_a_layer_that_raises_the_same_again_is_not_blamed_for_it(layer: Callable[[str], Any]) -> None:
    with pytest.raises(ValueError, match="no good") as raised:
        await through([layer], fails)
    assert not hasattr(raised.value, "__notes__")
