"""Searching in one line: `status:failed queue:mail payload.user.id:42 ran>5s -tag:test`, and what each term means.

A term is a word, an operator and a value, or text alone; a dash before it turns it round. What a store can search for
becomes words of a search, the rest is tested job by job. A term that cannot be understood is told, with its place and
what was expected, and is never ignored. Nothing here asks a store.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from windlass.client.testing import BY_NUMBER, BY_SPAN, BY_TEXT, mentions, payload_is
from windlass.core.errors import SettingsError
from windlass.core.fingerprint import fingerprint, is_fingerprint
from windlass.core.keys import shown
from windlass.core.status import Status
from windlass.core.wording import duration
from windlass.core.words import unknown_word

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from windlass.core.job import Job

Fits: TypeAlias = "Callable[[Job, datetime], bool]"
"""whether a job is meant, at this moment"""
LONGEST = 2_000
"""characters of a line"""
MOST_TERMS = 50


class How(StrEnum):
    """What a term costs."""

    INDEX = "index"
    """the store finds what matches without a look at the rest"""
    BOUND = "bound"
    """it narrows down which jobs are looked at"""
    WALK = "walk"
    """jobs are looked at one by one, so many in a call"""


class Kind(StrEnum):
    """What a word takes."""

    STATUS = "status"
    TEXT = "text"
    NUMBER = "number"
    DURATION = "duration"
    INSTANT = "time"
    ORDER = "order"
    VALUE = "value"


class Word(NamedTuple):
    """A word that terms begin with."""

    name: str
    kind: Kind
    how: How
    help: str
    example: str


WORDS: Mapping[str, Word] = {
    word.name: word
    for word in (
        Word("status", Kind.STATUS, How.INDEX, "in this status, or one of several", "status:failed,retrying"),
        Word("type", Kind.TEXT, How.INDEX, "of this type; with a star, all that begin so", "type:import.*"),
        Word("queue", Kind.TEXT, How.INDEX, "of this queue", "queue:mail"),
        Word("user", Kind.TEXT, How.INDEX, "of this user", "user:ada"),
        Word("entity", Kind.TEXT, How.INDEX, "about this thing, by name and id", "entity:order:42"),
        Word("correlation", Kind.TEXT, How.INDEX, "that belong together", "correlation:req-81"),
        Word("schedule", Kind.TEXT, How.INDEX, "made by this schedule", "schedule:nightly"),
        Word("parent", Kind.TEXT, How.INDEX, "enqueued by this job", "parent:0190a3c4-5d6e-7f80-9123-456789abcdef"),
        Word("next", Kind.TEXT, How.INDEX, "that this job awaits", "next:0190a3c4-5d6e-7f80-9123-456789abcdef"),
        Word("unique", Kind.TEXT, How.INDEX, "that holds this unique key now", "unique:receipt:42"),
        Word("id", Kind.TEXT, How.BOUND, "with this id, or one that begins so", "id:0190a3c4"),
        Word("after", Kind.INSTANT, How.BOUND, "created from then on", "after:2026-11-01"),
        Word("before", Kind.INSTANT, How.BOUND, "created before then", "before:now-1d"),
        Word("age", Kind.DURATION, How.BOUND, "created so long ago", "age>1h"),
        Word("finished", Kind.INSTANT, How.WALK, "that ended before or after then", "finished>now-15m"),
        Word("tag", Kind.TEXT, How.WALK, "with this tag", "tag:vip"),
        Word("worker", Kind.TEXT, How.WALK, "run by this worker, or last run by it", "worker:web-3"),
        Word("attempts", Kind.NUMBER, How.WALK, "by how many attempts were made", "attempts>=3"),
        Word("crashes", Kind.NUMBER, How.WALK, "by how often their worker died", "crashes>0"),
        Word("priority", Kind.NUMBER, How.WALK, "by priority; lower runs first", "priority<100"),
        Word("wait", Kind.DURATION, How.WALK, "by how long they waited in their queue", "wait>30s"),
        Word("ran", Kind.DURATION, How.WALK, "by how long they ran", "ran>5s"),
        Word("error", Kind.TEXT, How.WALK, "whose last error has this text in it", 'error:"timed out"'),
        Word("fingerprint", Kind.TEXT, How.WALK, "that failed so, as the list of failures names it", "fingerprint:…"),
        Word("payload", Kind.VALUE, How.WALK, "whose payload has this value there", "payload.user.id:42"),
        Word("result", Kind.VALUE, How.WALK, "whose result has this value there", "result.rows:100"),
        Word("meta", Kind.VALUE, How.WALK, "whose metadata has this value there", "meta.tenant:acme"),
        Word("sort", Kind.ORDER, How.INDEX, "newest first, or oldest first", "sort:created"),
    )
}
"""Every word, by its name."""
OTHER_NAMES: Mapping[str, str] = {
    "state": "status",
    "task": "type",
    "owner": "user",
    "args": "payload",
    "metadata": "meta",
    "tags": "tag",
    "created": "after",
}
ORDERS = {"-created": False, "newest": False, "created": True, "oldest": True}
"""what `sort` takes, and whether the oldest job comes first"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One term, as it stands in the line from `start` to `end`, and what was made of it."""

    start: int
    end: int
    word: str | None
    """None where it is text alone"""
    how: How
    meaning: str
    problem: str | None = None
    """why it cannot be understood, and what was expected"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What a line asks for."""

    text: str
    terms: tuple[Term, ...]
    search: Mapping[str, Any]
    """words for `app.jobs.find`"""
    tests: tuple[Fits, ...]
    """what is tested job by job besides"""
    oldest_first: bool | None
    at: datetime
    """when it was read: ages and `now` are counted from here"""

    @property
    def problems(self) -> tuple[Term, ...]:
        """The terms that cannot be understood."""
        return tuple(term for term in self.terms if term.problem is not None)

    def fits(self, job: Job) -> bool:
        """Whether the job passes all that is tested job by job."""
        return all(test(job, self.at) for test in self.tests)

    def checked(self) -> Query:
        """The same; SettingsError where a term cannot be understood."""
        for term in self.problems:
            raise SettingsError(f"{shown(self.text[term.start : term.end])}: {term.problem}")
        return self


