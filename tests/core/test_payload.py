from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
import threading
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Union, cast
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    computed_field,
    field_serializer,
    field_validator,
)
from typing_extensions import TypedDict

from tests.core.making import codec_of, declared, text_of, through
from windlass.core.errors import HandlerError, PayloadInvalid
from windlass.core.unique import idempotency_key
from windlass.core.values import MAX_BYTES, MAX_DEPTH, canonical, plain

LONGEST_MESSAGE = 500
BEYOND = 2**63

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
numbers = st.integers(-BEYOND, BEYOND - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)


def exactly(value: object) -> object:
    """Something that is equal only for the same value of the same types: 1 is not 1.0, nor is it True."""
    if isinstance(value, dict):
        return {name: exactly(member) for name, member in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [exactly(member) for member in cast("list[object]", value)]
    return type(value), repr(value)


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def refusal(hint: Any, value: Any) -> str:
    """What enqueueing this value says."""
    with pytest.raises(PayloadInvalid) as caught:
        codec_of(hint).encode((value,), {})
    return fit(str(caught.value))


def result_refusal(hint: Any, value: Any) -> str:
    """What returning this value says."""
    with pytest.raises(PayloadInvalid) as caught:
        codec_of(hint).encode_result(value)
    return fit(str(caught.value))


def fit(message: str) -> str:
    assert len(message) <= LONGEST_MESSAGE
    assert message.isprintable()
    return message


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


NOWHERE: Any = "Nowhere"
"""a name that only a checker knows"""
ANY_DICT: Any = dict
ANY_LIST: Any = list


def a_generator() -> Iterator[int]:
    yield 1


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Unit(StrEnum):
    KG = "kg"


@dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.0


@dataclass
class Parcel:
    id: UUID
    sent_at: datetime
    places: list[Point] = field(default_factory=list[Point])
    label: bytes = b""
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    marks: set[str] = field(default_factory=set[str])


class Address(BaseModel):
    city: str
    zip_code: str = Field(alias="zip")


class Customer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    address: Address
    born: date | None = None

    @computed_field  # type: ignore[prop-decorator]  # pydantic's order
    @property
    def greeting(self) -> str:
        return f"Dear {self.name}"


class Loose(BaseModel):
    data: Any = None
    seen: frozenset[str] = frozenset()


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Pair(NamedTuple):
    one: int
    two: str


class Tree(BaseModel):
    children: list[Tree] = []
    weights: set[int] = set()


PARCEL = Parcel(
    UUID(int=5),
    datetime(2024, 5, 6, 12, tzinfo=UTC),
    [Point(1, 2.5)],
    b"\xff\x00\xfe",
    {"a": [1, {"b": None}]},
    {"fragile", "heavy"},
)


# round trips of typed arguments

offsets = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
aware = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=offsets)  # noqa: DTZ001  # naive on purpose

TYPED: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers(-BEYOND, BEYOND - 1)),
    (str, words),
    (bool, st.booleans()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (None, st.none()),
    (Optional[int], st.none() | st.integers(0, 9)),  # noqa: UP045  # the old spelling is tested
    (int | str | None, st.none() | st.integers(0, 9) | words),
    (datetime, aware),
    (datetime, st.datetimes()),
    (date, st.dates()),
    (timedelta, st.timedeltas()),
    (UUID, st.uuids()),
    (Color, st.sampled_from(Color)),
    (Level, st.sampled_from(Level)),
    (Unit, st.sampled_from(Unit)),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (bytes, st.binary()),
    (Point, st.builds(Point, st.integers(-BEYOND, BEYOND - 1), st.floats(-1e9, 1e9))),
    (Parcel, st.builds(Parcel, st.uuids(), aware, label=st.binary(), extra=st.dictionaries(words, values, max_size=2))),
    (Pair, st.builds(Pair, st.integers(0, 9), words)),
    (list[int], st.lists(st.integers(0, 9))),
    (list[bytes], st.lists(st.binary())),
    (dict[str, UUID], st.dictionaries(words, st.uuids())),
    (dict[int, str], st.dictionaries(st.integers(-99, 99), words)),
    (dict[date, Point], st.dictionaries(st.dates(), st.builds(Point, st.integers(0, 9)))),
    (dict[Color, int], st.dictionaries(st.sampled_from(Color), st.integers(0, 9))),
    (tuple[int, str], st.tuples(st.integers(0, 9), words)),
    (tuple[date, ...], st.lists(st.dates()).map(tuple)),
    (set[str], st.sets(words)),
    (frozenset[UUID], st.frozensets(st.uuids())),
    (set[Point], st.sets(st.builds(Point, st.integers(0, 9)))),
    (Literal["a", "b", 3], st.sampled_from(["a", "b", 3])),
    (Annotated[int, Field(gt=0)], st.integers(1, 99)),
    (Sequence[datetime], st.lists(aware)),
    (Mapping[str, timedelta], st.dictionaries(words, st.timedeltas())),
    (Point | UUID, st.uuids() | st.builds(Point, st.integers(0, 9))),
    (tuple, st.lists(st.integers(0, 9)).map(tuple)),
    (deque[int], st.lists(st.integers(0, 9)).map(deque)),
]


