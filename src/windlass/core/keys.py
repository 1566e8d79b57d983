"""Names and keys: what a queue, a type, a unique key or a limit key may look like, and key templates."""

from __future__ import annotations

from dataclasses import dataclass
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
        raise SettingsError(f"{of} is {_shown(value)}: expected 1 to {LONGEST_NAME} printable characters")
    return value


def check_key(value: object, of: str) -> str:
    """A unique, idempotency, limit or context value: 1 to 512 characters, none of them a control character."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_KEY or not _plain(value):
        raise SettingsError(f"{of} is {_shown(value)}: expected text of 1 to {LONGEST_KEY} printable characters")
    return value


def _plain(text: str) -> bool:
    # isprintable() refuses control characters, lone surrogates and line separators, and is one C call.
    return text.isprintable()


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004  # as long as a message bears


@dataclass(frozen=True, slots=True)
class Template:
    """A key with places for a job's own arguments: `file:{project}:{file}`.

    Only plain parameter names are places: no attributes, no indexes, no formats, so that no argument can reach further.
    """

    text: str

    def __post_init__(self) -> None:
        """Refuse a template that could not be filled in."""
        check_key(self.text, "the key template")
        try:
            parts = list(Formatter().parse(self.text))
        except ValueError as error:
            raise SettingsError(f"the key template {self.text!r} cannot be read: {error}") from None
        for _, name, form, conversion in parts:
            if name is not None and (not name.isidentifier() or form or conversion):
                raise SettingsError(
                    f"the key template {self.text!r} has the place {{{name}}}: only parameter names are allowed"
                )

    @property
    def names(self) -> frozenset[str]:
        """The parameters it needs."""
        return frozenset(name for _, name, _, _ in Formatter().parse(self.text) if name is not None)

    def fill(self, arguments: Mapping[str, Any]) -> str:
        """The key for these arguments; one that is missing or not a plain value is an error."""
        found: dict[str, str] = {}
        for name in self.names:
            value = arguments.get(name)
            if not isinstance(value, (str, int, float)):
                raise PayloadInvalid(
                    f"the key template {self.text!r} needs the argument {name!r} as text or a number,"
                    f" found {type(value).__name__}"
                )
            found[name] = str(value)
        return check_key(self.text.format_map(found), f"the key made from {self.text!r}")