def understood(text: str, at: datetime | None = None) -> Query:
    """What a line asks for, term by term; problems are told, not raised."""
    now = datetime.now(UTC) if at is None else at
    if len(text) > LONGEST:
        raise SettingsError(f"the search is {len(text):,} characters long: expected at most {LONGEST:,}")
    reading = _Reading(now)
    for count, found in enumerate(_TERM.finditer(text)):
        if count == MOST_TERMS:
            raise SettingsError(f"the search has more than {MOST_TERMS} terms: leave some out")
        reading.add(found)
    return Query(
        text=text,
        terms=tuple(reading.terms),
        search=reading.search,
        tests=tuple(reading.tests),
        oldest_first=reading.oldest_first,
        at=now,
    )


def absolute(text: str, at: datetime) -> str:
    """The line with every age and every `now` counted from this instant: it means the same whenever it is read."""
    parts, end = list[str](), 0
    for found in _TERM.finditer(text):
        parts.append(text[end : found.start()])
        parts.append(_absolute(found, at))
        end = found.end()
    return "".join(parts) + text[end:]


def _absolute(found: re.Match[str], at: datetime) -> str:
    word = WORDS.get(name_of(found["word"])) if found["word"] else None
    if word is None or not (word.kind is Kind.INSTANT or word.name == "age"):
        return found[0]
    if word.name == "age":
        older = found["operator"].startswith(">") is not bool(found["dash"])
        return f"{'before' if older else 'after'}:{_before(at, duration(found['value'], 'age')).isoformat()}"
    ago = _AGO.fullmatch(found["value"])
    if ago is None:
        return found[0]
    moment = at if ago["ago"] is None else _before(at, duration(ago["ago"], word.name))
    return f"{found['dash']}{found['word']}{found['operator']}{moment.isoformat()}"


