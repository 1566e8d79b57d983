from __future__ import annotations

import pytest

from windlass.core.errors import PayloadInvalid, SettingsError
from windlass.core.grants import ANYTHING, LARGEST, MOST, Grants


def test_nothing_said_allows_everything() -> None:
    assert Grants().allow(type_="any", queue="any")
    assert (Grants().text(), Grants.of_text(None), Grants.made()) == (None, ANYTHING, ANYTHING)
    assert Grants().attributes == {}


@pytest.mark.parametrize(
    ("type_", "queue", "allowed"),
    [
        ("mail.send", "mail", True),
        ("mail.send", "other", False),
        ("mailbox", "mail", False),
        ("mail.", "mail", True),
        ("import", "mail", True),
        ("import.x", "mail", False),
    ],
)
def test_names_and_beginnings_of_names_are_allowed(type_: str, queue: str, allowed: bool) -> None:
    grants = Grants.made(["mail"], ["mail.*", "import"])
    assert grants.allow(type_=type_, queue=queue) is allowed


def test_no_name_allows_nothing() -> None:
    assert not Grants.made([]).allow(type_="a", queue="b")


def test_they_come_back_from_their_text() -> None:
    grants = Grants.made(["b", "a"], None, {"premium": True})
    assert grants.text() == '{"attributes":{"premium":true},"queues":["a","b"]}'
    assert Grants.of_text(grants.text()).attributes == {"premium": True}
    assert Grants.of_text(grants.text()).queues == frozenset({"a", "b"})
    assert Grants.of_text(Grants.made(types=[]).text()).types == frozenset()


def test_what_cannot_be_kept_is_refused() -> None:
    with pytest.raises(SettingsError, match="expected several names"):
        Grants.made("mail")
    with pytest.raises(SettingsError, match="at most 100"):
        Grants.made(types=[str(n) for n in range(MOST + 1)])
    with pytest.raises(SettingsError, match="the queue is ''"):
        Grants.made([""])
    with pytest.raises(PayloadInvalid, match="the attributes"):
        Grants.made(attributes={"a": "x" * LARGEST})
