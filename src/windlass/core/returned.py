"""From a function to the codec of what it returns, by its return annotation: what a step is kept as."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from windlass.core.errors import HandlerError
from windlass.core.keys import shown
from windlass.core.payload import ResultCodec


def codec_of(function: Callable[..., Any]) -> ResultCodec:
    """The codec of what a function returns, by its annotation; of one that has none, plain JSON."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)  # of a bound method, which is another one at every call
    try:
        codec = _codecs.get(function)
        if codec is None:
            codec = _codecs[function] = _made(function)
    except TypeError:  # an object that can be called, and not looked up by
        return _made(function)
    return codec


def _made(function: Callable[..., Any]) -> ResultCodec:
    if isinstance(function, type):
        hint = function  # called, it makes one of itself
    else:
        hint = _returned(function if inspect.isroutine(function) else type(function).__call__)
    try:
        return _codec(hint)
    except TypeError:  # of a type that cannot be looked up by: its annotations hold a list, for one
        return ResultCodec("the step", hint)


def _returned(function: Callable[..., Any]) -> Any:
    # Of the return alone: what the parameters name may well be there for type checkers only.
    def only() -> None: ...

    only.__annotations__ = {"return": getattr(function, "__annotations__", {}).get("return", Any)}
    names = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        hint = get_type_hints(only, globalns=names, include_extras=True)["return"]
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise HandlerError(
            f"the return annotation of {shown(function)} cannot be read: {error}; import the name at run time, not"
            " under TYPE_CHECKING"
        ) from None
    return get_args(hint)[-1] if get_origin(hint) in (Awaitable, Coroutine) else hint


@functools.lru_cache(maxsize=1024)
def _codec(hint: Any) -> ResultCodec:
    return ResultCodec("the step", hint)


PLAIN = ResultCodec("the step", Any)
_codecs: WeakKeyDictionary[Callable[..., Any], ResultCodec] = WeakKeyDictionary()
