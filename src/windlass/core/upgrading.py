"""Upgrades: functions that make of an older payload one that the handler can read, when a waiting job is run."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from windlass.core import values
from windlass.core.errors import HandlerError, PayloadInvalid, PayloadUnfit, SecretUnreadable
from windlass.core.payload import Codec
from windlass.core.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windlass.core.sealing import Seals

_OLD = "old"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """One older form of a payload, and what makes the next one of it."""

    codec: Codec
    call: Callable[[Any], Any]
    named: str

    def of(self, payload_json: str) -> str | None:
        """The payload that it makes of this one, or None where this one is of another form."""
        try:
            old = self.codec.decode(payload_json)[_OLD]
        except SecretUnreadable:
            raise
        except PayloadInvalid:
            return None
        try:
            # Kept nowhere: what it makes is read at once.
            return self.codec.encode_result(_revealed(self.call(old)), plainly=True)
        except Exception as error:  # the user's own function may raise anything
            raise PayloadUnfit(f"{self.named} raised {values.reason(error)}") from error


def _revealed(value: Any) -> Any:
    """Arguments with their secrets as plain values; those inside models are revealed where they are written."""
    match value:
        case Secret():
            return cast("Secret[object]", value).reveal()
        case dict():
            return {name: _revealed(member) for name, member in cast("dict[str, Any]", value).items()}
        case list():
            return [_revealed(one) for one in cast("list[object]", value)]
        case _:
            return value


def make_upgrade(handler: str, from_: Any, function: Callable[[Any], Any], seals: Seals | None = None) -> Upgrade:
    """Declare a function as an upgrade from payloads of the type `from_`, whose secrets `seals` opens."""
    if inspect.iscoroutinefunction(function):
        raise HandlerError(f"the upgrade of {handler} is an async def: write a plain function, it only converts values")
    form = getattr(from_, "__name__", str(from_))
    parameter = inspect.Parameter(_OLD, inspect.Parameter.POSITIONAL_ONLY)
    codec = Codec(f"{handler} from {form}", {_OLD: parameter}, {_OLD: from_, "return": Any}, whole=True)
    codec.seal_with(seals, handler)
    return Upgrade(codec, function, f"the upgrade of {handler} from {form}")


def read(codec: Codec, upgrades: Sequence[Upgrade], payload_json: str) -> dict[str, Any]:
    """The typed arguments of a stored payload, upgraded as often as needed; PayloadUnfit where nothing fits it.

    An upgrade may make an older form that another one takes on. Each is used once at most.
    """
    try:
        return codec.decode(payload_json)
    except SecretUnreadable:
        raise
    except PayloadInvalid as error:
        misfit = error
    for upgrade in upgrades:
        newer = upgrade.of(payload_json)
        if newer is not None:
            return read(codec, [other for other in upgrades if other is not upgrade], newer)
    raise PayloadUnfit(str(misfit)) from None
