"""A payload is accepted by a published schema when its handler's own types accept it, and refused in the same words.

Where the two differ is listed here. What a handler would convert, such as the text "5" for a number, the schema
refuses: whoever enqueues without the handler writes JSON, where a number is a number. Never is something accepted that
the handler would refuse, but for rules of a handler's own code, which no schema can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, field_validator
from typing_extensions import TypedDict

from tests.core.making import codec_of
from windlass.core.errors import PayloadInvalid
from windlass.core.fitting import Fitting

UUID_TEXT = "0190a3c4-5d6e-7f80-9123-456789abcdef"


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    y: int


class Movie(TypedDict):
    title: str
    year: int


@dataclass
class Address:
    street: str
    number: int = 1


class Order(BaseModel):
    id: int = Field(gt=0)
    lines: list[Address] = []
    note: str | None = Field(None, max_length=5)


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    n: int


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Even(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def even(cls, n: int) -> int:
        if n % 2:
            raise ValueError("odd")
        return n


HINTS: Sequence[Any] = (
    Any,
    int,
    float,
    str,
    bool,
    None,
    dict,
    list,
    int | None,
    int | str,
    str | list[str],
    list[int],
    set[int],
    frozenset[str],
    tuple[int, str],
    tuple[int, ...],
    dict[str, int],
    Point,
    Movie,
    Address,
    Order,
    Strict,
    Colour,
    Colour | None,
    Literal["a", 1],
    datetime,
    datetime | None,
    date,
    time,
    timedelta,
    UUID,
    Decimal,
    bytes,
    AnyUrl,
    IPv4Address,
    Annotated[int, Field(ge=2, lt=10)],
    Annotated[int, Field(gt=2, le=10, multiple_of=2)],
    Annotated[str, Field(min_length=2, max_length=4, pattern="^a")],
    Annotated[list[int], Field(min_length=1, max_length=2)],
    Annotated[Cat | Dog, Field(discriminator="kind")],
)
VALUES: Sequence[Any] = (
    *(None, True, False, 0, 1, 2, 3, 5, 12, -1, 1.0, 1.5, 2**63 - 1),
    *("", "a", "ab", "abcdef", "b", "1", "red", "true", "not a date", "ö"),
    *(
        "2026-05-01",
        "2026-05-01T10:00:00Z",
        "2026-05-01T10:00:00",
        "2026-05-01T10:00:00+02:00",
        "2026-13-01",
        "10:00:00",
    ),
    *(
        "PT5S",
        "P1D",
        UUID_TEXT,
        UUID_TEXT[:-1],
        "1.50",
        "1e5",
        "aGk=",
        "!!",
        "https://example.com/a",
        "10.0.0.7",
        "300.0.0.1",
    ),
    *([], [1], [1, 1], [1, 2, 3], ["a"], ["a", "a"], [1, "a"], ["a", 1], [None]),
    *({}, {"a": 1}, {"a": "x"}, {"title": "t", "year": 1}, {"title": "t"}, {"title": "t", "year": 1, "more": 2}),
    *({"x": 1, "y": 2}, {"street": "s"}, {"street": "s", "number": "x"}, {"street": "s", "more": 1}),
    *({"id": 1}, {"id": 0}, {"id": 1, "note": "toolong"}, {"id": 1, "lines": [{"street": "s"}]}),
    *({"id": 1, "lines": [{"number": 1}]}, {"n": 1}, {"n": 1, "m": 2}, {"n": "x"}),
    *({"kind": "cat", "lives": 9}, {"kind": "dog", "name": "rex"}, {"kind": "dog", "lives": 9}, {"kind": "cow"}),
)


def by_handler(hint: Any, value: Any) -> str | None:
    """Why the handler's own types refuse it."""
    try:
        codec_of(hint).encode_plain({"x": value})
    except PayloadInvalid as error:
        return str(error)
    return None


def by_schema(hint: Any, value: Any) -> str | None:
    schema = codec_of(hint).payload_schema()
    assert schema is not None
    try:
        Fitting(schema).check({"x": value}, "mail.send")
    except PayloadInvalid as error:
        return str(error)
    return None


TRUTH = [True, False]
NUMBERS = [0, 1, 2, 3, 5, 12, -1, 1.0, 1.5]
CONVERTED: dict[Any, list[Any]] = {
    int: [*TRUTH, "1"],
    int | None: [*TRUTH, "1"],
    int | str: TRUTH,
    float: [*TRUTH, "1", "1.50", "1e5"],
    bool: [0, 1, 1.0, "1", "true"],
    Literal["a", 1]: [True],
    Point: [{"x": 1, "y": 2}],
    datetime: NUMBERS,
    datetime | None: NUMBERS,
    date: [0],
    time: [number for number in NUMBERS if number >= 0],
    timedelta: NUMBERS,
    IPv4Address: [*TRUTH, 0, 1, 2, 3, 5, 12],
}
"""what a handler makes a value of its type from, and JSON Schema does not take for one"""


def kinds(hint: Any) -> str:
    return str(hint)


