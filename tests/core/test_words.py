from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import SettingsError
from windlass.core.words import ALIASES, read_words, unknown_word

KNOWN = ("status", "queue", "user", "entity", "correlation", "parent", "next", "worker", "at")


def test_each_word_is_read_by_its_name() -> None:
    assert read_words({"user": "ada", "queue": "mail"}, KNOWN, "word") == {"user": "ada", "queue": "mail"}
    for alias, name in ALIASES.items():
        assert read_words({alias: "x"}, KNOWN, "word") == {name: "x"}
    assert read_words({"entity_id": 7, "entity_name": "order"}, KNOWN, "word") == {"entity": ("order", 7)}
    assert read_words({}, KNOWN, "word") == {}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"uesr": 1}, "'uesr' is no search word, did you mean user[?] known are status, queue"),
        ({"colour": 1}, "'colour' is no search word; known are status"),
        ({"user": 1, "user_id": 1}, "user and user_id were given, which are names of the same thing"),
        ({"user_id": 1, "user": 2}, "user_id and user were given"),
        ({"entity": 1, "entity_name": 2, "entity_id": 3}, "entity and entity_name and entity_id were given"),
        ({"entity_id": 3, "entity": 1, "entity_name": 2}, "were given, which are names of the same thing"),
        ({"entity_name": "order"}, "entity_id is missing: an entity is given by both"),
        ({"entity_id": 1}, "entity_name is missing"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: dict[str, object], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        read_words(words, KNOWN, "search word")


def test_an_alias_of_a_word_that_is_not_known_here_is_refused() -> None:
    for words in ({"parent_id": 1}, {"entity_name": "order", "entity_id": 1}):
        with pytest.raises(SettingsError, match="is no option"):
            read_words(words, ("queue", "user"), "option")


@given(st.text(max_size=300))
def test_a_word_that_nobody_knows_is_never_ignored(word: str) -> None:
    accepted = {*KNOWN, *ALIASES, "entity_name", "entity_id"}
    if word not in accepted:
        with pytest.raises(SettingsError) as refused:
            read_words({word: 1}, KNOWN, "search word")
        assert len(str(refused.value)) < 300


def test_the_refusal_names_what_is_known() -> None:
    assert str(unknown_word("quue", ("queue", "type"), "option")) == (
        "'quue' is no option, did you mean queue? known are queue, type"
    )
