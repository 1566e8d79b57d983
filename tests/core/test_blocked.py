from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.blocked import BlockedBy, Kind, lines
from windlass.core.errors import StoreError

KEYS = st.text() | st.sampled_from(["", ":", "a:b", "limit:a", "::", "file:{project}"])


def test_the_stored_words_are_these() -> None:
    assert [BlockedBy(kind, "k").text for kind in Kind] == [
        "limit:k",
        "unique:k",
        "rate:k",
        "flow:k",
        "payload:k",
        "signal:k",
    ]


@given(st.sampled_from(Kind), KEYS)
def test_a_value_survives_its_text_whatever_its_key(kind: Kind, key: str) -> None:
    by = BlockedBy(kind, key)
    assert BlockedBy.of(by.text) == by
    assert BlockedBy.of(by.text).text == by.text
    assert [other for other in Kind if other.blocks(by.text)] == [kind]


@given(st.sampled_from(Kind), KEYS)
def test_the_texts_of_a_kind_stand_between_its_prefix_and_its_end(kind: Kind, key: str) -> None:
    assert kind.prefix <= BlockedBy(kind, key).text < kind.end
    assert all(not kind.prefix <= other.prefix < kind.end for other in Kind if other is not kind)


def test_nothing_is_of_no_kind() -> None:
    assert not any(kind.blocks(None) or kind.blocks("") for kind in Kind)


@pytest.mark.parametrize("text", ["", "limit", "tide:high", "Limit:a", " limit:a", "limits:a", ":a"])
def test_a_text_that_no_kind_begins_is_refused_by_name(text: str) -> None:
    with pytest.raises(StoreError, match=f"blocked by {text!r}: expected limit:, unique:, .* and a key"):
        BlockedBy.of(text)


def test_lines_are_those_of_the_keys_that_there_are() -> None:
    assert lines() == []
    assert lines(limit="a:b", flow="") == ["limit:a:b", "flow:"]
    assert lines(limit="l", unique="u", rate="r", flow="f") == ["limit:l", "unique:u", "rate:r", "flow:f"]
