"""What a handler declares as text: complete enough to enqueue by, and the same for the same declaration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, Field, GetJsonSchemaHandler
from pydantic_core import core_schema

from windlass.core import declared
from windlass.core.declared import Declared, describe
from windlass.core.draft import Options
from windlass.core.handler import Declaration, Handler, declare, declare_instance
from windlass.core.limit import Limit
from windlass.core.rate import Rate
from windlass.core.retry import Retry
from windlass.core.unique import Unique

WHEN = datetime(2030, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EVERYTHING = Options(
    queue="mail",
    priority=10,
    max_attempts=7,
    max_crashes=2,
    timeout=None,
    delay=2 * SECOND,
    expires=30 * SECOND,
    unique=Unique(queued="q:{to}"),
    on_conflict="replace",
    longest_wait=60 * SECOND,
    idempotency_window=90 * SECOND,
    limit=Limit("l:{to}", 3),
    rate=Rate(5, 60 * SECOND, "r:{to}"),
    fair_by="team:{to}",
    user_id="ann",
    entity_name="order",
    entity_id="7",
    correlation_id="c",
    tags=("a", "b"),
    metadata_json='{"a":1}',
    decided=frozenset({"user"}),
)


def send(to: str, copies: int = 1, *, at: datetime | None = None) -> str:
    return to


def made(
    function: Callable[..., Any] = send, options: Options | None = None, policy: Retry | None = None
) -> Declaration:
    return declare(function, name="send", options=options or Options(), policy=policy or Retry())


def test_the_options_are_read_back_as_they_were_declared() -> None:
    for options in (Options(), EVERYTHING, Options(timeout=3 * SECOND, rate=Rate(1)), Options(unique=Unique("a", "b"))):
        assert made(options=options).described().enqueued_with == options


def test_an_instant_is_read_back_in_utc() -> None:
    at = datetime(2030, 5, 1, 12, tzinfo=UTC)
    assert made(options=Options(run_at=at)).described().enqueued_with.run_at == at


def test_the_schemas_say_what_is_taken_and_returned() -> None:
    described = made().described()
    assert described.payload_schema == {
        "additionalProperties": False,
        "properties": {
            "to": {"type": "string"},
            "copies": {"type": "integer"},
            "at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        },
        "required": ["to"],
        "type": "object",
    }
    assert described.result_schema == {"type": "string"}
    assert described.takes_arguments


@dataclass
class Parcel:
    """What is sent."""

    weight: float
    inside: list[Parcel]


class Ship(Handler[Parcel, None], name="ship"):
    async def perform(self, data: Parcel, /) -> None:
        return


def test_the_schema_of_a_class_handler_is_that_of_its_data() -> None:
    described = declare_instance(Ship(), name="ship", options=Options(), policy=Retry()).described()
    assert described.payload_schema is not None
    assert described.payload_schema["$ref"] == "#/$defs/Parcel"
    assert described.payload_schema["$defs"]["Parcel"]["required"] == ["weight", "inside"]
    assert described.result_schema == {"type": "null"}
    assert not described.takes_arguments


def test_the_same_declaration_has_the_same_fingerprint_and_any_other_another() -> None:
    def sent(to: str, copies: int = 1, *, at: datetime | None = None) -> str:
        return at.isoformat() if at else to * copies

    def wider(to: str, copies: int = 1, *, at: datetime | None = None, more: bool = False) -> str:
        return to

    first = made().described()
    assert made(sent).described(version="2").fingerprint == first.fingerprint
    assert len(first.fingerprint) == 64
    others = [
        made(wider),
        made(options=Options(queue="mail")),
        made(options=Options(priority=5)),
        made(policy=Retry(3)),
        made(policy=Retry(5, never=(ValueError,))),
        made(policy=Retry.linear(5, 1)),
    ]
    assert len({first.fingerprint, *[one.described().fingerprint for one in others]}) == 7
    assert Declared("other", first.text).fingerprint != first.fingerprint
    assert Declared("send", first.text) == first


class Colour(Enum):
    RED = "red"


def test_defaults_are_told_where_a_key_may_need_them() -> None:
    def paint(
        colour: Colour = Colour.RED,
        n: int = 3,
        *,
        when: datetime = WHEN,
        team: str | None = None,
        to: str = "x",
    ) -> None:
        return

    keyed = Options(unique=Unique("{colour}:{n}:{when}:{team}"), fair_by="user_id")
    assert made(paint, keyed).described().defaults == {"colour": "red", "n": 3, "team": None}
    assert made(paint).described().defaults == {}
    turns = Options(fair_by="t:{to}", rate=Rate(1, key="{n}"), limit=Limit("{team}"))
    assert made(paint, turns).described().defaults == {"to": "x", "n": 3, "team": None}


class Odd:
    """A type that pydantic can read and JSON Schema cannot tell."""

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(lambda value: value)


class Broken:
    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> core_schema.CoreSchema:
        return core_schema.any_schema()

    @classmethod
    def __get_pydantic_json_schema__(cls, _: Any, __: GetJsonSchemaHandler) -> dict[str, Any]:
        raise RuntimeError("no schema of mine")


def test_a_type_that_cannot_be_told_is_anything() -> None:
    def odd(thing: Odd, to: str) -> None:
        return

    schema = made(odd).described().payload_schema
    assert schema is not None
    assert schema["properties"] == {"thing": {}, "to": {"type": "string"}}


def test_a_schema_that_cannot_be_made_is_left_out() -> None:
    def broken(thing: Broken) -> None:
        return

    assert made(broken).described().payload_schema is None


def test_a_schema_that_is_very_large_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declared, "LARGEST_SCHEMA", 60)
    described = made().described()
    assert described.payload_schema is None
    assert described.result_schema == {"type": "string"}


class Order(BaseModel):
    order_id: int = Field(alias="orderId")
    hook: Any = object()


def test_members_go_by_their_names_and_defaults_that_cannot_be_written_do_no_harm() -> None:
    def place(order: Order) -> None:
        return

    schema = made(place).described().payload_schema
    assert schema is not None
    assert schema["$defs"]["Order"]["required"] == ["order_id"]


def test_describing_is_also_possible_without_a_declaration() -> None:
    handler = made()
    assert describe("send", handler.codec, handler.options, handler.policy, "9") == handler.described("9")
