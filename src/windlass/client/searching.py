"""Searching: the words by which jobs are looked for, and the filter that comes of them. Nothing is ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

from windlass.client.options import as_entity
from windlass.core.draft import check_id
from windlass.core.errors import SettingsError
from windlass.core.keys import check_key, shown
from windlass.core.status import Status
from windlass.core.words import read_words
from windlass.stores.contract import Filter

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class _Words(TypedDict, total=False):
    """The words of every search."""

    type: str
    queue: str
    user: str
    entity: tuple[str, str | int]
    correlation: str
    schedule: str
    parent: str
    next: str
    """those that this job awaits"""


class _Aliases(TypedDict, total=False):
    """The names of a job's own fields for the same."""

    user_id: str
    entity_name: str
    entity_id: str | int
    correlation_id: str
    parent_id: str
    next_id: str


class Search(_Words, _Aliases, total=False):
    """Which jobs; every field given must match."""

    status: Status | str


class DeadSearch(_Words, _Aliases, total=False):
    """Which failed jobs; every field given must match."""

    fingerprint: str


SEARCH_WORDS = ("status", *_Words.__annotations__)
DEAD_WORDS = ("fingerprint", *_Words.__annotations__)


def words_of(search: Search | DeadSearch, known: Collection[str] = SEARCH_WORDS) -> dict[str, object]:
    """What is searched by, each by its name; a word that is not known, and one without a value, are refused.

    None is no value: who has no user in hand must not be given the jobs of all users.
    """
    words = read_words(cast("Mapping[str, object]", search), known, "search word")
    for name, value in words.items():
        if value is None:
            raise SettingsError(f"{name} is None, which is no filter: leave the word out to search without it")
    return words


def filter_of(search: Search) -> Filter:
    """The filter that a search means."""
    words = words_of(search)
    entity_name, entity_id = as_entity(words.get("entity"))
    return Filter(
        status=_status(words.get("status")),
        type=_name(words, "type"),
        queue=_name(words, "queue"),
        user_id=_name(words, "user"),
        entity_name=entity_name,
        entity_id=entity_id,
        correlation_id=_name(words, "correlation"),
        schedule=_name(words, "schedule"),
        parent_id=_id(words.get("parent")),
        next_id=_id(words.get("next")),
    )


def _status(value: object) -> Status | None:
    if value is None:
        return None
    if isinstance(value, str) and value in Status.__members__.values():
        return Status(value)
    raise SettingsError(f"status is {shown(value)}: expected one of {', '.join(Status)}")


def _name(words: Mapping[str, object], of: str) -> str | None:
    # As text, like the option of that name: a number enqueued as user=7 is found by user=7.
    return check_key(str(words[of]), of) if of in words else None


def _id(value: object) -> str | None:
    return None if value is None else check_id(value)
