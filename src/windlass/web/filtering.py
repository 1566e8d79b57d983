"""Filtering: the words by which jobs are asked for, in a body, in a query and on a WebSocket."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from windlass.client.grammar import LONGEST
from windlass.client.searching import Search
from windlass.core.status import Status
from windlass.web.given import GIVEN, HALF_AN_ENTITY, JOB_ID, NOT_GIVEN, Asked, Fingerprint, Key, Moment, Name, never

_STATUS: dict[str, Any] = {"type": "string", "enum": [*Status]}
OneOrMore = Annotated[
    Annotated[list[Annotated[Status, Field(strict=False)]], Field(min_length=1)] | None,
    BeforeValidator(lambda given: [given] if isinstance(given, str) else given),
    WithJsonSchema({"anyOf": [{"type": "array", "items": _STATUS, "minItems": 1}, _STATUS, {"type": "null"}]}),
]


Line = Annotated[str, Field(min_length=1, max_length=LONGEST)]
JobId = Annotated[Key, WithJsonSchema(JOB_ID)]
_ONLY_FAILED: dict[str, Any] = {
    "anyOf": [NOT_GIVEN, {"const": "failed"}, {"items": {"const": "failed"}, "type": "array"}]
}
NOT_ONLY_FAILED: dict[str, Any] = {"required": ["status"], "properties": {"status": {"not": _ONLY_FAILED}}}
"""for the document: that a status is asked for which none of the failed jobs has"""
_FINGERPRINT = {"required": ["fingerprint"], "properties": {"fingerprint": GIVEN}}


class Which(Asked):
    """Which jobs; all that is given must match."""

    model_config = ConfigDict(json_schema_extra=never(*HALF_AN_ENTITY, {"allOf": [_FINGERPRINT, NOT_ONLY_FAILED]}))

    status: OneOrMore = None
    type: Name | None = None
    queue: Key | None = None
    user_id: Key | None = None
    entity_name: Key | None = None
    entity_id: Key | None = None
    correlation_id: Key | None = None
    parent_id: JobId | None = None
    schedule: Key | None = None
    unique_key: Key | None = None
    tag: Annotated[list[Name] | None, Field(min_length=1)] = None
    fingerprint: Fingerprint | None = None
    created_since: Moment | None = None
    created_before: Moment | None = None
    where: Line | None = None
    """a line as people type it: `status:failed ran>5s -tag:test`"""

    def search(self) -> Search:
        """In the words of a search."""
        words = {"tag": "tags"}
        given = {name: getattr(self, name) for name in Which.model_fields}
        found: dict[str, Any] = {words.get(name, name): value for name, value in given.items() if value is not None}
        return cast("Search", found)


class WhichInQuery(Which):
    """The same where all is text."""

    model_config = ConfigDict(strict=False)

    status: list[Status] | None = None
