"""Plain JSON values: written as canonical text, read strictly, and refused with the place of what cannot be kept.

Canonical means: members sorted by name, no spaces, finite numbers, whole numbers of 64 bits, text without NUL or lone
surrogates, names that are text, at most 64 levels deep and 256 KiB long. What breaks one of these is refused here and
not in a store, so that every store keeps exactly the same values.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

from windlass.core.errors import PayloadInvalid
from windlass.core.keys import shown

MAX_BYTES = 256 * 1024
MAX_DEPTH = 64
_INT64 = 2**63
_LONGEST_PLACE = 80
LONGEST_REASON = 150
_LONG_DIGITS = re.compile(r"\d{19}")
TEXT_AND_WHOLE = frozenset({int, str, bool, type(None)})
encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode

Path: TypeAlias = tuple[object, ...]


def canonical(value: object, of: str = "the value", max_bytes: int = MAX_BYTES) -> str:
    """Write plain JSON values as canonical text, or say which part cannot be stored and why."""
    text = written(value, of, max_bytes)
    look(value, of, ())
    return text


def plain(text: str, of: str = "the payload") -> Any:
    """Read JSON text from outside strictly; what it holds still has to pass `canonical`."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise PayloadInvalid(f"{of} is not JSON: {reason(error)}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def written(value: object, of: str, max_bytes: int = MAX_BYTES) -> str:
    """The canonical text of values that JSON can hold; what it would change on the way is for `look` to find."""
    try:
        text = encode(value)
        size = len(text) if text.isascii() else len(text.encode())
    except Exception as error:  # noqa: BLE001  # a container of the caller's own making may raise anything
        inspect(value, of, ())
        raise PayloadInvalid(f"{of} cannot be stored as JSON: {reason(error)}") from None
    if size > max_bytes:
        raise PayloadInvalid(
            f"{of} is {size:,} bytes of JSON, at most {max_bytes:,} are allowed:"
            " store large data elsewhere and pass a reference to it"
        )
    # Cheap signs in the text of what only a walk over the value can tell for sure; a plain payload shows none.
    if "\\u0000" in text or _LONG_DIGITS.search(text) is not None or text.count("{") + text.count("[") > MAX_DEPTH:
        inspect(value, of, ())
    return text


def look(value: object, of: str, path: Path) -> None:
    """Refuse what JSON would keep as something else: names that are not text, and values of types that are not its own.

    What JSON would not keep at all is left to `written`, as the first glance is all that most values get.
    """
    if not is_clear(value, len(path)):
        inspect(value, of, path)


def is_clear(value: object, depth: int) -> bool:
    """Whether a first glance finds nothing but plain JSON values."""
    kind = type(value)
    if kind in TEXT_AND_WHOLE:
        return True
    if depth >= MAX_DEPTH:
        return False
    if kind is dict:
        for name, member in cast("dict[object, object]", value).items():
            if type(name) is not str or not is_clear(member, depth + 1):
                return False
        return True
    if kind is list or kind is tuple:
        for member in cast("list[object]", value):  # noqa: SIM110  # half the time of all()
            if not is_clear(member, depth + 1):
                return False
        return True
    return kind is float and math.isfinite(cast("float", value))


def inspect(value: object, of: str, path: Path, *, lenient: bool = False) -> None:
    """Refuse what is not a plain JSON value; with `lenient` only what pydantic would write as something else."""
    match value:
        case None | bool():
            return
        case int():
            if not -_INT64 <= value < _INT64:
                raise PayloadInvalid(f"{place(of, path)} is a whole number beyond 64 bits: pass it as text")
        case float():
            if not math.isfinite(value):
                raise not_finite(value, of, path)
        case str():
            _inspect_text(value, of, path)
        case dict() | list() | tuple():
            _inspect_members(cast("dict[object, object] | list[object]", value), of, path, lenient=lenient)
        case _:
            kind = type(value)
            if not lenient or issubclass(kind, Iterator):
                raise PayloadInvalid(
                    f"{place(of, path)} is of type {kind.__name__}, which plain JSON cannot hold:"
                    " give it a type by annotation, or pass text, numbers, lists and dicts"
                )


def _inspect_members(value: dict[object, object] | list[object], of: str, path: Path, *, lenient: bool) -> None:
    # The levels are counted by the path, which also ends the walk through a value that contains itself.
    if len(path) >= MAX_DEPTH:
        raise PayloadInvalid(f"{place(of, path[:1])} is nested more than {MAX_DEPTH} levels deep, or contains itself")
    if isinstance(value, dict):
        for name, member in value.items():
            if not isinstance(name, str):
                raise PayloadInvalid(
                    f"{place(of, path)} has the name {shown(name)} of type {type(name).__name__}: JSON names are text"
                )
            _inspect_text(name, of, path, "a name in ")
            inspect(member, of, (*path, name), lenient=lenient)
    else:
        for index, member in enumerate(value):
            inspect(member, of, (*path, index), lenient=lenient)


def _inspect_text(text: str, of: str, path: Path, what: str = "") -> None:
    if "\x00" in text:
        raise PayloadInvalid(
            f"{what}{place(of, path)} contains a NUL character, which not every store keeps: remove it"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PayloadInvalid(
            f"{what}{place(of, path)} contains a lone surrogate, which is not text: remove it"
        ) from None


def not_finite(value: float, of: str, path: Path) -> PayloadInvalid:
    """The refusal of a number that JSON does not have."""
    return PayloadInvalid(f"{place(of, path)} is {value}: JSON has only finite numbers")


def place(of: str, path: Path) -> str:
    """Where in a value something stands, in words."""
    return f"{of}: {spelt(path)}" if path else of


def spelt(path: Path) -> str:
    """A path as it would be written in code."""
    parts = (
        f"[{part}]" if isinstance(part, int) else f".{part if isinstance(part, str) else shown(part)}" for part in path
    )
    return line("".join(parts).removeprefix("."), _LONGEST_PLACE)


def line(text: str, longest: int) -> str:
    """One printable line of at most `longest` characters."""
    # Names and reasons may hold anything of any length, and a message is shown on terminals.
    text = text[: longest + 1]
    text = text if text.isprintable() else repr(text)[1:-1]
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def reason(error: Exception) -> str:
    """An error's kind and the first line of its message, whatever that holds."""
    try:
        lines = str(error).splitlines()
    except Exception:  # noqa: BLE001  # an error of the caller's own making may not even have a text
        lines = []
    return line(f"{type(error).__name__}: {lines[0]}", LONGEST_REASON) if lines else type(error).__name__