_TERM = re.compile(
    r"""(?P<dash>-?)
    (?:(?P<word>[A-Za-z_][\w-]*(?:\.[^\s:=<>".]+)*)(?P<operator>>=|<=|[:=<>]))?
    (?P<value>(?:"(?:[^"\\]|\\.)*"|[^\s"])*"?[^\s]*)""",
    re.VERBOSE,
)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_AGO = re.compile(r"now(?:-(?P<ago>\S+))?")
_HEX = re.compile(r"[0-9a-fA-F-]{4,36}")


def name_of(word: str) -> str:
    """The word's own name, whatever other name it was called by."""
    return OTHER_NAMES.get(word.casefold(), word.casefold())


@dataclass(slots=True)
class _Reading:
    """A line that is being read."""

    at: datetime
    terms: list[Term] = field(default_factory=list[Term])
    search: dict[str, Any] = field(default_factory=dict[str, Any])
    tests: list[Fits] = field(default_factory=list[Fits])
    oldest_first: bool | None = None

    def add(self, found: re.Match[str]) -> None:
        """Understand one more term."""
        if not found[0]:
            return
        name, path = None, ""
        if found["word"] is not None:
            head, _, path = found["word"].partition(".")
            name = name_of(head)
        how, meaning, problem = How.WALK, "", None
        try:
            how, meaning = self._understand(name, path, found)
        except SettingsError as error:
            problem = str(error)
        self.terms.append(
            Term(start=found.start(), end=found.end(), word=name, how=how, meaning=meaning, problem=problem)
        )

    def _understand(self, name: str | None, path: str, found: re.Match[str]) -> tuple[How, str]:
        negated = bool(found["dash"])
        if name is None:
            return self._text(_plain(found["value"]), negated=negated)
        word = WORDS.get(name)
        if word is None:
            raise unknown_word(name, WORDS, "search word")
        if path and word.kind is not Kind.VALUE:
            raise SettingsError(f"{name} has no parts: expected {word.example}")
        values = _several(found["value"])
        if not values:
            raise SettingsError(f"{name} has no value: expected something such as {word.example}")
        operator = "=" if found["operator"] == ":" else found["operator"]
        if operator != "=" and word.kind in (Kind.STATUS, Kind.TEXT, Kind.ORDER):
            raise SettingsError(f"{name} is not compared with {operator}: expected {word.example}")
        how = self._meant(word, path, operator, values, negated=negated)
        told = " or ".join(values) if operator == "=" else f"{operator} {values[0]}"
        return how, f"{'not ' if negated else ''}{word.help} ({told})"

    def _text(self, text: str, *, negated: bool) -> tuple[How, str]:
        if not text:
            raise SettingsError("there is nothing behind the dash: expected a term such as -tag:test")
        self._test(lambda job, _: mentions(job, text), negated=negated)
        return How.WALK, f"{'without' if negated else 'with'} {shown(text)} in type, queue, id, keys, tags or error"

    def _meant(self, word: Word, path: str, operator: str, values: list[str], *, negated: bool) -> How:
        match word.kind:
            case Kind.STATUS:
                return self._status(values, negated=negated)
            case Kind.ORDER:
                return self._order(_one(values, word), negated=negated)
            case Kind.TEXT:
                return self._name(word, values, negated=negated)
            case Kind.VALUE:
                test = payload_is(word.name, path, operator, values)
                self._test(lambda job, _: test(job), negated=negated)
                return How.WALK
            case Kind.NUMBER:
                return self._number(word, operator, _one(values, word), negated=negated)
            case Kind.DURATION:
                return self._duration(word, operator, _one(values, word), negated=negated)
            case Kind.INSTANT:
                return self._instant(word, operator, _one(values, word), negated=negated)

    def _test(self, test: Fits, *, negated: bool) -> How:
        self.tests.append((lambda job, at: not test(job, at)) if negated else test)
        return How.WALK

    def _put(self, name: str, value: Any) -> None:
        if name in self.search:
            raise SettingsError("it is given twice: write several values with commas between them, as in queue:a,b")
        self.search[name] = value

    def _status(self, values: list[str], *, negated: bool) -> How:
        unknown = [value for value in values if value not in Status.__members__.values()]
        if unknown:
            raise unknown_word(unknown[0], tuple(Status), "status")
        statuses = {Status(value) for value in values}
        wanted = set(Status) - statuses if negated else statuses
        wanted &= set(self.search.get("status", Status))
        if not wanted:
            raise SettingsError("no job can be in none of the statuses: leave one of these terms out")
        self.search["status"] = sorted(wanted)
        return How.INDEX

    def _order(self, value: str, *, negated: bool) -> How:
        if value not in ORDERS or negated:
            raise SettingsError("expected sort:-created, newest first, or sort:created, oldest first")
        if self.oldest_first is not None:
            raise SettingsError("the order is given twice")
        self.oldest_first = ORDERS[value]
        return How.INDEX

    def _name(self, word: Word, values: list[str], *, negated: bool) -> How:
        if word.name == "id":
            return self._id(values, negated=negated)
        if word.name == "entity" and not all(_is_entity(value) for value in values):
            raise SettingsError("an entity is given by name and id: expected something such as entity:order:42")
        if word.name == "fingerprint" and not all(is_fingerprint(value) for value in values):
            raise SettingsError("a fingerprint has twelve hexadecimal digits, as the list of failures shows it")
        if negated or len(values) > 1 or word.name not in _SEARCHED:
            return self._test(_any_of(word.name, values), negated=negated)
        [value] = values
        if word.name == "tag":
            self.search.setdefault("tags", []).append(value)
        elif word.name == "entity":
            name, _, entity_id = value.partition(":")
            self._put("entity", (name, entity_id))
        else:
            self._put(_SEARCHED[word.name], value)
        # Whether a type begins so, stores test job by job.
        return How.WALK if word.name == "type" and value.endswith("*") else word.how

    def _id(self, values: list[str], *, negated: bool) -> How:
        for value in values:
            if not _HEX.fullmatch(value):
                raise SettingsError("expected an id, or at least the first four digits of one")
        beginnings = tuple(value.casefold() for value in values)
        self._test(lambda job, _: job.id.startswith(beginnings), negated=negated)
        bounds = _made_between(beginnings[0]) if len(values) == 1 and not negated else None
        if bounds is None:
            return How.WALK
        self._since(bounds[0])
        self._until(bounds[1])
        return How.BOUND

    def _number(self, word: Word, operator: str, value: str, *, negated: bool) -> How:
        if not value.isdecimal() or len(value) > 9:
            raise SettingsError(f"expected a whole number, as in {word.example}")
        n = int(value)
        if word.name != "attempts" or negated:
            holds, of = _COMPARED[operator], BY_NUMBER[word.name]
            return self._test(lambda job, _: holds(of(job), n), negated=negated)
        if operator in ("=", ">", ">="):
            self._put("attempts_at_least", n + (operator == ">"))
        if operator in ("=", "<", "<="):
            if n == 0 and operator == "<":
                raise SettingsError("no job has fewer than 0 attempts")
            self._put("attempts_at_most", n - (operator == "<"))
        return How.WALK

    def _duration(self, word: Word, operator: str, value: str, *, negated: bool) -> How:
        span = duration(value, word.name)
        if operator == "=":
            raise SettingsError(f"it is compared with <, <=, > or >=: expected something such as {word.example}")
        if word.name == "age":
            older = operator.startswith(">") is not negated
            (self._until if older else self._since)(_before(self.at, span))
            return How.BOUND
        holds, of = _COMPARED[operator], BY_SPAN[word.name]

        def test(job: Job, at: datetime) -> bool:
            found = of(job, at)
            return found is not None and holds(found, span)

        return self._test(test, negated=negated)

    def _instant(self, word: Word, operator: str, value: str, *, negated: bool) -> How:
        at = self._moment(value, word.name)
        later = {"=": word.name != "before", ">": True, ">=": True, "<": False, "<=": False}[operator] is not negated
        if word.name == "finished":
            if operator == "=":
                raise SettingsError(f"it is compared with < or >: expected something such as {word.example}")
            self._put("finished_since" if later else "finished_before", at)
            return How.WALK
        (self._since if later else self._until)(at)
        return How.BOUND

    def _moment(self, value: str, of: str) -> datetime:
        ago = _AGO.fullmatch(value)
        if ago is None:
            return _instant(value, of)
        return self.at if ago["ago"] is None else _before(self.at, duration(ago["ago"], of))

    def _since(self, at: datetime) -> None:
        self.search["created_since"] = max(at, self.search.get("created_since", at))

    def _until(self, at: datetime) -> None:
        self.search["created_before"] = min(at, self.search.get("created_before", at))


