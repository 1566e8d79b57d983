"""The text of a script: what it needs of what scripts share, and nothing that its calls would make for nobody."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from windlass.stores.redis.scripting import SHARED, script, trimmed
from windlass.stores.redis.store import RedisStore

FOLDER = files("windlass.stores.redis") / "scripts"
SCRIPTS = sorted({file.name.removesuffix(".lua") for file in FOLDER.iterdir()} - SHARED)


@pytest.mark.parametrize("name", SCRIPTS)
async def test_every_script_is_one_that_the_server_can_load(store: RedisStore, name: str) -> None:
    text, digest = script(name)
    assert (await store.link.command("SCRIPT", "LOAD", text)).decode() == digest


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_has_no_function_that_nothing_in_it_calls(name: str) -> None:
    words = re.findall(r"\w+", script(name)[0])
    functions = re.findall(r"^local function (\w+)", script(name)[0], re.MULTILINE)
    assert [function for function in functions if words.count(function) < 2] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_names_no_place_of_a_record_that_there_is_not(name: str) -> None:
    text = re.sub(r"'(?:\\.|[^'\\])*'", "''", script(name)[0])
    made = {word for names in re.findall(r"\blocal ([A-Z_, ]+) =", text) for word in names.split(", ")}
    assert set(re.findall(r"(?<![.:\w])[A-Z][A-Z_]+\b", text)) - made <= {"ARGV", "KEYS"}


def test_a_function_is_kept_if_one_that_is_kept_calls_it() -> None:
    text = trimmed(
        "local function inner()\n  return 1\nend\n\n"
        "local function outer()\n  return inner()\nend\n\n"
        "local function other()\n  return inner()\nend\n"
        "return outer()\n"
    )
    assert re.findall(r"function (\w+)", text) == ["inner", "outer"]


def test_a_constant_stands_where_its_name_stood_but_not_in_texts_or_for_fields() -> None:
    text = trimmed("local LIMIT, SEP = 26, '\\31'\nreturn {job[LIMIT], 'LIMIT', SEP .. 'x', job.LIMIT, LIMITS}\n")
    assert text.strip() == "return {job[26], 'LIMIT', '\\31' .. 'x', job.LIMIT, LIMITS}"


def test_what_is_made_anew_in_every_call_keeps_its_name() -> None:
    text = "local DUE = P .. 'due'\nlocal WAITS = {s = true}\nreturn DUE, WAITS"
    assert trimmed(text) == text


def test_comments_are_left_out_and_two_dashes_in_a_text_are_not() -> None:
    assert trimmed("-- what it does\nreturn 'a -- b' -- and why\n").strip() == "return 'a -- b'"
