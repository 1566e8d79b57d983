"""JSON Schemas of what a handler takes and returns, so that others can check payloads without its code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from windlass.core.sealing import SCHEMA_MARK

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def schema_of(
    adapter: TypeAdapter[Any], mode: Literal["validation", "serialization"], member: str | None = None
) -> dict[str, Any] | None:
    """The schema of an adapter, or of one member of it; None where its types cannot be told in JSON Schema at all.

    Members go by their fields' names, as payloads are stored. A type that JSON Schema cannot tell of is anything there.
    """
    from pydantic.json_schema import GenerateJsonSchema  # loaded only to publish or compare handlers

    class Generator(GenerateJsonSchema):
        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  # as its parent has it

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

        def set_schema(self, schema: Any) -> dict[str, Any]:
            # The codec takes what is there twice as once.
            return {name: part for name, part in super().set_schema(schema).items() if name != "uniqueItems"}

        def frozenset_schema(self, schema: Any) -> dict[str, Any]:
            return {name: part for name, part in super().frozenset_schema(schema).items() if name != "uniqueItems"}

        def decimal_schema(self, schema: Any) -> dict[str, Any]:
            # As text any was allowed; the format is ours, and says which.
            made = super().decimal_schema(schema)
            for branch in made.get("anyOf", [made]):
                if branch.get("type") == "string":
                    branch["format"] = "decimal"
            return made

        def default_schema(self, schema: Any) -> dict[str, Any]:
            made = super().default_schema(schema)
            if SCHEMA_MARK in made:
                made.pop("default", None)  # it would be ***, which is no secret
            return made

        def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
            return {}

    try:
        schema = adapter.json_schema(by_alias=False, mode=mode, schema_generator=Generator)
    except Exception:  # noqa: BLE001  # a type of the user's own making may raise anything
        return None
    schema.pop("title", None)  # of the form, which is nobody's
    return schema if member is None else _only(schema, member)


def _only(schema: dict[str, Any], member: str) -> dict[str, Any]:
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {**schema["properties"][member], **definitions}