@pytest.mark.parametrize("hint", HINTS, ids=kinds)
def test_nothing_is_accepted_by_the_schema_that_the_handler_refuses(hint: Any) -> None:
    wrong = [value for value in VALUES if by_schema(hint, value) is None and by_handler(hint, value) is not None]
    assert wrong == []


@pytest.mark.parametrize("hint", HINTS, ids=kinds)
def test_what_only_the_handler_accepts_is_what_it_would_convert(hint: Any) -> None:
    stricter = [value for value in VALUES if by_schema(hint, value) is not None and by_handler(hint, value) is None]
    assert stricter == CONVERTED.get(hint, [])


@given(st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3), st.lists, max_leaves=5))
def test_any_json_value_fits_where_no_type_is_declared(value: Any) -> None:
    assert by_schema(Any, value) is None


def test_a_rule_of_the_handlers_own_code_is_not_known_to_the_schema() -> None:
    assert by_handler(Even, {"n": 1}) is not None
    assert by_schema(Even, {"n": 1}) is None


DOES_NOT_FIT = "mail.send does not fit its types: "


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (str, 5),
        (bool, []),
        (float, []),
        (list[int], [1, None]),
        (list[int], {}),
        (Address, []),
        (Address, {}),
        (Order, {"id": 0}),
        (Order, {"id": 1, "note": "toolong"}),
        (Order, {"id": 1, "lines": [{"street": "s"}, {"number": 2}]}),
        (Strict, {"n": 1, "m": 2}),
        (Movie, {"title": "t"}),
        (Colour, "green"),
        (Literal["a"], "b"),
        (Literal["a", "b", "c"], "d"),
        (datetime | None, "not a date"),
        (date, "2026-13-01"),
        (UUID, "x"),
        (bytes, "!!"),
        (Annotated[int, Field(ge=2)], 1),
        (Annotated[int, Field(gt=2)], 1),
        (Annotated[int, Field(le=2)], 3),
        (Annotated[int, Field(lt=2)], 3),
        (Annotated[int, Field(multiple_of=2)], 3),
        (Annotated[str, Field(min_length=2)], "a"),
        (Annotated[str, Field(max_length=1)], "ab"),
        (Annotated[str, Field(pattern="^a")], "b"),
        (Annotated[list[int], Field(min_length=1)], []),
        (Annotated[list[int], Field(max_length=1)], [1, 2]),
    ],
    ids=str,
)
def test_a_refusal_has_the_words_of_the_handlers_own(hint: Any, value: Any) -> None:
    said = by_schema(hint, value)
    assert said == by_handler(hint, value)
    assert said is not None
    assert said.startswith(DOES_NOT_FIT)


@pytest.mark.parametrize(
    ("hint", "value", "words", "own"),
    [
        # The handler tells how it tried to convert the value.
        (int, "x", "x: Input should be a valid integer", ", unable to parse string as an integer"),
        # The handler tells of each arm of a union by its name.
        (int | str, [], "x: Input should be a valid integer; x: Input should be a valid string", None),
        (int | list[int], ["a"], "x: Input should be a valid integer; x[0]: Input should be a valid integer", None),
        (None, 1, "x: Input should be null", None),
        (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "cow"}, "x.kind: Input should be 'cat'", None),
        (dict[Literal["a"], int], {"b": 1}, "x: ", None),
        (
            Annotated[dict[str, int], Field(max_length=1)],
            {"a": 1, "b": 2},
            "at most 1 item after validation, not 2",
            None,
        ),
        (Annotated[int | str, Field(json_schema_extra={"oneOf": [{}, {}]})], 1, "x: Input should fit one of", None),
        (
            Annotated[int, Field(json_schema_extra={"type": ["integer", "string"]})],
            [],
            "a valid integer or a valid",
            None,
        ),
    ],
    ids=str,
)
def test_where_the_words_differ(hint: Any, value: Any, words: str, own: str | None) -> None:
    said = by_schema(hint, value)
    assert said is not None
    assert words in said
    if own is not None:
        assert by_handler(hint, value) == said + own


def test_what_does_not_fit_in_many_places_is_told_of_the_first() -> None:
    schema = codec_of(list[int]).payload_schema()
    assert schema is not None
    with pytest.raises(PayloadInvalid, match="; and 2 more"):
        Fitting(schema).check({"x": ["a"] * 5}, "mail.send")


def test_an_argument_that_is_missing_or_unknown_is_named() -> None:
    codec = codec_of(int)
    schema = codec.payload_schema()
    assert schema is not None
    for payload in ({}, {"x": 1, "y": 2}):
        with pytest.raises(PayloadInvalid) as by_own:
            codec.encode_plain(payload)
        with pytest.raises(PayloadInvalid) as by_published:
            Fitting(schema).check(payload, "mail.send")
        assert str(by_own.value) == str(by_published.value)


def test_a_schema_cannot_make_it_read_another_from_somewhere() -> None:
    with pytest.raises(ValueError, match=r"example\.com"):
        Fitting({"$ref": "http://example.com/schema.json"})