@pytest.mark.parametrize(("hint", "strategy"), TYPED, ids=[f"{n}-{hint}" for n, (hint, _) in enumerate(TYPED)])
@given(data=st.data())
def test_a_typed_argument_arrives_as_it_was_passed(
    hint: Any, strategy: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    value, codec = data.draw(strategy), codec_of(hint)
    found = through(hint, value)
    assert found == value
    assert type(found) is type(value)
    assert codec.decode_result(codec.encode_result(value)) == value
    assert codec.encode_plain(json.loads(codec.encode((value,), {}))) == codec.encode((value,), {})


def test_a_nested_dataclass_arrives_whole() -> None:
    assert through(Parcel, PARCEL) == PARCEL
    assert through(list[Parcel], [PARCEL]) == [PARCEL]


def test_a_nested_model_arrives_whole_by_the_names_of_its_fields() -> None:
    ann = Customer(name="Ann", address=Address(city="Ulm", zip="89073"), born=date(1990, 2, 3))
    assert text_of(Customer, ann) == '{"address":{"city":"Ulm","zip_code":"89073"},"born":"1990-02-03","name":"Ann"}'
    assert through(Customer, ann) == ann
    assert through(dict[str, Customer], {"a": ann}) == {"a": ann}


def test_a_model_may_be_given_as_its_members_by_name_or_by_alias() -> None:
    by_name = {"name": "Ann", "address": {"city": "Ulm", "zip_code": "89073"}}
    by_alias = {"name": "Ann", "address": {"city": "Ulm", "zip": "89073"}}
    assert text_of(Customer, by_name) == text_of(Customer, by_alias)
    assert codec_of(Customer).encode_plain({"x": by_alias}) == codec_of(Customer).encode((by_name,), {})


def test_a_typed_dict_arrives_and_unknown_members_do_not() -> None:
    assert through(Movie, {"title": "M"}) == {"title": "M"}
    assert through(Movie, {"title": "M", "year": 1931}) == {"title": "M", "year": 1931}
    assert "x.director: Extra inputs are not permitted" in refusal(Movie, {"title": "M", "director": "Lang"})
    assert not hasattr(Movie, "__pydantic_config__"), "a user's class must not be changed"


def test_a_number_in_another_guise_becomes_the_declared_type() -> None:
    assert exactly(through(float, 1)) == exactly(1.0)
    assert exactly(through(int, "42")) == exactly(42)
    assert exactly(through(int, True)) == exactly(1)
    assert through(UUID, str(UUID(int=5))) == UUID(int=5)


def test_an_iterable_is_read_once_and_arrives_as_one() -> None:
    assert list(through(Iterable[int], [1, 2])) == [1, 2]


zones = st.sampled_from(
    ["Africa/Monrovia", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Europe/Amsterdam", "Pacific/Apia"]
).map(ZoneInfo)


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=zones),  # noqa: DTZ001  # naive on purpose
    st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone),
)
def test_a_time_in_any_zone_and_at_any_offset_keeps_its_instant(when: datetime, offset: timezone) -> None:
    # Compared in UTC: across zones Python calls a time that comes twice unequal even to itself.
    for value in (when, when.replace(tzinfo=offset)):
        assert through(datetime, value).astimezone(UTC) == value.astimezone(UTC)
        assert through(list[datetime], [value])[0].astimezone(UTC) == value.astimezone(UTC)


def test_a_zone_whose_offset_has_seconds_keeps_the_instant() -> None:
    then = datetime(1900, 1, 1, tzinfo=ZoneInfo("Europe/Paris"))
    assert then.utcoffset() == timedelta(minutes=9, seconds=21)
    assert through(datetime, then) == then
    assert through(Parcel, Parcel(UUID(int=5), then)).sent_at == then
    assert through(list[datetime], [then]) == [then]


def test_a_model_of_bytes_that_are_not_text_is_refused_where_its_own_settings_cannot_write_them() -> None:
    class Blob(BaseModel):
        data: bytes

    assert through(Blob, Blob(data=b"text")) == Blob(data=b"text")
    assert "mail.send: x (of type Blob) cannot be stored as JSON: " in refusal(Blob, Blob(data=b"\xff"))


# defaults, positions, names


def send(order_id: int, copy_to: str = "nobody", *, at: date | None = None) -> None: ...


def test_defaults_are_left_out_and_the_function_fills_them_in() -> None:
    codec = declared(send).codec
    assert codec.encode((42,), {}) == '{"order_id":42}'
    assert codec.decode('{"order_id":42}') == {"order_id": 42}


