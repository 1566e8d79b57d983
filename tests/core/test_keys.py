from __future__ import annotations

from string import Formatter
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from windlass.core.errors import PayloadInvalid, SettingsError
from windlass.core.keys import LONGEST_KEY, LONGEST_NAME, Template, check_key, check_name, shown, template

HUGE = pytest.param(10**5000, id="5,001 digits")

printable = st.text(st.characters(exclude_categories=["C", "Zl", "Zp", "Zs"]), min_size=1, max_size=LONGEST_NAME)

UNPRINTABLE = [
    "a\x00",
    "a\nb",
    "a\r\nSet-Cookie: a=b",
    "\x1b[2J",
    "\ud800",
    "a\u2028b",
    "a\u202eb",
    "a\u200bb",
    "\ufeffa",
]


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


# names and keys


@given(printable)
def test_printable_names_are_kept_as_they_are(name: str) -> None:
    assert check_name(name, "the queue") == name
    assert check_key(name, "the key") == name


def test_a_name_may_have_spaces_inside_and_a_key_also_around() -> None:
    assert check_name("bulk mail", "the queue") == "bulk mail"
    assert check_key(" a ", "the key") == " a "


def test_names_and_keys_are_as_long_as_they_may_be() -> None:
    assert check_name("a" * LONGEST_NAME, "the queue")
    assert check_key("é" * LONGEST_KEY, "the key")


@pytest.mark.parametrize("name", ["", " ", " a", "a ", "a" * (LONGEST_NAME + 1), *UNPRINTABLE, None, 5, b"a", ["a"]])
def test_a_name_that_is_empty_long_padded_or_unprintable_is_refused(name: Any) -> None:
    with pytest.raises(SettingsError, match=r"the queue is .*: expected 1 to 200 printable characters") as caught:
        check_name(name, "the queue")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("key", ["", "a" * (LONGEST_KEY + 1), *UNPRINTABLE, None, 5, b"a", ["a"]])
def test_a_key_that_is_empty_long_or_unprintable_is_refused(key: Any) -> None:
    with pytest.raises(SettingsError, match=r"the key is .*: expected text of 1 to 512 printable characters") as caught:
        check_key(key, "the key")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


# what a message shows


def test_short_values_are_shown_as_they_are_written() -> None:
    assert shown("a") == "'a'"
    assert shown(5) == "5"
    assert shown("a\x1b[2J") == r"'a\x1b[2J'"


def test_long_values_are_cut() -> None:
    assert shown("a" * 10_000_000) == "'" + "a" * 76 + "..."
    assert shown(list(range(10_000)), 10) == "[0, 1, ..."


@pytest.mark.parametrize("value", [Hostile(), [Hostile()], HUGE])
def test_a_value_that_cannot_be_shown_is_shown_by_its_type(value: object) -> None:
    assert shown(value) == f"<{type(value).__name__}>"


@given(st.text() | st.integers() | st.lists(st.text()), st.integers(10, 100))
def test_what_is_shown_is_one_printable_line_of_the_length_asked_for(value: object, longest: int) -> None:
    text = shown(value, longest)
    assert len(text) <= longest
    assert text.isprintable()


# templates


def test_a_template_is_filled_from_the_arguments_by_name() -> None:
    found = Template("file:{project}:{file}")
    assert found.names == {"project", "file"}
    assert found.fill({"project": "p1", "file": 7, "other": None}) == "file:p1:7"


def test_a_template_without_places_is_its_text() -> None:
    assert Template("one at a time").names == frozenset()
    assert Template("one at a time").fill({}) == "one at a time"


def test_doubled_braces_are_braces() -> None:
    assert Template("{{{a}}}").fill({"a": "x"}) == "{x}"


@pytest.mark.parametrize(
    ("value", "text"), [("x", "x"), (42, "42"), (2.5, "2.5"), (True, "True"), (-(2**63), str(-(2**63)))]
)
def test_text_and_numbers_fill_a_place(value: object, text: str) -> None:
    assert Template("k:{a}").fill({"a": value}) == f"k:{text}"


def test_braces_in_an_argument_are_only_text() -> None:
    assert Template("k:{a}").fill({"a": "{b}{0.__class__}", "b": "secret"}) == "k:{b}{0.__class__}"


@pytest.mark.parametrize("value", [None, ["x"], {"x": 1}, ("x",), b"x", object()])
def test_a_place_filled_with_anything_else_is_refused(value: object) -> None:
    with pytest.raises(PayloadInvalid, match=rf"'a' as text or a number, found {type(value).__name__}"):
        Template("k:{a}").fill({"a": value})


def test_a_place_without_its_argument_is_refused() -> None:
    with pytest.raises(PayloadInvalid, match=r"needs the argument 'a' as text or a number, found no such argument"):
        Template("k:{a}").fill({"b": 1})


@pytest.mark.parametrize("value", ["", "x" * 600, "a\x00", "a\nb", "\ud800"])
def test_an_argument_that_makes_no_key_is_refused(value: str) -> None:
    with pytest.raises(SettingsError, match=r"the key made from '{a}' is") as caught:
        Template("{a}").fill({"a": value})
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{}", "{}"),
        ("{0}", "{0}"),
        ("{a.b}", "{a.b}"),
        ("{a.__class__}", "{a.__class__}"),
        ("{a[0]}", "{a[0]}"),
        ("{a!r}", "{a!r}"),
        ("{a:>10}", "{a:>10}"),
        ("{a!s:{b}}", "{a!s:{b}}"),
        ("{a b}", "{a b}"),
        ("{a-b}", "{a-b}"),
    ],
)
def test_only_plain_names_are_places(text: str, place: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Template(text)
    assert f"has the place {place}: only parameter names are allowed" in str(caught.value)


@pytest.mark.parametrize("text", ["{", "}", "{a", "a}", "{a}}", "{{a}", "{a!}", "{a[}"])
def test_a_template_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"the key template .* (cannot be read|only parameter names)"):
        Template(text)


@pytest.mark.parametrize("text", ["", "a" * (LONGEST_KEY + 1), "a\x00{b}", None])
def test_a_template_is_a_key_itself(text: Any) -> None:
    with pytest.raises(SettingsError, match=r"the key template is"):
        Template(text)


@given(st.text(st.sampled_from("ab{}.[]!:_ 0"), max_size=12), st.text(st.sampled_from("xyz{}"), min_size=1, max_size=5))
def test_a_template_that_is_accepted_can_always_be_filled(text: str, value: str) -> None:
    try:
        found = Template(text)
    except SettingsError:
        assume(False)
        raise
    arguments = dict.fromkeys(found.names, value)
    assert found.fill(arguments) == Formatter().vformat(text, (), arguments)


def test_a_template_is_read_once() -> None:
    assert template("k:{a}") is template("k:{a}")
    assert template("k:{a}") == Template("k:{a}")
    assert repr(Template("k:{a}")) == "Template(text='k:{a}')"
