from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from windlass.core.draft import Options
from windlass.core.errors import HandlerError, PayloadInvalid, PayloadUnfit
from windlass.core.handler import Declaration, Handler, declare, declare_instance
from windlass.core.retry import Retry
from windlass.core.upgrading import make_upgrade


class First(TypedDict):
    to: str


@dataclass
class Second:
    address: str
    copies: int


class Third(BaseModel, extra="forbid"):
    address: str
    day: str


def send(address: str, *, copies: int, on: date | None = None) -> None: ...


@pytest.fixture
def declared() -> Declaration:
    return declare(send, name="send", options=Options(), policy=Retry())


def upgrade(declaration: Declaration, from_: Any, function: Callable[[Any], Any]) -> None:
    declaration.upgrades.append(make_upgrade(declaration.name, from_, function))


def test_what_fits_is_read_as_it_is(declared: Declaration) -> None:
    upgrade(declared, Second, lambda old: pytest.fail("it fits"))
    assert declared.arguments('{"address":"a","copies":2}') == {"address": "a", "copies": 2}


def test_what_does_not_fit_is_told_apart_from_other_faults(declared: Declaration) -> None:
    with pytest.raises(PayloadUnfit, match="copies"):
        declared.arguments('{"address":"a"}')
    with pytest.raises(PayloadUnfit):
        declared.arguments("not even JSON")
    assert issubclass(PayloadUnfit, PayloadInvalid)


def test_an_older_form_is_upgraded(declared: Declaration) -> None:
    upgrade(declared, First, lambda old: {"address": old["to"], "copies": 1})
    assert declared.arguments('{"to":"a"}') == {"address": "a", "copies": 1}
    with pytest.raises(PayloadUnfit):
        declared.arguments('{"to":"a","more":1}')


def test_an_upgrade_may_give_typed_values(declared: Declaration) -> None:
    upgrade(declared, Third, lambda old: {"address": old.address, "copies": 1, "on": date.fromisoformat(old.day)})
    assert declared.arguments('{"address":"a","day":"2026-01-02"}')["on"] == date(2026, 1, 2)


def test_upgrades_go_from_form_to_form_in_whatever_order_they_were_declared(declared: Declaration) -> None:
    upgrade(declared, Third, lambda old: {"address": old.address, "copies": 7})
    upgrade(declared, First, lambda old: {"address": old["to"], "day": "2026-01-02"})
    assert declared.arguments('{"to":"a"}') == {"address": "a", "copies": 7}


def test_upgrades_that_lead_nowhere_end(declared: Declaration) -> None:
    upgrade(declared, First, lambda old: {"to": old["to"]})
    with pytest.raises(PayloadUnfit):
        declared.arguments('{"to":"a"}')


def test_an_upgrade_that_raises_names_itself(declared: Declaration) -> None:
    def broken(old: Any) -> Any:
        raise LookupError("no such address")

    upgrade(declared, First, broken)
    with pytest.raises(PayloadUnfit, match="the upgrade of send from First raised LookupError: no such address"):
        declared.arguments('{"to":"a"}')


def test_an_upgrade_is_a_plain_function() -> None:
    async def later(old: Any) -> Any: ...

    with pytest.raises(HandlerError, match="async def"):
        make_upgrade("send", First, later)


def test_the_upgrade_of_a_class_handler_gives_its_data() -> None:
    class Sending(Handler[Second, None]):
        def perform(self, data: Second) -> None: ...

    declaration = declare_instance(Sending(), name="send", options=Options(), policy=Retry())
    upgrade(declaration, First, lambda old: Second(old["to"], 3))
    assert declaration.arguments('{"to":"a"}') == {"data": Second("a", 3)}