def test_arguments_by_position_and_by_name_make_the_same_payload() -> None:
    codec = declared(send).codec
    wanted = '{"at":"2024-05-06","copy_to":"ann","order_id":42}'
    at = date(2024, 5, 6)
    assert codec.encode((42, "ann"), {"at": at}) == wanted
    assert codec.encode((42,), {"at": at, "copy_to": "ann"}) == wanted
    assert codec.encode((), {"copy_to": "ann", "at": at, "order_id": 42}) == wanted
    assert codec.encode_plain({"copy_to": "ann", "at": "2024-05-06", "order_id": 42}) == wanted


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "mail.send does not fit its types: order_id: Field required"),
        (("x",), {}, "mail.send does not fit its types: order_id: Input should be a valid integer"),
        ((1.5,), {}, "mail.send does not fit its types: order_id: Input should be a valid integer"),
        ((None,), {}, "mail.send does not fit its types: order_id: Input should be a valid integer"),
        ((1, 2), {}, "mail.send does not fit its types: copy_to: Input should be a valid string"),
        ((1,), {"to": "ann"}, "mail.send does not fit its types: to: Extra inputs are not permitted"),
        ((1, "a", "b"), {}, "mail.send takes 2 positional arguments, 3 were given"),
        ((1,), {"order_id": 2}, "mail.send was given the argument 'order_id' twice"),
        ((1,), {"at": "soon"}, "mail.send does not fit its types: at: Input should be a valid date"),
    ],
)
def test_a_call_that_the_handler_would_not_take_says_which_argument_and_why(
    args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    with pytest.raises(PayloadInvalid) as caught:
        declared(send).codec.encode(args, kwargs)
    assert fit(str(caught.value)).startswith(message)


def test_of_many_faults_some_are_told_and_the_rest_counted() -> None:
    message = refusal(list[int], ["a"] * 1000)
    assert message.count("Input should be a valid integer") == 3
    assert message.endswith("; and 997 more")


def test_the_name_of_an_unknown_argument_is_cut() -> None:
    with pytest.raises(PayloadInvalid, match=r"does not fit its types: aaa.*\.\.\.: Extra inputs"):
        declared(send).codec.encode((1,), {"a" * 10_000: 1})


def test_a_handler_without_parameters_takes_none() -> None:
    codec = declared(lambda: None).codec
    assert codec.encode((), {}) == "{}"
    assert codec.decode("{}") == {}
    with pytest.raises(PayloadInvalid, match=r"takes 0 positional arguments, 1 were given"):
        codec.encode((1,), {})
    with pytest.raises(PayloadInvalid, match=r"x: Extra inputs"):
        codec.encode((), {"x": 1})


# canonical text


@given(values)
def test_any_json_value_arrives_unchanged_in_an_untyped_argument(value: Any) -> None:
    for hint in (Any, object, Any | None):
        assert exactly(through(hint, value)) == exactly(value)
    assert exactly(json.loads(canonical(value))) == exactly(value)


@given(st.dictionaries(words, values, max_size=4), st.lists(values, max_size=4))
def test_any_json_value_arrives_unchanged_in_dicts_and_lists(document: dict[str, Any], items: list[Any]) -> None:
    hints: list[Any] = [ANY_DICT, dict[str, Any], dict[Any, Any], Mapping[str, Any], dict[str, Any] | None]
    for hint in [*hints, Annotated[ANY_DICT, "note"]]:
        assert exactly(through(hint, document)) == exactly(document)
    hints = [ANY_LIST, list[Any], Sequence[Any], list[Any] | dict[str, Any] | None, ANY_DICT | ANY_LIST | str]
    for hint in hints:
        assert exactly(through(hint, items)) == exactly(items)


@given(st.dictionaries(words, values, max_size=6), st.randoms())
def test_the_order_of_members_changes_neither_text_nor_idempotency_key(document: dict[str, Any], random: Any) -> None:
    names = list(document)
    random.shuffle(names)
    shuffled = {name: document[name] for name in names}
    assert canonical(document) == canonical(shuffled)
    for hint in (Any, dict[str, Any], Loose):
        given_, other = (document, shuffled) if hint is not Loose else (Loose(data=document), Loose(data=shuffled))
        keys = {idempotency_key("mail.send", text_of(hint, value)) for value in (given_, other)}
        assert len(keys) == 1


def test_canonical_text_is_sorted_tight_and_not_escaped() -> None:
    assert (
        canonical({"b": [1, 2.5, None, True], "a": {"é": "\u2028\n"}})
        == '{"a":{"é":"\u2028\\n"},"b":[1,2.5,null,true]}'
    )


@pytest.mark.parametrize(
    "hint",
    [
        set[str],
        frozenset[str],
        list[set[str]],
        dict[str, set[str]],
        set[str] | None,
        Loose,
        Parcel,
        RootModel[set[str]],
    ],
)
def test_the_order_of_a_set_changes_nothing(hint: Any) -> None:
    def holding(names: list[str]) -> Any:
        found = set(names)
        if hint in (list[set[str]], dict[str, set[str]]):
            return [found] if hint == list[set[str]] else {"s": found}
        if hint is Loose:
            return Loose(seen=frozenset(found))
        return Parcel(UUID(int=5), PARCEL.sent_at, marks=found) if hint is Parcel else found

    # Two sets with the same members that remember the order they came in, as these collide.
    names = [f"name {n}" for n in range(40)]
    text = text_of(hint, holding(names))
    assert text == text_of(hint, holding(names[::-1]))
    written = [line for line in text.split('"') if line.startswith("name ")]
    assert written == sorted(names)


def test_a_set_is_written_alike_by_every_process() -> None:
    program = "from tests.core.making import text_of\nprint(text_of(set[str], {f'name {n}' for n in range(20)}))"
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


# what an untyped argument may hold


def test_a_tuple_in_an_untyped_place_arrives_as_a_list() -> None:
    assert through(Any, (1, (2, "x"))) == [1, [2, "x"]]
    assert through(dict[str, Any], {"a": (1,)}) == {"a": [1]}


def test_what_is_a_number_or_text_by_birth_arrives_as_that() -> None:
    assert through(Any, [Level.HIGH, Unit.KG, OrderedDict(a=1), defaultdict(int, b=2)]) == [2, "kg", {"a": 1}, {"b": 2}]


UNTYPED_PLACES: list[tuple[Any, Callable[[Any], Any], str]] = [
    (Any, lambda value: value, "x"),
    (Any, lambda value: {"a": [0, value]}, "x.a[1]"),
    (object, lambda value: value, "x"),
    (dict, lambda value: {"a": value}, "x.a"),
    (list, lambda value: [value], "x[0]"),
    (tuple, lambda value: (value,), "x[0]"),
    (dict[str, Any], lambda value: {"a": value}, "x.a"),
    (dict[Any, Any], lambda value: {"a": value}, "x.a"),
    (Mapping[str, Any], lambda value: {"a": value}, "x.a"),
    (dict[int, Any], lambda value: {7: value}, "x[7]"),
    (dict[date, Any], lambda value: {date(2024, 1, 1): value}, "x.datetime.date(2024, 1, 1)"),
    (list[Any], lambda value: [value], "x[0]"),
    (tuple[Any, ...], lambda value: (value,), "x[0]"),
    (list[Any] | None, lambda value: [value], "x[0]"),
    (ANY_DICT | ANY_LIST | str, lambda value: [value], "x[0]"),
    (Annotated[Any, "note"], lambda value: value, "x"),
    (list[dict[str, Any]], lambda value: [{"a": value}], "x[0].a"),
]


@pytest.mark.parametrize(("hint", "put", "place"), UNTYPED_PLACES, ids=[str(hint) for hint, _, _ in UNTYPED_PLACES])
@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        frozenset("a"),
        datetime(2024, 1, 1, tzinfo=UTC),
        UUID(int=5),
        Decimal("1.5"),
        b"bytes",
        Color.RED,
        Point(1),
        Address(city="Ulm", zip="89073"),
        lambda: None,
        threading.Lock(),
        a_generator(),
        itertools.count(),
        Hostile(),
        Hostile,
        deque([1]),
        MappingProxyType({"a": 1}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_not_come_back_as_it_is_is_refused_where_nothing_says_its_type(
    hint: Any, put: Callable[[Any], Any], place: str, value: Any
) -> None:
    message = refusal(hint, put(value))
    assert message.startswith(f"mail.send: {place} is of type {type(value).__name__}, which plain JSON cannot hold")


@pytest.mark.parametrize(("hint", "put", "place"), UNTYPED_PLACES, ids=[str(hint) for hint, _, _ in UNTYPED_PLACES])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused_in_untyped_places(
    hint: Any, put: Callable[[Any], Any], place: str, value: float
) -> None:
    assert refusal(hint, put(value)) == f"mail.send: {place} is {value}: JSON has only finite numbers"


@pytest.mark.parametrize(
    "name",
    [1, 1.5, None, True, (1, 2), date(2024, 1, 1), Color.RED, b"a", Hostile()],
    ids=lambda name: type(name).__name__,
)
@pytest.mark.parametrize("hint", [Any, ANY_DICT, dict[Any, Any], dict[str, Any], list[Any]])
def test_names_that_are_not_text_are_refused_in_untyped_places(hint: Any, name: Any) -> None:
    odd = {"ok": 1, name: 2}
    message = refusal(hint, {"a": odd} if hint == dict[str, Any] else [odd] if hint == list[Any] else odd)
    assert f"of type {type(name).__name__}: JSON names are text" in message
    assert message.startswith("mail.send: x")


def test_names_that_are_not_text_are_refused_also_in_plain_values() -> None:
    with pytest.raises(PayloadInvalid, match=r"metadata: a has the name 1 of type int: JSON names are text"):
        canonical({"a": {1: 2}}, "metadata")


@pytest.mark.parametrize(("hint", "value"), [(list[Any], 5), (dict[str, Any], "x"), (Sequence[Any], None), (dict, [1])])
def test_what_is_no_container_is_refused_where_one_is_declared(hint: Any, value: Any) -> None:
    assert refusal(hint, value).startswith("mail.send does not fit its types: x: Input should be a")


def test_a_set_of_anything_holds_plain_values_only() -> None:
    assert through(set[Any], {1}) == {1}
    assert "x[0] is of type UUID" in refusal(set[Any], {UUID(int=5)})


def test_where_a_union_names_a_type_its_values_are_taken_by_it() -> None:
    assert through(datetime | Any, PARCEL.sent_at) == PARCEL.sent_at
    assert "x is nan" in refusal(datetime | Any, math.nan)
    assert through(tuple[date, Any], (date(2024, 1, 1), "x")) == (date(2024, 1, 1), "x")


@pytest.mark.parametrize(
    ("hint", "value", "place"),
    [
        (Loose, Loose(data=math.nan), "x.data"),
        (Loose, Loose(data={"a": [1, math.inf]}), "x.data.a[1]"),
        (Parcel, Parcel(UUID(int=5), PARCEL.sent_at, extra={"a": math.nan}), "x.extra.a"),
        (list[Loose], [Loose(), Loose(data=(math.nan,))], "x[1].data[0]"),
        (dict[int, Loose], {5: Loose(data=math.nan)}, "x.5.data"),
        (RootModel[dict[str, Any]], RootModel[dict[str, Any]]({"a": math.nan}), "x.a"),
        (tuple[str, Any], ("a", math.nan), "x[1]"),
    ],
)
def test_numbers_that_are_not_finite_are_refused_wherever_a_model_holds_them(hint: Any, value: Any, place: str) -> None:
    assert re_number(refusal(hint, value)) == f"mail.send: {place} is it: JSON has only finite numbers"


def re_number(message: str) -> str:
    return message.replace(" is nan", " is it").replace(" is inf", " is it")


# limits of every value, wherever it stands


def text_place(value: Any) -> list[tuple[Any, Any]]:
    return [(Any, value), (Any, [{"a": value}]), (list[Any], [value]), (Loose, Loose(data=value))]


@pytest.mark.parametrize("number", [BEYOND, -BEYOND - 1, 2**64, 10**400, pytest.param(10**5000, id="5,001 digits")])
def test_whole_numbers_beyond_64_bits_are_refused(number: int) -> None:
    for hint, value in [(int, number), (list[int], [number]), *text_place(number)]:
        message = refusal(hint, value)
        assert message.startswith("mail.send: x")
        assert "is a whole number beyond 64 bits: pass it as text" in message
    assert "is a whole number beyond 64 bits" in result_refusal(Any, number)


@pytest.mark.parametrize("number", [BEYOND - 1, -BEYOND, 2**53 + 1, 0])
def test_whole_numbers_of_64_bits_are_exact(number: int) -> None:
    for hint in (int, Any):
        assert exactly(through(hint, number)) == exactly(number)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused(number: float) -> None:
    wanted = f" is {number}: JSON has only finite numbers"
    assert refusal(float, number) == f"mail.send: x{wanted}"
    assert refusal(list[float], [1.0, number]) == f"mail.send: x[1]{wanted}"
    assert refusal(Point, Point(1, number)) == f"mail.send: x.y{wanted}"
    assert "JSON" in refusal(set[float], {number})


def test_a_nul_character_is_refused_in_values_and_in_names() -> None:
    for hint, value in [(str, "a\x00b"), (list[str], ["\x00"]), *text_place("a\x00")]:
        message = refusal(hint, value)
        assert message.startswith("mail.send: x")
        assert "contains a NUL character" in message
    assert "a name in mail.send: x.a contains a NUL character" in refusal(Any, {"a": {"b\x00": 1}})
    assert "a name in mail.send: x contains a NUL character" in refusal(dict[str, int], {"b\x00": 1})


def test_a_lone_surrogate_is_refused_in_values_and_in_names() -> None:
    for hint, value in [(Any, "a\ud800b"), (Any, ["\udfff"]), (str, "\ud800")]:
        assert "mail.send" in refusal(hint, value)
    assert "mail.send: x.a contains a lone surrogate" in refusal(Any, {"a": "\ud800"})
    assert "a name in mail.send: x contains a lone surrogate" in refusal(Any, {"\ud800": 1})


@pytest.mark.parametrize("text", ["\\u0000", "\\\\u0000", "a\\u0000b", '"\\u0000"', "\\ud800"])
def test_text_that_only_looks_like_an_escape_is_text(text: str) -> None:
    for hint in (str, Any):
        assert through(hint, text) == text
    assert through(dict[str, Any], {text: [text]}) == {text: [text]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "é",
        "👩‍💻",
        "\x1b[2J",
        "\r\n",
        "\ufeff",
        "\u202e",
        "\u2028",
        "<script>",
        "{{7*7}}",
        "1" * 100,
        "{" * 100,
        "[" * 100,
    ],
)
def test_odd_text_arrives_unchanged(text: str) -> None:
    for hint, value in [(str, text), (Any, text), (Any, {text: text}), (list[str], [text])]:
        assert through(hint, value) == value


@pytest.mark.parametrize("name", ["", "$gt", "a.b", "__proto__", "constructor", "$oid", "a" * 10_240])
def test_odd_names_arrive_unchanged(name: str) -> None:
    assert through(Any, {name: 1}) == {name: 1}
    assert through(dict[str, int], {name: 1}) == {name: 1}


def test_64_levels_are_as_deep_as_a_payload_goes() -> None:
    assert canonical(nested(MAX_DEPTH)) == "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert through(Any, nested(MAX_DEPTH - 1)) == nested(MAX_DEPTH - 1)
    assert through(Any, [[1]] * 100) == [[1]] * 100


@pytest.mark.parametrize("levels", [MAX_DEPTH, MAX_DEPTH + 1, 10_000, 100_000])
@pytest.mark.parametrize("hint", [Any, list, list[Any], Loose])
def test_what_is_nested_deeper_is_refused(hint: Any, levels: int) -> None:
    value: Any = nested(levels)
    message = refusal(hint, Loose(data=value) if hint is Loose else value)
    assert message.startswith("mail.send: x")
    assert "is nested more than 64 levels deep" in message or "depth exceeded" in message


def test_depth_counts_dicts_as_well_as_lists_and_values_in_them() -> None:
    value: Any = 1
    for n in range(MAX_DEPTH):
        value = {"a": value} if n % 2 else [value]
    assert canonical(value)
    with pytest.raises(PayloadInvalid, match=r"the value: a is nested more than 64 levels deep"):
        canonical({"a": value})


def test_a_tree_of_models_deeper_than_allowed_is_refused() -> None:
    tree = Tree()
    for _ in range(100):
        tree = Tree(children=[tree])
    assert "x is nested more than 64 levels deep" in refusal(Tree, tree)


@pytest.mark.parametrize("hint", [Any, list, list[Any], dict[str, Any], Loose, Sequence[Any]])
def test_a_value_that_contains_itself_is_refused(hint: Any) -> None:
    items: list[Any] = []
    items.append(items)
    document: dict[str, Any] = {}
    document["self"] = [document]
    value = document if hint == dict[str, Any] else Loose(data=items) if hint is Loose else items
    assert refusal(hint, value).startswith("mail.send: x")
    assert result_refusal(hint, value).startswith("the result of mail.send")


def test_a_model_that_contains_itself_is_refused() -> None:
    tree = Tree()
    tree.children.append(tree)
    assert "cannot be stored as JSON" in refusal(Tree, tree)


def test_256_kib_of_json_are_as_long_as_a_payload_gets() -> None:
    room = MAX_BYTES - len('{"x":""}')
    for hint in (str, Any):
        assert len(codec_of(hint).encode(("a" * room,), {})) == MAX_BYTES
        message = refusal(hint, "a" * (room + 1))
        assert message == (
            "mail.send is 262,145 bytes of JSON, at most 262,144 are allowed:"
            " store large data elsewhere and pass a reference to it"
        )


def test_size_is_counted_in_bytes_and_not_in_characters() -> None:
    room = (MAX_BYTES - len('{"x":""}')) // 4
    assert through(str, "👍" * room)
    assert "bytes of JSON" in refusal(str, "👍" * (room + 1))
    assert canonical("é" * 5, max_bytes=12)
    with pytest.raises(PayloadInvalid, match=r"the value is 14 bytes of JSON, at most 12 are allowed"):
        canonical("é" * 6, max_bytes=12)


def test_100_000_names_are_refused_by_their_size() -> None:
    assert "bytes of JSON" in refusal(Any, {f"name {n}": n for n in range(100_000)})


def test_no_message_holds_the_payload() -> None:
    long = "secret" * 20_000
    for hint, value in [
        (int, long),
        (datetime, long),
        (Literal["a", "b"], long),
        (Color, long),
        (dict[str, int], {long: "x"}),
        (Any, {long: math.nan}),
        (Any, {long: {long + "\x00": 1}}),
        (Any, {1: 2, long: 3}),
        (Any, [long, Hostile()]),
        (Movie, {long: 1}),
        (Customer, {long: long}),
        (Any, long + "\x00"),
    ]:
        assert "secret" * 30 not in refusal(hint, value)


def test_terminals_are_safe_from_the_names_in_a_message() -> None:
    assert r"x.\x1b[2J is nan" in refusal(Any, {"\x1b[2J": math.nan})


# types of the user's own that misbehave


class Picky(BaseModel):
    value: int = 0

    @field_validator("value")
    @classmethod
    def check(cls, value: int) -> int:
        if value == 1:
            raise KeyError("one")
        if value == 2:
            raise ValueError("two\nlines " + "x" * 1000)
        return value

    @field_serializer("value")
    def write(self, value: int) -> int:
        if value == 3:
            raise KeyError
        return value


class Rude(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


class RudeModel(BaseModel):
    value: int

    @field_validator("value")
    @classmethod
    def check(cls, value: int) -> int:
        raise Rude


class Once(dict[str, int]):
    """A container that raises the first time it is read."""

    def items(self) -> Any:
        if self.pop("first", None):
            raise OSError("gone")
        return super().items()


def test_a_validator_that_raises_anything_makes_a_refusal() -> None:
    assert refusal(Picky, {"value": 1}) == "mail.send does not fit its types: KeyError: 'one'"
    assert r"x.value: Value error, two\nlines xxx" in refusal(Picky, {"value": 2})
    assert refusal(RudeModel, {"value": 1}) == "mail.send does not fit its types: Rude"
    with pytest.raises(PayloadInvalid, match=r"does not fit its types: KeyError"):
        codec_of(Picky).decode('{"x":{"value":1}}')


def test_a_serializer_that_raises_anything_makes_a_refusal() -> None:
    assert refusal(Picky, Picky(value=3)).startswith("mail.send: x (of type Picky) cannot be stored as JSON")


def test_a_model_changed_to_what_it_may_not_hold_is_refused() -> None:
    point = Address(city="Ulm", zip="89073")
    point.city = 5  # type: ignore[assignment]  # a wrong type on purpose
    assert "cannot be stored as JSON" in refusal(Address, point)


def test_a_container_that_raises_makes_a_refusal() -> None:
    with pytest.raises(PayloadInvalid, match=r"the value cannot be stored as JSON: OSError: gone"):
        canonical(Once(first=1))


def test_a_key_that_cannot_be_stored_is_named_with_what_failed() -> None:
    @dataclass
    class Odd:
        value: Any

    assert "mail.send: x" in refusal(Odd, Odd(object()))


# secrets


class Login(BaseModel):
    password: SecretStr


class Revealed(BaseModel):
    password: SecretStr

    @field_serializer("password", when_used="json")
    def reveal(self, value: SecretStr) -> str:
        return value.get_secret_value()


@pytest.mark.parametrize(
    ("hint", "value", "place"),
    [
        (SecretStr, SecretStr("hush"), "x"),
        (SecretBytes, SecretBytes(b"hush"), "x"),
        (Secret[int], Secret[int](5), "x"),
        (Login, Login(password=SecretStr("hush")), "x.password"),
        (list[SecretStr], [SecretStr("hush")], "x[0]"),
    ],
)
def test_a_secret_is_refused_rather_than_stored_masked(hint: Any, value: Any, place: str) -> None:
    message = refusal(hint, value)
    assert message.startswith(f"mail.send: {place} is a secret and would be masked: declare it as a windlass.Secret")
    assert "hush" not in message


def test_a_secret_that_is_empty_or_written_on_purpose_arrives() -> None:
    assert through(SecretStr, SecretStr("")) == SecretStr("")
    assert through(Revealed, Revealed(password=SecretStr("hush"))) == Revealed(password=SecretStr("hush"))


# models that write themselves in ways of their own


class Stamped(BaseModel):
    at: datetime
    tags: set[str] = set()
    items: list[float] = []
    names: dict[str, float] = {}

    @field_serializer("at")
    def write_at(self, at: datetime) -> float:
        return at.timestamp()

    @field_serializer("tags", "items", "names")
    def write_tags(self, tags: Iterable[str]) -> str:
        return ",".join(sorted(map(str, tags)))

    @field_validator("tags", mode="before")
    @classmethod
    def read_tags(cls, tags: Any) -> Any:
        return set(tags.split(",")) if isinstance(tags, str) else tags


def test_a_models_own_way_of_writing_is_left_alone() -> None:
    odd = datetime(1900, 1, 1, tzinfo=ZoneInfo("Europe/Paris"))
    value = Stamped(at=odd, tags={"b", "a"}, items=[1.5], names={"c": 2.5})
    assert json.loads(text_of(Stamped, value)) == {
        "at": odd.timestamp(),
        "tags": "a,b",
        "items": "1.5",
        "names": "c",
    }


# plain payloads, as from HTTP


def test_a_plain_payload_is_read_as_json() -> None:
    assert codec_of(bytes).encode_plain({"x": "_wA="}) == '{"x":"_wA="}'
    assert codec_of(bytes).decode('{"x":"_wA="}') == {"x": b"\xff\x00"}
    assert codec_of(set[UUID]).encode_plain({"x": [str(UUID(int=5))]}) == f'{{"x":["{UUID(int=5)}"]}}'


@pytest.mark.parametrize("payload", [None, 5, "x", [], [1], True])
def test_a_plain_payload_is_an_object(payload: Any) -> None:
    with pytest.raises(
        PayloadInvalid, match=rf"the payload of mail.send is a {type(payload).__name__}: expected an object"
    ):
        codec_of(int).encode_plain(payload)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({}, "x: Field required"),
        ({"x": 1, "y": 2}, "y: Extra inputs are not permitted"),
        ({"x": "a"}, "x: Input should be a valid integer"),
        ({"x": 2**63}, "x is a whole number beyond 64 bits"),
        ({"x": math.nan}, "x is nan"),
        ({1: 1}, "has the name 1 of type int"),
        ({"x": UUID(int=5)}, "x is of type UUID"),
        ({"x": nested(100)}, "x is nested more than 64 levels deep"),
    ],
)
def test_a_plain_payload_that_does_not_fit_is_refused(payload: Any, message: str) -> None:
    with pytest.raises(PayloadInvalid) as caught:
        codec_of(int).encode_plain(payload)
    assert message in fit(str(caught.value))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}{}",
        "{} x",
        "// a\n{}",
        "{'a':1}",
        "[1,]",
        "NaN",
        "[Infinity]",
        "-Infinity",
        "\ufeff{}",
        "01",
        "[" * 100_000,
        "1" * 5000,
    ],
)
def test_text_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(PayloadInvalid, match=r"the body is not JSON: ") as caught:
        plain(text, "the body")
    fit(str(caught.value))


