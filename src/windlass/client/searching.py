"""Searching: the words by which jobs are looked for, and the filter that comes of them. Nothing is ignored."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypedDict, cast

from windlass.client.grammar import absolute, understood
from windlass.client.options import as_entity
from windlass.core.draft import check_id
from windlass.core.errors import SettingsError
from windlass.core.fingerprint import fingerprint, is_fingerprint
from windlass.core.keys import check_key, check_name, shown
from windlass.core.status import Status
from windlass.core.words import read_words
from windlass.stores.contract import Filter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from windlass.client.grammar import Query
    from windlass.core.job import Job


class _Words(TypedDict, total=False):
    """The words of every search. An index serves those of the first part, and the first two instants of the third
    narrow down what is looked at; for the others jobs are looked at one by one, so many in a call.
    """

    type: str
    """a type, or with a star at its end all that begin so: `import.*`"""
    queue: str
    user: str
    entity: tuple[str, str | int]
    correlation: str
    schedule: str
    parent: str
    next: str
    """those that this job awaits"""
    unique_key: str
    """the one that holds this key now"""

    tags: str | Iterable[str]
    """those with this tag, or with all of these"""
    worker: str
    """those that it runs, or ran last"""
    attempts_at_least: int
    attempts_at_most: int

    created_since: datetime
    created_before: datetime
    finished_since: datetime
    finished_before: datetime
    fingerprint: str
    """failed jobs that failed so; see `app.dead_letters`"""
    where: str
    """a line as people type it, `status:failed ran>5s -tag:test`; see `docs/searching.md`"""


class _Aliases(TypedDict, total=False):
    """The names of a job's own fields for the same."""

    user_id: str
    entity_name: str
    entity_id: str | int
    correlation_id: str
    parent_id: str
    next_id: str
    worker_id: str


class Search(_Words, _Aliases, total=False):
    """Which jobs; every field given must match."""

    status: Status | str | Iterable[Status | str]
    """one, or any of several"""


class DeadSearch(_Words, _Aliases, total=False):
    """Which failed jobs; every field given must match."""


SEARCH_WORDS = ("status", *_Words.__annotations__)
DEAD_WORDS = ("fingerprint", *(word for word in _Words.__annotations__ if word != "fingerprint"))


def words_of(search: Search | DeadSearch, known: Collection[str] = SEARCH_WORDS) -> dict[str, object]:
    """What is searched by, each by its name; a word that is not known, and one without a value, are refused.

    None is no value: code that lost its user must not be given the jobs of all users.
    """
    words = read_words(cast("Mapping[str, object]", search), known, "search word")
    for name, value in words.items():
        if value is None:
            raise SettingsError(f"{name} is None, which is no filter: leave the word out to search without it")
    return words


def filter_of(search: Search) -> Filter:
    """The filter that a search means, but for what no store knows; see `fits_of`."""
    words = with_line(words_of(search))
    entity_name, entity_id = as_entity(words.get("entity"))
    type_, prefix = _type(words)
    return Filter(
        status=_status(words),
        type=type_,
        type_prefix=prefix,
        queue=_name(words, "queue"),
        user_id=_name(words, "user"),
        entity_name=entity_name,
        entity_id=entity_id,
        correlation_id=_name(words, "correlation"),
        schedule=_name(words, "schedule"),
        parent_id=_id(words.get("parent")),
        next_id=_id(words.get("next")),
        unique_key=_name(words, "unique_key"),
        worker_id=_name(words, "worker"),
        tags=_tags(words.get("tags")),
        attempts_at_least=_number(words, "attempts_at_least"),
        attempts_at_most=_number(words, "attempts_at_most"),
        created_since=_instant(words, "created_since"),
        created_before=_instant(words, "created_before"),
        finished_since=_instant(words, "finished_since"),
        finished_before=_instant(words, "finished_before"),
    )


def with_line(words: Mapping[str, object]) -> Mapping[str, object]:
    """The words of a search with those that its line stands for; what both name is refused, but for tags and status."""
    line = _line(words)
    if line is None:
        return words
    given = {**words}
    del given["where"]
    for name, value in line.search.items():
        if name not in given:
            given[name] = value
        elif name == "tags":
            given[name] = [*_several(given[name], name), *value]
        elif name == "status":
            given[name] = _both(given, value)
        else:
            raise SettingsError(f"{name} is given beside a line that names it, too: leave it out of one of them")
    return given


def narrows(words: Mapping[str, object]) -> bool:
    """Whether any of these words leaves a job out; a line may hold nothing but an order."""
    line = _line(words)
    return bool(words) if line is None else len(words) > 1 or bool(line.search or line.tests)


