"""Fields: what a form asks for and a table tells, made of a JSON Schema. What that says is text and nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from windlass.core.sealing import SCHEMA_MARK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind = Literal["text", "long", "secret", "number", "boolean", "choice", "json", "group"]
"""how a field is asked for; what has no form of its own is asked for as JSON"""
_DEEPEST = 3
_MOST_CHOICES = 60
_MOST_FIELDS = 100
_FORMATS = {
    "date-time": "date and time",
    "date": "date",
    "time": "time of day",
    "duration": "duration, such as PT5M",
    "uuid": "UUID",
    "uri": "address",
    "email": "email address",
    "decimal": "decimal number",
    "base64url": "bytes in base64url",
    "password": "secret",
}
_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "nothing",
}
_BOUNDS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
    ("pattern", "like {}"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One member of a payload."""

    name: str
    path: str
    """from the payload down: `period.first`"""
    kind: Kind
    says: str
    """what it takes, in words"""
    required: bool
    nullable: bool = False
    about: str = ""
    usual: str | None = None
    """its default, as JSON"""
    choices: tuple[tuple[str, str], ...] = ()
    """as JSON, and as it is shown"""
    inside: tuple[Field, ...] = ()


def fields_of(schema: Mapping[str, Any] | None) -> tuple[Field, ...] | None:
    """The members of an object; None where the schema is of something else, or there is none."""
    if schema is None:
        return None
    reader = _Reader(schema)
    whole = reader.resolved(schema)
    return reader.members(whole, "", 0) if "properties" in whole or whole.get("type") == "object" else None


def says(schema: Mapping[str, Any] | None) -> str:
    """What a schema takes, in a few words."""
    return "anything" if schema is None else _Reader(schema).says(schema)


class _Reader:
    """Reads one schema: its references lead to its own definitions."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._definitions = cast("Mapping[str, Any]", schema.get("$defs", {}))

    def resolved(self, part: Any, hops: int = 0) -> Mapping[str, Any]:
        """The part, or what it refers to; of what is true or false alone, nothing."""
        if not isinstance(part, dict):
            return {}
        found = cast("dict[str, Any]", part)
        reference = found.get("$ref")
        if not isinstance(reference, str) or hops > _DEEPEST:
            return found
        target = self._definitions.get(reference.rpartition("/")[2])
        rest = {name: value for name, value in found.items() if name != "$ref"}
        return {**self.resolved(target, hops + 1), **rest}

    def members(self, whole: Mapping[str, Any], above: str, depth: int) -> tuple[Field, ...]:
        """A field for each property."""
        properties = cast("Mapping[str, Any]", whole.get("properties", {}))
        required = set(whole.get("required", ()))
        return tuple(
            self._field(name, part, f"{above}{name}", depth, required=name in required)
            for name, part in list(properties.items())[:_MOST_FIELDS]
        )

    def _field(self, name: str, part: Any, path: str, depth: int, *, required: bool) -> Field:
        given = self.resolved(part)
        shape, nullable = self._without_null(given)
        kind, choices = self._kind(shape, depth)
        return Field(
            name=name,
            path=path,
            kind=kind,
            says=self.says(given),
            required=required,
            nullable=nullable,
            about=str(given.get("description") or shape.get("description") or ""),
            usual=json.dumps(given["default"], ensure_ascii=False) if "default" in given else None,
            choices=choices,
            inside=self.members(shape, f"{path}.", depth + 1) if kind == "group" else (),
        )

    def _without_null(self, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
        branches = [self.resolved(one) for one in given.get("anyOf", ())]
        others = [one for one in branches if one.get("type") != "null"]
        if len(others) < len(branches) and len(others) == 1:
            return {**given, **others[0]}, True
        return given, len(others) < len(branches)

    def _kind(self, shape: Mapping[str, Any], depth: int) -> tuple[Kind, tuple[tuple[str, str], ...]]:
        if shape.get(SCHEMA_MARK):
            return ("secret" if shape.get("type") == "string" else "json"), ()
        values: Sequence[Any] = [shape["const"]] if "const" in shape else shape.get("enum", ())
        if 0 < len(values) <= _MOST_CHOICES:
            return "choice", tuple((json.dumps(one), _plain(one)) for one in values)
        match shape.get("type"):
            case "string":
                return "text", ()
            case "integer" | "number":
                return "number", ()
            case "boolean":
                return "boolean", ()
            case "object" if shape.get("properties") and depth < _DEEPEST:
                return "group", ()
            case _:
                return "json", ()

    def says(self, part: Any, depth: int = 0) -> str:
        """In words."""
        shape = self.resolved(part)
        if depth > _DEEPEST or not shape:
            return "anything"
        if shape.get(SCHEMA_MARK):
            return "secret"
        if "const" in shape or "enum" in shape:
            values = [shape["const"]] if "const" in shape else shape["enum"]
            more = "" if len(values) <= 8 else f" or {len(values) - 8} others"
            return " or ".join(_plain(one) for one in values[:8]) + more
        if "anyOf" in shape or "oneOf" in shape:
            branches = shape.get("anyOf") or shape["oneOf"]
            return " or ".join(dict.fromkeys(self.says(one, depth + 1) for one in branches))
        return ", ".join(
            [self._base(shape, depth), *(put.format(shape[name]) for name, put in _BOUNDS if name in shape)]
        )

    def _base(self, shape: Mapping[str, Any], depth: int) -> str:
        match shape.get("type"):
            case "string":
                return _FORMATS.get(str(shape.get("format")), "text")
            case "array":
                if "prefixItems" in shape:
                    return f"list of {', then '.join(self.says(one, depth + 1) for one in shape['prefixItems'])}"
                return f"list of {self.says(shape.get('items'), depth + 1)}"
            case "object" if "properties" in shape:
                title = shape.get("title")
                return (
                    f"{title}: {', '.join(shape['properties'])}"
                    if title
                    else f"object: {', '.join(shape['properties'])}"
                )
            case "object":
                return f"object of {self.says(shape.get('additionalProperties'), depth + 1)} by name"
            case str(word):
                return _TYPES.get(word, word)
            case _:
                return "anything"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