@given(values)
def test_plain_reads_what_canonical_writes(value: Any) -> None:
    assert exactly(plain(canonical(value))) == exactly(value)


def test_a_number_too_large_for_a_float_passes_plain_but_not_canonical() -> None:
    with pytest.raises(PayloadInvalid, match=r"is inf"):
        canonical(plain("[1e400]"))


# stored payloads that no longer fit


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ("{}", "mail.send does not fit its types: x: Field required"),
        ('{"x":"a"}', "mail.send does not fit its types: x: Input should be a valid integer"),
        ('{"x":1,"y":2}', "mail.send does not fit its types: y: Extra inputs are not permitted"),
        ("[1]", "mail.send does not fit its types: value: Input should be an object"),
        ("{", "mail.send does not fit its types: value: Invalid JSON"),
        ("", "mail.send does not fit its types: value: Invalid JSON"),
    ],
)
def test_a_stored_payload_that_no_longer_fits_is_refused(stored: str, message: str) -> None:
    with pytest.raises(PayloadInvalid) as caught:
        codec_of(int).decode(stored)
    assert fit(str(caught.value)).startswith(message)


# results


@given(values)
def test_any_json_value_is_a_result_and_comes_back(value: Any) -> None:
    for hint in (Any, object):
        codec = codec_of(hint)
        assert exactly(codec.decode_result(codec.encode_result(value))) == exactly(value)


