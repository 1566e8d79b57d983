"""Sealing: how secrets stand in stored JSON, and what masks, finds and opens them there. The cipher comes from above.

A sealed value is an object with one member, `{"$secret": "wl1.…"}`. It is bound to the type of its job and to its place
in the payload or the result, so that it can be opened there and nowhere else.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from windlass.core.errors import PayloadInvalid, SecretUnreadable
from windlass.core.redaction import MASK
from windlass.core.values import encode, spelt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MEMBER = "$secret"
FORM = "wl1."
"""what every sealed text begins with: the form, of which there is one"""
_SIGN = f'"{MEMBER}":"{FORM}'
SCHEMA_MARK = "x-windlass-secret"
"""in a JSON Schema: what stands here is sealed"""
KEYS = "WINDLASS_SECRET_KEYS"
Of: TypeAlias = Literal["payload", "result"]
Path: TypeAlias = tuple[str | int, ...]


class Seals(Protocol):
    """What seals and opens: a cipher with its keys."""

    def seal(self, text: str, place: str) -> str:
        """The text, readable with the key alone, for this place; SettingsError where there is no key."""
        ...

    def open(self, sealed: str, place: str) -> str:
        """The text; SecretUnreadable without its key, or if it was sealed for another place, or changed."""
        ...

    def digest(self, text: str) -> str:
        """The same for the same text, and telling nothing of it without the key."""
        ...

    def check(self) -> None:
        """SecretUnreadable where nothing can be sealed here."""
        ...


def place_of(of: Of, type_: str, path: Path) -> str:
    """What a sealed value is bound to."""
    return encode([of, type_, *path])


def is_sealed(value: object) -> bool:
    """Whether this is what a secret is stored as."""
    if type(value) is not dict or len(cast("dict[str, Any]", value)) != 1:
        return False
    sealed = cast("dict[str, Any]", value).get(MEMBER)
    return type(sealed) is str and sealed.startswith(FORM)


def holds_sealed(text: str) -> bool:
    """Whether there is something sealed in a stored JSON text."""
    return _SIGN in text


def masked(text: str) -> Any:
    """The values of a stored JSON text, with `***` for each secret."""
    value: Any = json.loads(text)
    return mapped(value, _mask) if _SIGN in text else value


def _mask(_: str, __: Path) -> str:
    return MASK


def masked_text(text: str) -> str:
    """The same as text."""
    return encode(masked(text)) if _SIGN in text else text


def mapped(value: Any, change: Callable[[str, Path], Any], path: Path = ()) -> Any:
    """The value with something else for each sealed value in it."""
    if is_sealed(value):
        return change(value[MEMBER], path)
    return _each(value, path, lambda member, place: mapped(member, change, place))


def _each(value: Any, path: Path, change: Callable[[Any, Path], Any]) -> Any:
    """A JSON value with its members changed, each told its place; one without members as it is."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {name: change(member, (*path, name)) for name, member in members}
    if isinstance(value, list):
        return [change(member, (*path, index)) for index, member in enumerate(cast("list[object]", value))]
    return value


def sealed_in(text: str) -> list[str]:
    """Every sealed text in a stored JSON text."""
    found: list[str] = []
    if _SIGN in text:
        mapped(json.loads(text), lambda sealed, _: found.append(sealed))
    return found


def opened(text: str, seals: Seals | None, of: Of, type_: str, make: Callable[[Any], Any]) -> Any:
    """The values of a stored JSON text, with what `make` makes of each secret's plain value; SecretUnreadable."""

    def change(sealed: str, path: Path) -> Any:
        return make(json.loads(_sure(seals).open(sealed, place_of(of, type_, path))))

    return mapped(json.loads(text), change)


def moved(value: Any, seals: Seals | None, source: tuple[Of, str], target: tuple[Of, str], under: Path) -> Any:
    """A value with its secrets sealed anew, for the place in another job that it is about to have."""

    def change(sealed: str, path: Path) -> Any:
        vault = _sure(seals)
        text = vault.open(sealed, place_of(*source, path))
        return {MEMBER: vault.seal(text, place_of(*target, (*under, *path)))}

    return mapped(value, change)


def content(text: str, seals: Seals | None, type_: str) -> str:
    """What a payload is about, the same for the same arguments: each secret as a digest that only a key can make."""

    def change(sealed: str, path: Path) -> Any:
        vault, place = _sure(seals), place_of("payload", type_, path)
        return {MEMBER: vault.digest(f"{place}\n{vault.open(sealed, place)}")}

    return encode(mapped(json.loads(text), change)) if _SIGN in text else text


