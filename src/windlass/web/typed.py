"""Typed: the payloads and results of the types of jobs as components of the OpenAPI document.

The body of an enqueue becomes one of many: a form for each type, told apart by a constant `type`, and one for types
that nobody has told of, whose payload is not known.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from windlass.web.openapi import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.declared import Declared

FORM = "Enqueue"
"""the component that an enqueue's body is, before and after"""
_OTHER = "EnqueueOther"
_KNOWN = "EnqueueKnown"
_DEFINITIONS = "#/$defs/"


def with_types(document: Mapping[str, Any], declared: Sequence[Declared]) -> dict[str, Any]:
    """The document with the types; the given one stays as it is."""
    schemas: dict[str, Any] = dict(document["components"]["schemas"])
    form = schemas[FORM]
    taken = {name.lower() for name in (*schemas, _OTHER, _KNOWN)}
    known: dict[str, str] = {}
    listed: dict[str, Any] = {}
    for one in sorted(declared, key=lambda one: one.type):
        name = _name(one.type, taken)
        schemas |= _parts(f"{name}Payload", one.payload_schema) | _parts(f"{name}Result", one.result_schema)
        schemas[f"{FORM}{name}"] = _form(form, one, name)
        known[one.type] = f"{SCHEMAS}{FORM}{name}"
        listed[one.type] = {of.lower(): {"$ref": f"{SCHEMAS}{name}{of}"} for of in ("Payload", "Result")}
    forms = [{"$ref": f"{SCHEMAS}{_OTHER}"}]
    if known:
        references = [{"$ref": reference} for reference in known.values()]
        schemas[_KNOWN] = {"oneOf": references, "discriminator": {"propertyName": "type", "mapping": known}}
        forms = [{"$ref": f"{SCHEMAS}{_KNOWN}"}, *forms]
    schemas[_OTHER] = _other(form, list(known))
    schemas[FORM] = {"description": "A job to be enqueued.", "oneOf": forms}
    components = {**document["components"], "schemas": schemas}
    return {**document, "components": components, "x-windlass-types": listed}


def _form(form: Mapping[str, Any], declared: Declared, name: str) -> dict[str, Any]:
    """What an enqueue of this type looks like."""
    payload: dict[str, Any] = {"$ref": f"{SCHEMAS}{name}Payload"}
    needed = not declared.takes_arguments or bool((declared.payload_schema or {}).get("required"))
    if not needed:
        payload = {"anyOf": [payload, {"type": "null"}]}
    own = {"type": {"type": "string", "const": declared.type}, "payload": payload}
    return {
        **{part: value for part, value in form.items() if part != "examples"},
        "description": f"A job of the type {declared.type}.",
        "properties": {**form["properties"], **own},
        "required": ["type", "payload"] if needed else ["type"],
    }


def _other(form: Mapping[str, Any], known: list[str]) -> dict[str, Any]:
    type_ = dict(form["properties"]["type"])
    if known:
        type_["not"] = {"enum": known}
    properties = {**form["properties"], "type": type_}
    return {**form, "description": "A job of a type that no worker has told of.", "properties": properties}


def _parts(name: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """A schema and what it refers to, as components; whatever else it refers to is not followed: it is anything."""
    schema = schema or {}
    inner = cast("Mapping[str, Any]", schema.get("$defs", {}))
    names = {f"{_DEFINITIONS}{one}": f"{name}{_safe(one)}" for one in inner}
    made = {names[f"{_DEFINITIONS}{one}"]: _pointed(part, names) for one, part in inner.items()}
    return {**made, name: _pointed({part: value for part, value in schema.items() if part != "$defs"}, names)}


def _pointed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_pointed(one, names) for one in cast("Sequence[Any]", value)]
    if not isinstance(value, Mapping):
        return value
    members = cast("Mapping[str, Any]", value)
    reference = members.get("$ref")
    if isinstance(reference, str):
        return {"$ref": f"{SCHEMAS}{names[reference]}"} if reference in names else {}
    made = {name: _pointed(part, names) for name, part in members.items()}
    mapping = made.get("discriminator", {}).get("mapping") if isinstance(made.get("discriminator"), dict) else None
    if isinstance(mapping, dict):
        told = cast("dict[str, str]", mapping)
        pointed = {word: f"{SCHEMAS}{names.get(to, '')}" for word, to in told.items()}
        made["discriminator"] = {**made["discriminator"], "mapping": pointed}
    return made


def _name(type_: str, taken: set[str]) -> str:
    """A type as the name of a class: `mail.send` is MailSend. Where two are alike, a few digits tell them apart."""
    name = _safe(type_)
    forms = {f"{FORM}{name}".lower(), f"{name}Payload".lower(), f"{name}Result".lower()}
    if forms & taken or not name[:1].isalpha():
        name = f"{name if name[:1].isalpha() else f'Type{name}'}{hashlib.sha256(type_.encode()).hexdigest()[:6]}"
        forms = {f"{FORM}{name}".lower(), f"{name}Payload".lower(), f"{name}Result".lower()}
    taken |= forms
    return name


def _safe(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name) if word)