_SEARCHED = {
    "type": "type",
    "queue": "queue",
    "user": "user",
    "entity": "entity",
    "correlation": "correlation",
    "schedule": "schedule",
    "parent": "parent",
    "next": "next",
    "unique": "unique_key",
    "tag": "tags",
    "worker": "worker",
}
"""the words that a search has too, and what they are called there"""
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda found, wanted: found == wanted,
    ">": lambda found, wanted: found > wanted,
    ">=": lambda found, wanted: found >= wanted,
    "<": lambda found, wanted: found < wanted,
    "<=": lambda found, wanted: found <= wanted,
}


def _any_of(name: str, values: Collection[str]) -> Fits:
    if name == "fingerprint":
        return lambda job, _: job.error is not None and fingerprint(job.type, job.error) in values
    fits = BY_TEXT[name]
    return lambda job, _: any(fits(job, value) for value in values)


def _one(values: list[str], word: Word) -> str:
    if len(values) > 1:
        raise SettingsError(f"{word.name} takes one value: expected something such as {word.example}")
    return values[0]


def _several(text: str) -> list[str]:
    """The values of a term: between commas, or one in quotes, in which a comma is text."""
    if text.startswith('"'):
        value = _plain(text)
        return [value] if value else []
    return [part for part in text.split(",") if part]


