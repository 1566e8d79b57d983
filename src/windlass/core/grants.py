"""Grants: which queues and types a key is good for, and what the application knows of its holder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windlass.core.errors import SettingsError
from windlass.core.keys import check_name
from windlass.core.values import canonical, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOST = 100
"""names of each kind"""
LARGEST = 4096
"""bytes of attributes"""


@dataclass(frozen=True, slots=True)
class Grants:
    """What a key is limited to. Of a name with a star at its end everything is meant that begins so."""

    queues: frozenset[str] | None = None
    """None: all of them"""
    types: frozenset[str] | None = None
    attributes_json: str | None = None
    """plain values that applications read, such as {"premium":true}; windlass itself does not"""

    @property
    def attributes(self) -> dict[str, Any]:
        """What the application knows of its holder."""
        found: dict[str, Any] = {} if self.attributes_json is None else json.loads(self.attributes_json)
        return found

    def allow(self, *, type_: str, queue: str) -> bool:
        """Whether a job of this type and queue is within them."""
        return _is_among(self.types, type_) and self.allow_queue(queue)

    def allow_queue(self, queue: str) -> bool:
        """Whether a queue as such is within them."""
        return _is_among(self.queues, queue)

    def text(self) -> str | None:
        """As stores keep it; nothing where nothing is limited or known."""
        if self == ANYTHING:
            return None
        names = {"queues": self.queues, "types": self.types}
        parts: dict[str, object] = {of: sorted(some) for of, some in names.items() if some is not None}
        if self.attributes_json is not None:
            parts["attributes"] = self.attributes
        return encode(parts)

    @staticmethod
    def of_text(text: str | None) -> Grants:
        """From its text."""
        parts: dict[str, Any] = json.loads(text) if text else {}
        queues, types = (frozenset(parts[of]) if of in parts else None for of in ("queues", "types"))
        attributes = encode(parts["attributes"]) if "attributes" in parts else None
        return Grants(queues, types, attributes)

    @staticmethod
    def made(
        queues: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Grants:
        """From what a caller gives, checked."""
        return Grants(
            _names(queues, "queue"),
            _names(types, "type"),
            canonical(dict(attributes), "the attributes", LARGEST) if attributes else None,
        )


ANYTHING = Grants()


def _names(given: Iterable[str] | None, of: str) -> frozenset[str] | None:
    if given is None:
        return None
    if isinstance(given, str):
        raise SettingsError(f"{of}s is the text {given!r}: expected several names, such as [{given!r}]")
    names = frozenset(check_name(name, f"the {of}") for name in given)
    if len(names) > MOST:
        raise SettingsError(
            f"{len(names)} {of}s were given: expected at most {MOST}; a star at the end stands for many"
        )
    return names


def _is_among(names: frozenset[str] | None, name: str) -> bool:
    if names is None or name in names:
        return True
    return any(one.endswith("*") and name.startswith(one[:-1]) for one in names)
