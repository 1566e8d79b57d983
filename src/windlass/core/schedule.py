"""Schedules: the instants at which a cron expression fires in its zone, and what to do about ticks that were missed.

The calendar of an expression (its days, hours and minutes on the wall clock) is cronsim's; how the wall clock maps to
instants is decided here, because that is where daylight saving bites. `Cron` states the rule.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias, get_args
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from windlass.core.errors import SettingsError

Overlap: TypeAlias = Literal["skip", "queue", "allow"]
"""what a tick does while the job of an earlier tick is live: nothing, wait for it, or run beside it"""

Missed: TypeAlias = Literal["latest", "all", "none"]
"""what becomes of ticks that passed while nobody looked: see `plan`"""

GRACE = timedelta(seconds=60)
LONGEST_EXPRESSION = 200
LONGEST_ZONE = 64
MOST_MISSED = 1_000
MOST_STEPS = 10_000  # of counting, most of them a whole day: some years of every minute, decades of every hour

NAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
FIELDS = {
    "minute": "0-59",
    "hour": "0-23",
    "day of month": "1-31, L or LW",
    "month": "1-12 or jan-dec",
    "day of week": "0-7 or sun-sat, also 5#2 and 5L",
}

_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
# All fourteen kinds of year follow this date within the fifty years that cronsim searches, so an expression without a
# tick after it never has one.
_EPOCH = datetime(2000, 1, 1)  # noqa: DTZ001  # a wall clock's reading, in no zone


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression in a zone: its ticks are whole seconds in UTC.

    The rule around a change of the clocks. A local time that the clocks jump over fires once, at the first instant
    after the jump; several such times make one tick. A local time that comes twice fires at its first coming only. A
    date that a zone left out altogether has no ticks. Two kinds of expression follow the real clock instead: one that
    matches in every hour ignores the jump and goes on, and both it and one whose minutes are `*` or `*/n` fire in both
    comings of a repeated hour, so that intervals stay what they are.

    If both the day of month and the day of week are given, either suffices, unless one of them begins with `*`.

    Raises `SettingsError` for an expression or zone that does not exist or could never fire.
    """

    expression: str
    tz: str = "UTC"
    overlap: Overlap = "skip"
    missed: Missed = "latest"
    missed_limit: int = 100

    def __post_init__(self) -> None:
        """Refuse now what would otherwise fail in a worker, at the first tick."""
        check_policy(self.overlap, self.missed, self.missed_limit)
        _check_text("cron expression", self.expression, LONGEST_EXPRESSION, "five fields, such as '0 9 * * mon-fri'")
        _check_text("time zone", self.tz, LONGEST_ZONE, "a name such as 'Europe/Paris'")
        _rule(self.expression, self.tz)

    def after(self, instant: datetime) -> datetime:
        """The first tick strictly after the instant, in UTC."""
        return _rule(self.expression, self.tz).after(in_utc(instant).replace(microsecond=0))

    def next(self, n: int, after: datetime) -> list[datetime]:
        """The first `n` ticks strictly after the instant, oldest first."""
        ticks: list[datetime] = []
        for _ in range(n):
            ticks.append(self.after(ticks[-1] if ticks else after))
        return ticks

    def count(self, due: datetime, stop: datetime) -> tuple[int, bool]:
        """How many ticks there are from `due`, which is taken for one, until before `stop`; whether that is all."""
        if due >= stop:
            return 0, True
        rule = _rule(self.expression, self.tz)
        count, tick = 1, rule.after(due)
        for _ in range(MOST_STEPS):
            if tick >= stop:
                return count, True
            end, ticks = rule.stretch(tick, stop)
            count, tick = count + ticks, rule.after(end - _SECOND)
        return count, False

    def describe(self) -> str:
        """The expression in English, without the zone."""
        return _rule(self.expression, self.tz).calendar.explain()


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about a schedule now: `fire` these ticks, oldest first, record the missed, and store `next`."""

    fire: tuple[datetime, ...]
    missed: int
    missed_since: datetime | None
    """the oldest missed tick"""
    next: datetime
    missed_exact: bool = True
    """if false, at least `missed` ticks were missed: the gap was too long to count"""


def cron(
    expression: str, tz: str = "UTC", *, overlap: Overlap = "skip", missed: Missed = "latest", limit: int = 100
) -> Cron:
    """A schedule from five cron fields, or a name like `@daily`, read on the wall clock of `tz`.

    `missed` says what happens to ticks that passed while no worker ran: fire the `latest` only, fire `all` of them (the
    newest `limit`), or `none`. Raises `SettingsError` as `Cron` does.
    """
    return Cron(expression, tz, overlap, missed, limit)


class Ticks(Protocol):
    """What `plan` asks of a rule: that of a cron expression, or an interval."""

    @property
    def missed(self) -> Missed: ...
    @property
    def missed_limit(self) -> int: ...
    def after(self, instant: datetime) -> datetime: ...
    def count(self, due: datetime, stop: datetime) -> tuple[int, bool]: ...


def plan(rule: Ticks, due: datetime, now: datetime) -> Plan:
    """Decide about the stored next tick `due`; every tick up to `now` is either fired or counted as missed.

    `latest` fires the newest tick that is due. `all` fires every one, at most the newest `missed_limit`. `none` fires
    the newest if it is at most `GRACE` old. Takes bounded time however long ago `due` is. `due` is taken for a tick
    even where the rule has changed since it was stored.
    """
    due, now = in_utc(due).replace(microsecond=0), in_utc(now)
    if due > now:
        return Plan((), 0, None, due)
    newest = _newest(rule, due, now)
    fire = _chosen(rule, due, newest, now)
    missed, exact = rule.count(due, fire[0] if fire else newest + _SECOND)
    return Plan(fire, missed, due if missed else None, rule.after(now), exact)


def _chosen(rule: Ticks, due: datetime, newest: datetime, now: datetime) -> tuple[datetime, ...]:
    if rule.missed == "all":
        return _last(rule, due, newest)
    if rule.missed == "none" and now - newest > GRACE:
        return ()
    return (newest,)


def _last(rule: Ticks, due: datetime, newest: datetime) -> tuple[datetime, ...]:
    ticks = deque([newest])
    while ticks[0] > due and len(ticks) < rule.missed_limit:
        ticks.appendleft(_newest(rule, due, ticks[0] - _SECOND))
    return tuple(ticks)


def _newest(rule: Ticks, tick: datetime, now: datetime) -> datetime:
    """The newest tick up to `now`, where `tick` is one: by looking back and halving, for to walk may take years."""
    reach = _MINUTE
    while now - reach > tick:
        found = rule.after(now - reach)
        if found <= now:
            tick = found
            break
        reach *= 2
    until = now
    while (found := rule.after(tick)) <= now:
        middle = found + (until - found) // _SECOND // 2 * _SECOND
        later = rule.after(middle)
        if later <= now:
            tick = later
        else:
            tick, until = found, middle
    return tick


@dataclass(frozen=True, slots=True)
class _Rule:
    """A parsed expression in its zone."""

    calendar: CronSim
    zone: ZoneInfo
    hourly: bool
    """some minute of every hour matches"""
    steady: bool
    """ticks keep real intervals where local times come twice"""

    def after(self, instant: datetime) -> datetime:
        tick = self._first(self._wall(instant), instant)
        # The wall clock may be put back before that tick, to where this expression matched already.
        back = self._put_back(instant) if self.steady else None
        if back is None:
            return tick
        return min(tick, self._first(self._wall(back) - _SECOND, back - _SECOND))

    def stretch(self, tick: datetime, stop: datetime) -> tuple[datetime, int]:
        """The end and the number of ticks of a day or an hour that this tick opens, else of this tick alone.

        Not past `stop`, and only where the clocks do not change, so that every such day or hour has the same number.
        """
        minutes, hours = self.calendar.minutes, self.calendar.hours
        wall = self._wall(tick)
        into_hour = timedelta(minutes=wall.minute, seconds=wall.second)
        into_day = timedelta(hours=wall.hour) + into_hour
        first_of_hour = timedelta(minutes=min(minutes))
        first_of_day = timedelta(hours=min(hours)) + first_of_hour
        if into_day == first_of_day and self._plain(tick - into_day, _DAY, stop):
            return tick - into_day + _DAY, len(hours) * len(minutes)
        if into_hour == first_of_hour and self._plain(tick - into_hour, _HOUR, stop):
            return tick - into_hour + _HOUR, len(minutes)
        return tick + _SECOND, 1

    def _plain(self, start: datetime, length: timedelta, stop: datetime) -> bool:
        # From a second before: the tick may be one that a jump brought here, into a day that itself has none.
        return start + length <= stop and self._offset(start - _SECOND) == self._offset(start + length)

    def _first(self, wall: datetime, instant: datetime) -> datetime:
        """The first instant after `instant` among those of the local times that match after `wall`."""
        return next(found for local in self._matches(wall) for found in self._instants(local) if found > instant)

    def _matches(self, wall: datetime) -> Iterator[datetime]:
        # A copy moved to its start is what cronsim makes of expression and start, without parsing again.
        calendar = copy(self.calendar)
        calendar.dt = wall
        return calendar

    def _instants(self, local: datetime) -> tuple[datetime, ...]:
        """When the wall clock shows this local time, by the rule of `Cron`. Later local times have no earlier first."""
        first = local.replace(tzinfo=self.zone).astimezone(UTC)
        second = local.replace(tzinfo=self.zone, fold=1).astimezone(UTC)
        if first == second:
            return (first,)
        if first < second:
            return (first, second) if self.steady else (first,)
        return () if self.hourly else self._jumped(local, second, first)

    def _jumped(self, local: datetime, before: datetime, after: datetime) -> tuple[datetime, ...]:
        """The first instant after the jump over `local`, which lies between the two; none if the date was left out."""
        seconds = range((after - before) // _SECOND)
        jump = before + _SECOND * bisect_right(seconds, local, key=lambda n: self._wall(before + _SECOND * n))
        left_out = self._wall(jump - _SECOND).date() < local.date() < self._wall(jump).date()
        return () if left_out else (jump,)

    def _put_back(self, instant: datetime) -> datetime | None:
        """The instant within a day at which the wall clock is put back. No zone changes twice within a day."""
        offset = self._offset(instant)
        if self._offset(instant + _DAY) >= offset:
            return None
        seconds = range(_DAY // _SECOND)
        return instant + _SECOND * bisect_right(seconds, 0, key=lambda n: self._offset(instant + _SECOND * n) < offset)

    def _wall(self, instant: datetime) -> datetime:
        return instant.astimezone(self.zone).replace(tzinfo=None, fold=0)

    def _offset(self, instant: datetime) -> timedelta:
        return self._wall(instant) - instant.replace(tzinfo=None)


@lru_cache(maxsize=1024)
def _rule(expression: str, tz: str) -> _Rule:
    fields = _fields(expression)
    zone = _zone(tz)
    calendar = _calendar(expression, fields)
    hourly = len(calendar.hours) == 24
    # By the text, as cron does: `*/30` says "every 30 minutes" where `0,30` names two times.
    steady = hourly or (fields[0].startswith("*") and len(calendar.minutes) > 1)
    return _Rule(calendar, zone, hourly, steady)


def _fields(expression: str) -> list[str]:
    if expression.strip().startswith("@"):
        return _named(expression).split()
    fields = expression.split()
    if len(fields) == 6:
        raise SettingsError(
            f"cron expression {expression!r} has 6 fields: expected 5, from minute to day of week; "
            "leave out the seconds or the year"
        )
    if len(fields) != 5:
        raise SettingsError(
            f"cron expression {expression!r} has {len(fields)} fields: expected 5 (minute, hour, day of month, month, "
            f"day of week) or one of {', '.join(NAMES)}"
        )
    return fields


def _named(expression: str) -> str:
    name = expression.strip().lower()
    if name == "@reboot":
        raise SettingsError("cron expression '@reboot' names no time: enqueue the job when your application starts")
    if name not in NAMES:
        raise SettingsError(f"cron expression {expression!r} is no known name: expected one of {', '.join(NAMES)}")
    return NAMES[name]


def _calendar(expression: str, fields: list[str]) -> CronSim:
    for place, (name, expected) in enumerate(FIELDS.items()):
        if not _stands_alone(fields[place], place):
            raise SettingsError(
                f"cron expression {expression!r} has {fields[place]!r} as its {name}: expected {expected}, "
                "with ranges (1-5), steps (*/5) and lists (1,5)"
            )
    try:
        calendar = CronSim(" ".join(fields), _EPOCH)
        next(copy(calendar))
    except (CronSimError, StopIteration):
        raise SettingsError(
            f"cron expression {expression!r} never fires: no month it names has such a day; change the day or the month"
        ) from None
    return calendar


def _stands_alone(field: str, place: int) -> bool:
    """Whether a field is well formed. Tried alone, because cronsim words an impossible date like a malformed day."""
    fields = ["*"] * 5
    fields[place] = field
    try:
        CronSim(" ".join(fields), _EPOCH)
    except CronSimError:
        return False
    return True


def _zone(tz: str) -> ZoneInfo:
    try:
        return ZoneInfo(tz)
    except (KeyError, ValueError, OSError):  # OSError: the name of a folder in the zone database, such as "America"
        close = get_close_matches(tz, sorted(available_timezones()), n=1, cutoff=0.55)
        hint = f"did you mean {close[0]!r}?" if close else "expected an IANA name such as 'Europe/Paris'"
        raise SettingsError(f"time zone {tz!r} is not known here: {hint}") from None


def in_utc(instant: datetime) -> datetime:
    """The instant in UTC; one without a zone is refused."""
    if instant.tzinfo is None:
        raise SettingsError(f"instant {instant} has no time zone: expected an aware one, such as datetime.now(UTC)")
    return instant.astimezone(UTC)


def _check_text(of: str, found: object, longest: int, expected: str) -> None:
    """Before any parser sees it: short and plain text cannot be made expensive."""
    if not isinstance(found, str) or not found.isascii() or not 0 < len(found) <= longest:
        raise SettingsError(f"{of} is {_brief(found)}: expected at most {longest} plain characters, {expected}")


def _brief(found: object) -> str:
    text = repr(found[:40] if isinstance(found, str) else found)
    return f"{text}... ({len(found)} characters)" if isinstance(found, str) and len(found) > 40 else text


def check_policy(overlap: object, missed: object, limit: object) -> None:
    """Refuse what a schedule cannot do about an earlier job and about missed ticks."""
    _check_choice("overlap", overlap, get_args(Overlap))
    _check_choice("missed", missed, get_args(Missed))
    _check_limit(limit)


def _check_choice(of: str, found: object, choices: tuple[str, ...]) -> None:
    if found not in choices:
        raise SettingsError(f"the {of} of a schedule is {found!r}: expected one of {', '.join(choices)}")


def _check_limit(found: object) -> None:
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= MOST_MISSED:
        raise SettingsError(
            f"the limit of a schedule is {found!r}: expected 1 to {MOST_MISSED} missed ticks to fire at once"
        )