@pytest.mark.parametrize(
    ("hint", "value", "text"),
    [
        (Any, None, "null"),
        (None, None, "null"),
        (str, "é", '"é"'),
        (int, 5, "5"),
        (float, 5, "5.0"),
        (bool, True, "true"),
        (list, [1], "[1]"),
        (dict, {"b": 1, "a": 2}, '{"a":2,"b":1}'),
        (dict[int, str], {1: "a"}, '{"1":"a"}'),
        (Any, datetime(2024, 1, 1, tzinfo=UTC), '"2024-01-01T00:00:00Z"'),
        (Any, {"id": UUID(int=5), "n": Decimal("1.5")}, f'{{"id":"{UUID(int=5)}","n":"1.5"}}'),
        (Any, Point(1), '{"x":1,"y":0.0}'),
        (Any, [Address(city="Ulm", zip="1")], '[{"city":"Ulm","zip_code":"1"}]'),
        (Any, {"b", "a"}, '["a","b"]'),
        (
            Customer,
            {"name": "A", "address": {"city": "U", "zip": "1"}},
            '{"address":{"city":"U","zip_code":"1"},"born":null,"name":"A"}',
        ),
        (bytes, b"\xff", '"_w=="'),
    ],
)
def test_a_result_is_written_by_its_type_or_else_as_pydantic_writes_it(hint: Any, value: Any, text: str) -> None:
    assert codec_of(hint).encode_result(value) == text


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (Any, threading.Lock(), "the result of mail.send: result (of type lock) cannot be stored as JSON"),
        (Any, [threading.Lock()], "the result of mail.send: result (of type list) cannot be stored as JSON"),
        (Any, lambda: None, "the result of mail.send: result (of type function) cannot be stored as JSON"),
        (Any, Hostile(), "the result of mail.send: result (of type Hostile) cannot be stored as JSON"),
        (Any, a_generator(), "the result of mail.send is of type generator, which plain JSON cannot hold"),
        (Any, [itertools.count()], "the result of mail.send: [0] is of type count, which plain JSON cannot hold"),
        (Any, math.nan, "the result of mail.send is nan: JSON has only finite numbers"),
        (Any, {"a": [math.inf]}, "the result of mail.send: a[0] is inf: JSON has only finite numbers"),
        (Any, Point(1, math.nan), "the result of mail.send: result.y is nan: JSON has only finite numbers"),
        (float, math.nan, "the result of mail.send is nan: JSON has only finite numbers"),
        (Any, {1: 2}, "the result of mail.send has the name 1 of type int: JSON names are text"),
        (Any, {"a": "\x00"}, "the result of mail.send: a contains a NUL character"),
        (str, "\ud800", "the result of mail.send contains a lone surrogate"),
        (int, 2**63, "the result of mail.send is a whole number beyond 64 bits"),
        (int, "x", "the result of mail.send does not fit its types: result: Input should be a valid integer"),
        (None, 5, "the result of mail.send does not fit its types: result: Input should be None"),
        (dict, 5, "the result of mail.send does not fit its types: result: Input should be a valid dictionary"),
        (list, {"a": 1}, "the result of mail.send does not fit its types: result: Input should be a valid list"),
        (Point, {"y": 1.0}, "the result of mail.send does not fit its types: result.x: Field required"),
    ],
)  # fmt: skip
def test_a_result_that_cannot_be_stored_is_refused_with_its_type(hint: Any, value: Any, message: str) -> None:
    assert result_refusal(hint, value).startswith(message)


