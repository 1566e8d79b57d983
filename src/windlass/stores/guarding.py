"""No driver error leaves a store: what a room's methods raise is put in windlass's words."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.core.errors import WindlassError

F = TypeVar("F", bound="Callable[..., Any]")


def guarding(
    faults: tuple[type[Exception], ...], translate: Callable[[Exception, Any], WindlassError]
) -> Callable[[F], F]:
    """The decorator of a store's rooms: of `faults` nothing comes out but what `translate` makes of them.

    `translate` is given the error and the place of the room's link.
    """

    def guarded(method: F) -> F:
        @wraps(method)
        async def guard(room: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return await method(room, *args, **kwargs)
            except faults as error:
                raise translate(error, room.link.place) from error

        return cast("F", guard)  # it has the method's own parameters and result

    return guarded