def told_by(text: str, seals: Seals | None, type_: str) -> list[str]:
    """Every text and number that the secrets of a payload consist of; none where they cannot be opened."""
    told: list[str] = []
    if _SIGN in text:
        try:
            opened(text, seals, "payload", type_, lambda value: told.extend(_leaves(value)))
        except SecretUnreadable:
            return told
    return told


def _leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for member in cast("dict[str, Any]", value).values() for leaf in _leaves(member)]
    if isinstance(value, list):
        return [leaf for member in cast("list[object]", value) for leaf in _leaves(member)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def _sure(seals: Seals | None) -> Seals:
    if seals is None:
        raise SecretUnreadable(f"there are no keys here to open a secret with: set {KEYS}")
    return seals


class Writing:
    """Takes the secrets out of values while they are written as JSON, and puts them back sealed, or plainly."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def take(self, text: str) -> dict[str, int]:
        """What stands for this secret until its place is known."""
        self._texts.append(text)
        return {MEMBER: len(self._texts) - 1}

    def put_back(self, value: Any, of: str, make: Callable[[str, Path], Any]) -> Any:
        """The written value with what `make` makes of each secret's text; PayloadInvalid where one was not met once."""
        waiting = dict(enumerate(self._texts))

        def walk(value: Any, path: Path) -> Any:
            if isinstance(value, dict) and list(cast("dict[str, Any]", value)) == [MEMBER]:
                number = cast("dict[str, Any]", value)[MEMBER]
                if type(number) is int and number not in waiting:
                    raise PayloadInvalid(f"{of}: {spelt(path)} has a member {MEMBER}: that name is windlass's own")
                if type(number) is int:
                    return make(waiting.pop(number), path)
            return _each(value, path, walk)

        done = walk(value, ())
        if waiting:
            raise PayloadInvalid(f"{of} holds a secret in a place that it cannot be sealed in")
        return done


class Reading:
    """Opens the secrets of one stored text where its types say that there are some."""

    def __init__(self, text: str, seals: Seals | None, of: Of, type_: str) -> None:
        self._seals, self._type = seals, type_
        self._of: Of = of
        self._places: dict[str, Path | None] = {}
        if _SIGN in text:
            mapped(json.loads(text), self._found)

    def _found(self, sealed: str, path: Path) -> None:
        # Each is sealed by itself: what is there twice was copied, and belongs to one of its places at most.
        self._places[sealed] = None if sealed in self._places else path

    def open(self, sealed: str) -> str:
        """The plain JSON of a sealed value; SecretUnreadable."""
        path = self._places.get(sealed)
        if path is None:
            raise SecretUnreadable(f"a secret of {self._type} was copied from another place")
        try:
            return _sure(self._seals).open(sealed, place_of(self._of, self._type, path))
        except SecretUnreadable as error:
            raise SecretUnreadable(f"{self._of} of {self._type}: {spelt(path) or 'the whole'}: {error}") from None


def seal_by_schema(
    payload: Any,
    schema: Mapping[str, Any],
    seal: Callable[[str, Path], Any],
    fits: Callable[[Mapping[str, Any], Any], bool],
) -> Any:
    """A plain payload with what its published schema marks as secret sealed.

    `fits` says whether a value is of one branch of a union, which then says what in it is a secret.
    """
    definitions: Mapping[str, Any] = schema.get("$defs", {})

    def walk(value: Any, node: Any, path: Path) -> Any:
        if not isinstance(node, dict):
            return value
        found = cast("dict[str, Any]", node)
        if found.get(SCHEMA_MARK):
            return seal(encode(value), path)
        if "$ref" in found:
            return walk(value, definitions.get(str(found["$ref"]).rpartition("/")[2]), path)
        for union in ("anyOf", "oneOf", "allOf"):
            branch = next((one for one in found.get(union, ()) if fits({**one, "$defs": definitions}, value)), None)
            if branch is not None:
                return walk(value, branch, path)
        first: list[object] = found.get("prefixItems", [])
        known: dict[str | int, object] = {**found.get("properties", {}), **dict(enumerate(first))}
        rest = found.get("items") if isinstance(value, list) else found.get("additionalProperties")
        return _each(value, path, lambda member, place: walk(member, known.get(place[-1], rest), place))

    return walk(payload, schema, ())