def fits_of(search: Search | DeadSearch) -> Callable[[Job], bool] | None:
    """What no store can search by, as a test of single jobs; None where the filter says it all."""
    wanted, line = print_of(search), _line(search)
    if line is not None and not line.tests:
        line = None
    if wanted is None:
        return None if line is None else line.fits
    return lambda job: fingerprint(job.type, job.error) == wanted and (line is None or line.fits(job))


def oldest_first_of(search: Search | DeadSearch) -> bool:
    """Whether the line asks for the oldest jobs first."""
    line = _line(search)
    return line is not None and bool(line.oldest_first)


def settled(search: Search, at: datetime) -> Search:
    """The same search, with ages and `now` in its line counted from this instant, also when it is read later."""
    if "where" not in search:
        return search
    return {**search, "where": absolute(str(search["where"]), at)}


def _both(words: Mapping[str, object], others: Iterable[Status]) -> list[Status]:
    """The statuses that are searched for by the word and by the line."""
    wanted = _status(words)
    here = {wanted} if isinstance(wanted, Status) else wanted or frozenset[Status]()
    if found := sorted(here.intersection(others)):
        return found
    raise SettingsError(
        f"status is {' or '.join(sorted(here))} beside a line with {' or '.join(others)}: no job is in both"
    )


def _line(words: Mapping[str, object] | Search | DeadSearch) -> Query | None:
    text = words.get("where")
    if text is None:
        return None
    if not isinstance(text, str):
        raise SettingsError(f"where is {shown(text)}: expected a line of text, as in 'status:failed ran>5s'")
    return understood(text).checked()


def print_of(search: Search | DeadSearch) -> str | None:
    """The fingerprint that is asked for, checked."""
    value = search.get("fingerprint")
    if value is not None and not is_fingerprint(value):
        raise SettingsError(
            f"fingerprint is {shown(value)}: expected twelve hexadecimal digits, as app.dead_letters.groups() and"
            ' "windlass dead" show them'
        )
    return value


def _status(words: Mapping[str, object]) -> Status | frozenset[Status] | None:
    value = words.get("status")
    failed_only = "fingerprint" in words
    if value is None:
        return Status.FAILED if failed_only else None
    several = _several(value, "status")
    unknown = [one for one in several if one not in Status.__members__.values()]
    if unknown or not several:
        found = unknown[0] if unknown else value
        raise SettingsError(f"status is {shown(found)}: expected one or several of {', '.join(Status)}")
    statuses = frozenset(Status(str(one)) for one in several)
    if failed_only and statuses != frozenset({Status.FAILED}):
        raise SettingsError("only failed jobs have a fingerprint: leave the status out")
    return next(iter(statuses)) if len(statuses) == 1 else statuses


def _type(words: Mapping[str, object]) -> tuple[str | None, str | None]:
    """The type, or what those asked for begin with."""
    type_ = _name(words, "type")
    if type_ is None or not type_.endswith("*"):
        return type_, None
    if type_ == "*":
        raise SettingsError("type is '*', which is every type: leave the word out to search without it")
    return None, type_[:-1]


def _tags(value: object) -> frozenset[str]:
    if value is None:
        return frozenset()
    tags = _several(value, "tags")
    if not tags:
        raise SettingsError("tags is empty, which is no filter: leave the word out to search without it")
    return frozenset(check_name(tag, "a tag") for tag in tags)


def _several(value: object, of: str) -> list[object]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Iterable):
        return list(cast("Iterable[object]", value))
    raise SettingsError(f"{of} is {shown(value)}: expected text, or several")


def _number(words: Mapping[str, object], of: str) -> int | None:
    value = words.get(of)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise SettingsError(f"{of} is {shown(value)}: expected a whole number from 0")
    return value


def _instant(words: Mapping[str, object], of: str) -> datetime | None:
    value = words.get(of)
    if value is None:
        return None
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise SettingsError(f"{of} is {shown(value)}: expected a datetime with a time zone, as datetime.now(UTC)")
    try:
        at = value.astimezone(UTC)
        # Stores count in milliseconds: the first of them that is not before it.
        return at + timedelta(microseconds=-at.microsecond % 1000)
    except OverflowError:
        raise SettingsError(f"{of} is {shown(value)}: expected a time between the years 1 and 9999 in UTC") from None


def _name(words: Mapping[str, object], of: str) -> str | None:
    # As text, like the option of that name: a number enqueued as user=7 is found by user=7.
    return check_key(str(words[of]), of) if of in words else None


def _id(value: object) -> str | None:
    return None if value is None else check_id(value)
