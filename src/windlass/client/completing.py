"""Completing a line that is being typed: how the term at a place of it could go on, and what that means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from windlass.client.grammar import LONGEST, WORDS, Kind, Word, name_of
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_SUGGESTED = 12
_OPERATOR = {Kind.DURATION: ">", Kind.NUMBER: ">=", Kind.VALUE: "."}
_BEGUN = re.compile(r'(?:(?P<word>[A-Za-z_][\w-]*)(?P<operator>>=|<=|[:=<>]))?(?P<value>[^"]*"?[^"]*)')


class Suggestion(NamedTuple):
    """What could stand in a line from `start` to `end`, and what it means."""

    text: str
    start: int
    end: int
    help: str


def suggested(text: str, place: int, known: Mapping[str, Sequence[str]]) -> list[Suggestion]:
    """How the term at this place of a line could go on. `known` has values by word: types, queues, tags, ..."""
    place = max(0, min(place, len(text), LONGEST))
    start = max(text.rfind(mark, 0, place) for mark in " \t\n") + 1
    if text.count('"', 0, place) % 2:  # inside quotes anything goes
        return []
    typed = text[start:place]
    dash = "-" if typed.startswith("-") else ""
    begun = _BEGUN.fullmatch(typed.removeprefix("-"))
    if begun is None or begun["word"] is None:
        return _words(typed.removeprefix("-"), dash, start, place)
    name = name_of(begun["word"])
    word = WORDS.get(name)
    if word is None:
        return []
    first, comma, last = begun["value"].rpartition(",")
    head = f"{dash}{begun['word']}{begun['operator']}{first}{comma}"
    return [
        Suggestion(head + _quoted(value), start, place, help_)
        for value, help_ in _values(word, known.get(name, ()))
        if value.casefold().startswith(last.casefold().removeprefix('"'))
    ][:MOST_SUGGESTED]


def _words(typed: str, dash: str, start: int, place: int) -> list[Suggestion]:
    return [
        Suggestion(f"{dash}{word.name}{_OPERATOR.get(word.kind, ':')}", start, place, f"{word.help}: {word.example}")
        for word in WORDS.values()
        if word.name.startswith(typed.casefold()) and not (dash and word.kind is Kind.ORDER)
    ][:MOST_SUGGESTED]


def _values(word: Word, known: Sequence[str]) -> list[tuple[str, str]]:
    match word.kind:
        case Kind.STATUS:
            return [(status.value, "") for status in Status]
        case Kind.ORDER:
            return [("-created", "newest first"), ("created", "oldest first")]
        case Kind.DURATION:
            return [("30s", ""), ("5m", ""), ("1h", ""), ("1d", "")]
        case Kind.INSTANT:
            return [("now-15m", ""), ("now-1h", ""), ("now-1d", ""), ("now-7d", "")]
        case _:
            return [(value, "") for value in known]


def _quoted(value: str) -> str:
    if re.fullmatch(r'[^\s",]+', value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
