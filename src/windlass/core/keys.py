"""Names and keys: what a queue, a type, a unique key or a limit key may look like, and key templates."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from string import Formatter
from typing import TYPE_CHECKING, Any

from windlass.core.errors import PayloadInvalid, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_NAME = 200
LONGEST_KEY = 512


def check_name(value: object, of: str) -> str:
    """A queue, type, schedule or lock name: 1 to 200 printable characters without spaces around them."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or not _plain(value) or value != value.strip():
        raise SettingsError(
            f"{of} is {shown(value)}: expected 1 to {LONGEST_NAME} printable characters without spaces around them"
        )
    return value


def check_key(value: object, of: str) -> str:
    """A unique, idempotency, limit or context value: 1 to 512 characters, none of them a control character."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_KEY or not _plain(value):
        raise SettingsError(f"{of} is {shown(value)}: expected text of 1 to {LONGEST_KEY} printable characters")
    return value


def shown(value: object, longest: int = 80) -> str:
    """A value as a message bears it: one short line, even where its own repr is endless or raises."""
    try:
        text = repr(value[: longest + 1] if isinstance(value, str) else value)
    except Exception:  # noqa: BLE001  # a message about a bad value must not fail on how bad it is
        text = f"<{type(value).__name__}>"
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _plain(text: str) -> bool:
    # isprintable() refuses control characters, lone surrogates and line separators, and is one C call.
    return text.isprintable()


@dataclass(frozen=True, slots=True)
class Template:
    """A key with places for a job's own arguments: `file:{project}:{file}`.

    Only plain parameter names are places: no attributes, no indexes, no formats, so that no argument can reach further.
    """

    text: str
    names: frozenset[str] = field(init=False, repr=False, compare=False)
    """The parameters it needs."""

    def __post_init__(self) -> None:
        """Refuse a template that could not be filled in."""
        check_key(self.text, "the key template")
        try:
            parts = list(Formatter().parse(self.text))
        except ValueError as error:
            raise SettingsError(f"the key template {shown(self.text)} cannot be read: {error}") from None
        for _, name, form, conversion in parts:
            if name is not None and (not name.isidentifier() or form or conversion):
                place = name + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
                raise SettingsError(
                    f"the key template {shown(self.text)} has the place {{{place}}}: only parameter names are allowed"
                )
        object.__setattr__(self, "names", frozenset(name for _, name, _, _ in parts if name is not None))

    def fill(self, arguments: Mapping[str, Any]) -> str:
        """The key for these arguments; one that is missing or not a plain value is an error."""
        found: dict[str, str] = {}
        for name in self.names:
            value = arguments.get(name)
            if not isinstance(value, (str, int, float)):
                what = type(value).__name__ if name in arguments else "no such argument"
                raise PayloadInvalid(
                    f"the key template {shown(self.text)} needs the argument {name!r} as text or a number, found {what}"
                )
            found[name] = str(value)
        return check_key(self.text.format_map(found), f"the key made from {shown(self.text)}")


@lru_cache(maxsize=1024)
def template(text: str) -> Template:
    """The template of this text, read once: handlers have few, and jobs are made by the thousand."""
    return Template(text)