def _plain(text: str) -> str:
    if '"' not in text:
        return text
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        raise SettingsError('quotes stand around a whole value, as in error:"timed out", with \\" for one inside')
    return _ESCAPED.sub(r"\1", quoted[1])


def _is_entity(value: str) -> bool:
    name, colon, entity_id = value.partition(":")
    return bool(name and colon and entity_id)


def _instant(text: str, of: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
        # Without a zone it is UTC: the caller may be anywhere.
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise SettingsError(
            f"{of} is {shown(text)}: expected a time such as 2026-11-30, 2026-11-30T09:00+01:00 or now-1d"
        ) from None


def _before(at: datetime, span: timedelta) -> datetime:
    try:
        return at - span
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


_OFF = timedelta(minutes=10)
"""how far the clock of who made an id may be from the store's; see `docs/searching.md`"""
_FULL = 12


def _made_between(beginning: str) -> tuple[datetime, datetime] | None:
    """Between which instants ids that begin so are made; None where that is too wide to be of use."""
    digits = beginning.replace("-", "")[:_FULL]
    if len(digits) < _FULL // 2:
        return None
    first = int(digits.ljust(_FULL, "0"), 16)
    last = int(digits.ljust(_FULL, "f"), 16)
    try:
        return (
            datetime.fromtimestamp(first / 1000, UTC) - _OFF,
            datetime.fromtimestamp(last / 1000, UTC) + _OFF,
        )
    except (OverflowError, OSError, ValueError):
        return None
