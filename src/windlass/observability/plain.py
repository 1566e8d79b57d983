"""Text that jobs brought along, made fit for terminals and log files: data, never control codes or forged lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, cast

from windlass.core.redaction import MASK, is_called_secret, redact

# Format characters carry bidi overrides, which reorder what a reader sees; surrogates cannot be written at all.
_UNFIT = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_KEPT = frozenset({"\u200c", "\u200d"})  # joiners: some scripts and emoji need them, and they move nothing


def plain(text: object, *, lines: bool = False) -> str:
    """The text without C0 and C1 controls, ESC, bidi overrides and lone surrogates; line breaks stay with `lines`.

    What is left out leaves a visible mark, so that two different texts do not come to look alike.
    """
    found = str(text)
    if found.isprintable():
        return found
    if lines:
        return "\n".join(_plain_line(line.replace("\t", "    ")) for line in found.split("\n"))
    return _plain_line(found.replace("\r\n", " ").replace("\n", " ").replace("\t", " "))


def short(text: object, longest: int) -> str:
    """One plain line of at most `longest` characters."""
    found = plain(text)
    return found if len(found) <= longest else f"{found[: longest - 1]}…"


def cleaned(value: Any, name: str = "") -> Any:
    """A value without what looks like a password or token: inside texts, and what is called so by its name."""
    if name and value is not None and is_called_secret(name):
        return MASK
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        members = cast("Mapping[object, object]", value)
        return {str(key): cleaned(member, str(key)) for key, member in members.items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(member) for member in cast("list[object]", value)]
    return value


def _plain_line(text: str) -> str:
    return "".join(one if _fit(one) else "\N{REPLACEMENT CHARACTER}" for one in text)


def _fit(one: str) -> bool:
    return one in _KEPT or unicodedata.category(one) not in _UNFIT
