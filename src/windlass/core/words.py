"""Words: by which names options and filters are given, and what is said of a name that nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.errors import SettingsError
from windlass.core.keys import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ALIASES: Mapping[str, str] = {
    "user_id": "user",
    "correlation_id": "correlation",
    "parent_id": "parent",
    "next_id": "next",
    "worker_id": "worker",
    "run_at": "at",
}
"""what a job's own field is called where it is asked for: either is accepted"""
ENTITY = ("entity_name", "entity_id")
"""the fields of a job that `entity=(name, id)` fills or asks for together"""


def read_words(given: Mapping[str, object], known: Collection[str], of: str) -> dict[str, object]:
    """What was given, by the name of each: an alias by its name, the two halves of an entity as one.

    A word that is not among `known`, one thing called by two of its names, and half an entity are refused with
    SettingsError. `of` says what kind of words these are.
    """
    words: dict[str, object] = {}
    for word, value in given.items():
        name = "entity" if word in ENTITY else ALIASES.get(word, word)
        if name not in known:
            raise unknown_word(word, known, of)
        if name in words and word not in ENTITY:
            raise _twice(name, given)
        words[name] = value
    return words if given.keys().isdisjoint(ENTITY) else {**words, "entity": _whole_entity(given)}


def unknown_word(word: str, known: Collection[str], of: str) -> SettingsError:
    """The refusal of a word, with those that are known and the one that was probably meant."""
    from difflib import get_close_matches  # loaded for typing errors only

    meant = get_close_matches(word, known, n=1)
    hint = f", did you mean {meant[0]}?" if meant else ";"
    return SettingsError(f"{shown(word)} is no {of}{hint} known are {', '.join(known)}")


def _whole_entity(given: Mapping[str, object]) -> tuple[object, object]:
    if "entity" in given:
        raise _twice("entity", given)
    missing = [half for half in ENTITY if half not in given]
    if missing:
        raise SettingsError(f"{missing[0]} is missing: an entity is given by both, or as entity=(name, id)")
    return given["entity_name"], given["entity_id"]


def _twice(name: str, given: Mapping[str, object]) -> SettingsError:
    names = [word for word in given if word in ENTITY or ALIASES.get(word, word) == name]
    return SettingsError(f"{' and '.join(names)} were given, which are names of the same thing: choose one")