@pytest.mark.parametrize("hint", [str, Any, list[str]])
def test_50_mb_are_no_result(hint: Any) -> None:
    value = "x" * 50_000_000
    message = result_refusal(hint, [value] if hint == list[str] else value)
    assert message.startswith("the result of mail.send is 50,000,0")
    assert "bytes of JSON" in message


def test_a_stored_result_that_no_longer_fits_is_refused() -> None:
    with pytest.raises(PayloadInvalid, match=r"the result of mail.send does not fit its types: result: Input"):
        codec_of(int).decode_result('"x"')


# how many checks there are


@cache
def a_codec_of_many() -> Any:
    def many(number: int, when: datetime, extra: dict[str, Any], *, note: str | None = None) -> None: ...

    many.__annotations__ = {"number": int, "when": datetime, "extra": dict[str, Any], "note": str | None}
    return declared(many).codec


@given(st.integers(-BEYOND, BEYOND - 1), aware, st.dictionaries(words, values, max_size=3), st.none() | words)
@example(0, PARCEL.sent_at, {"a": {"b": 1}}, None)
def test_typed_and_untyped_arguments_go_together(
    number: int, when: datetime, extra: dict[str, Any], note: str | None
) -> None:
    codec = a_codec_of_many()
    found = codec.decode(codec.encode((number, when, extra), {"note": note}))
    assert found["when"] == when
    assert exactly({**found, "when": None}) == exactly({"number": number, "when": None, "extra": extra, "note": note})


def test_a_type_that_only_a_checker_knows_is_refused() -> None:
    with pytest.raises(HandlerError, match=r"x: NameError: a type it names is not defined"):
        codec_of(list[NOWHERE])
    assert through(Union[int, str], "a") == "a"  # noqa: UP007  # the old spelling is tested
