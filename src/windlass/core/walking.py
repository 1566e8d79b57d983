"""Walking through pydantic's own schemas: where secrets are, and what may hold values that it changes in writing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from windlass.core.secret import META

if TYPE_CHECKING:
    from collections.abc import Mapping

SECRET: frozenset[str] = frozenset()
"""in place of kinds: whether there is a secret"""
_CHANGED = frozenset({"datetime", "frozenset", "function-plain", "set"})
_NOT_SCHEMA = frozenset({"metadata", "default"})


def is_delicate(schema: Mapping[str, Any], checked: frozenset[str]) -> bool:
    """Whether these types can hold what pydantic does not write as it is: sets, not-a-number, odd zones, secrets."""
    fields: dict[str, Any] = (schema["schema"] if schema["type"] == "definitions" else schema)["fields"]
    loose = [field for name, field in fields.items() if name not in checked]
    rest = [field for name, field in fields.items() if name in checked]
    return mentions([*loose, schema.get("definitions")], _CHANGED | {"any"}) or mentions(rest, _CHANGED)


def mentions(waiting: list[Any], kinds: frozenset[str]) -> bool:
    """Whether one of these kinds, or with none a secret, is anywhere in these parts."""
    while waiting:
        node = waiting.pop()
        if type(node) is dict:
            members = cast("dict[str, Any]", node)
            if members.get("type") in kinds or (kinds is SECRET and META in members.get("metadata", ())):
                return True
            waiting += [part for name, part in members.items() if name not in _NOT_SCHEMA]
        elif isinstance(node, (list, tuple)):
            waiting += cast("list[Any]", node)
    return False


def holds_secret(node: Any, root: Mapping[str, Any], seen: tuple[str, ...] = ()) -> bool:
    """Whether a part of a schema is a secret or leads to one."""
    if isinstance(node, (list, tuple)):
        return any(holds_secret(one, root, seen) for one in cast("list[Any]", node))
    if type(node) is not dict:
        return False
    members = cast("dict[str, Any]", node)
    if META in members.get("metadata", ()):
        return True
    if members.get("type") == "definition-ref":
        ref: str = members["schema_ref"]
        return ref not in seen and holds_secret(_defined(ref, root), root, (*seen, ref))
    return any(holds_secret(part, root, seen) for name, part in members.items() if name not in _NOT_SCHEMA)


def nests(node: Any, root: Mapping[str, Any]) -> bool:
    """Whether there is a secret within a secret."""
    if isinstance(node, (list, tuple)):
        return any(nests(one, root) for one in cast("list[Any]", node))
    if type(node) is not dict:
        return False
    members = cast("dict[str, Any]", node)
    if META in members.get("metadata", ()):
        return holds_secret(members["json_schema_input_schema"], root)
    return any(nests(part, root) for name, part in members.items() if name not in _NOT_SCHEMA)


def _defined(ref: str, root: Mapping[str, Any]) -> Any:
    return next((one for one in root.get("definitions", ()) if one.get("ref") == ref), None)


def fields_in(node: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the model, dataclass or typed dict that a schema describes, by name; none of anything else."""
    while type(node) is dict:
        found = cast("dict[str, Any]", node)
        fields = found.get("fields")
        if isinstance(fields, dict):
            return cast("dict[str, Any]", fields)
        if found["type"] == "dataclass-args":
            return {one["name"]: one for one in cast("list[dict[str, Any]]", fields)}
        node = _defined(found["schema_ref"], root) if found["type"] == "definition-ref" else found.get("schema")
    return {}
