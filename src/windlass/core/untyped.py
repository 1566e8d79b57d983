"""Places that a hint says nothing about: they are looked through, for nothing may be there that JSON cannot hold."""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, TypeAlias, Union, cast, get_args, get_origin

from windlass.core import values
from windlass.core.secret import Secret

Check: TypeAlias = Callable[[object, str, values.Path], None]
SCALARS = (int, str, bool, float, type(None))
UNTYPED = (Any, object, dict, list, tuple)


def check_of(hint: Any) -> Check | None:
    """How to look through the places under a hint that it says nothing about, if it has any."""
    if is_one_of(hint, UNTYPED):
        return values.look
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Secret:
        return None
    if origin is Annotated:
        return check_of(arguments[0])
    if origin in (Union, UnionType):
        arms = [arm for arm in arguments if not is_one_of(arm, SCALARS)]
        found = {check_of(arm) for arm in arms}
        return found.pop() if len(arms) == 1 or found == {values.look} else None
    if not arguments or (origin is tuple and arguments[-1] is not Ellipsis):
        return None
    if origin is dict and all(is_one_of(part, UNTYPED) for part in arguments):
        return values.look
    inner = check_of(arguments[0] if origin is tuple else arguments[-1])
    return None if inner is None else _each(inner)


def _each(inner: Check) -> Check:
    def check(value: object, of: str, path: values.Path) -> None:
        if isinstance(value, dict):
            for name, member in cast("dict[object, object]", value).items():
                inner(member, of, (*path, name))
        elif isinstance(value, (list, tuple, set, frozenset)):
            for index, member in enumerate(cast("list[object]", value)):
                inner(member, of, (*path, index))

    return check


def is_one_of(hint: Any, kinds: tuple[object, ...]) -> bool:
    """Whether a hint is one of these, by identity: it may be anything, and compare as it likes."""
    return any(hint is kind for kind in kinds)
