"""Given: what comes in, by its kind. Bodies are strict: what the OpenAPI document does not allow is refused.

Names and keys are checked by the floor's own rule, which says what is wrong with one; patterns are for the document.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from windlass.core.errors import SettingsError
from windlass.core.keys import LONGEST_KEY, LONGEST_NAME, check_key, check_name

_UNPRINTABLE = r"\u0000-\u001f\u007f-\u00a0\u00ad"
_EDGE = f"[^ {_UNPRINTABLE}]"
NAME: dict[str, Any] = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST_NAME,
    "pattern": f"^{_EDGE}([^{_UNPRINTABLE}]*{_EDGE})?$",
}
KEY: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": f"^[^{_UNPRINTABLE}]+$"}


JOB_ID: dict[str, Any] = {
    "type": "string",
    "pattern": "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
}


def _name(value: str) -> str:
    return _told(check_name, value)


def _key(value: str) -> str:
    return _told(check_key, value)


def _told(check: Callable[[object, str], str], value: str) -> str:
    try:
        return check(value, "this")
    except SettingsError as error:
        raise ValueError(str(error)) from None  # pydantic tells where it is


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Name: TypeAlias = Annotated[str, AfterValidator(_name), WithJsonSchema(NAME)]
"""of a type, a queue, a schedule, a tag"""
Key: TypeAlias = Annotated[str, AfterValidator(_key), WithJsonSchema(KEY)]
"""a unique key, a user, an entity's id: whatever is compared as a whole"""
Fingerprint: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{12}$")]
"""of a group of failed jobs"""
Why: TypeAlias = Annotated[str, Field(max_length=1000)]
"""an operator's reason, which goes into the histories of jobs"""
Wait: TypeAlias = Annotated[float, Field(ge=0, le=3_153_600_000, description="Seconds.")]
Span: TypeAlias = Annotated[float, Field(ge=0.001, le=3_153_600_000, description="Seconds.")]
INTEGRAL = BeforeValidator(_whole)
"""last in what is said of a whole number, after its bounds, or the document does not tell them: 1.0 is one in JSON"""
PriorityName: TypeAlias = Literal["critical", "high", "normal", "low"]
Priority: TypeAlias = Annotated[int, Field(gt=-(2**31), lt=2**31), INTEGRAL] | PriorityName
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _instant(value: object) -> object:
    if not (isinstance(value, str) and _INSTANT.fullmatch(value)):
        raise ValueError("expected an instant with its zone, as in RFC 3339: 2026-03-01T09:30:00Z")
    return value


Moment: TypeAlias = Annotated[
    datetime,
    Field(strict=False),  # text is all that JSON has for it
    BeforeValidator(_instant),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


def given_one_of(*names: str) -> dict[str, Any]:
    """For the document: that one of these members at least has a value."""
    text: dict[str, Any] = {"type": "string"}
    return {"anyOf": [{"required": [name], "properties": {name: text}} for name in names]}


GIVEN: dict[str, Any] = {"not": {"type": "null"}}
NOT_GIVEN: dict[str, Any] = {"type": "null"}


def never(*cases: dict[str, Any]) -> dict[str, Any]:
    """For the document: that a body is none of these."""
    return {"not": {"anyOf": [*cases]}}


def both(one: str, other: str) -> dict[str, Any]:
    """For the document: that both members have a value."""
    return {"required": [one, other], "properties": {one: GIVEN, other: GIVEN}}


def neither(*names: str) -> dict[str, Any]:
    """For the document: that none of these members has a value."""
    return {"properties": dict.fromkeys(names, NOT_GIVEN)}


def alone(name: str, without: str) -> dict[str, Any]:
    """For the document: that one member has a value, and another has not."""
    return {"required": [name], "properties": {name: GIVEN, without: NOT_GIVEN}}


HALF_AN_ENTITY = alone("entityName", without="entityId"), alone("entityId", without="entityName")


class Asked(BaseModel):
    """The root of what comes in as a body: an unknown member is a mistake, and so is a number that is text."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", strict=True)


class Sought(BaseModel):
    """The root of what comes in as a query, where all is text: an unknown parameter is a mistake."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")
