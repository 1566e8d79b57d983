from __future__ import annotations

import pickle
import time
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support import cron_reference as reference
from windlass.core.errors import SettingsError
from windlass.core.schedule import GRACE, MOST_MISSED, NAMES, Cron, Missed, Plan, cron, plan

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

# One change of the clocks each, chosen for what is odd about it.
CHANGES = [
    ("America/New_York", "2026-03-08 07:00"),  # 02:00 to 03:00
    ("America/New_York", "2026-11-01 06:00"),  # 02:00 to 01:00
    ("Europe/Paris", "2026-03-29 01:00"),  # 02:00 to 03:00
    ("Europe/Paris", "2026-10-25 01:00"),  # 03:00 to 02:00
    ("Australia/Lord_Howe", "2026-04-04 15:00"),  # 02:00 to 01:30: half an hour
    ("Australia/Lord_Howe", "2026-10-03 15:30"),  # 02:00 to 02:30
    ("Pacific/Apia", "2011-12-30 10:00"),  # 30 December left out
    ("Asia/Gaza", "2022-03-26 22:00"),  # 00:00 to 01:00: no midnight
    ("Asia/Gaza", "2022-10-28 23:00"),  # 02:00 to 01:00
    ("America/Havana", "2026-11-01 05:00"),  # 01:00 to 00:00: two midnights
    ("America/Sao_Paulo", "2018-02-18 02:00"),  # 00:00 to 23:00 of the day before
    ("America/Nuuk", "2025-03-30 01:00"),  # 23:00 to 00:00 of the next day
    ("Asia/Pyongyang", "2018-05-04 15:00"),  # 23:30 to 00:00, once and for all
    ("Antarctica/Troll", "2026-03-29 01:00"),  # 01:00 to 03:00: two hours
    ("Antarctica/Troll", "2026-10-25 01:00"),  # 03:00 to 01:00
]
EXPRESSIONS = [
    "0 0 * * *",
    "30 0 * * *",
    "30 1 * * *",
    "15 2 * * *",
    "30 2 * * *",
    "30 23 * * *",
    "0,30 1-3 * * *",
    "0 */2 * * *",
    "0 */24 * * *",
    "*/60 2 * * *",
    "*/5 * * * *",
    "*/15 1 * * *",
    "*/15 2 * * *",
    "*/20 0-3 * * *",
    "0 * * * *",
    "30 * * * *",
    "0 0-23 * * *",
    "7-59/13 * * * *",
    "0 12 30 * *",
    "0 3 * * sun",
    "*/30 2 29 * sun",
]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def between(schedule: Cron, start: datetime, end: datetime) -> list[datetime]:
    """The ticks from start until before end."""
    ticks: list[datetime] = []
    tick = schedule.after(start - SECOND)
    while tick < end:
        ticks.append(tick)
        tick = schedule.after(tick)
    return ticks


def minutes_from(change: tuple[str, str], n: int) -> tuple[str, datetime]:
    tz, instant = change
    return tz, at(instant) + n * MINUTE


def local(ticks: list[datetime], tz: str) -> list[str]:
    return [tick.astimezone(ZoneInfo(tz)).strftime("%d %H:%M %z") for tick in ticks]


# The calendar


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/5 * * * *", "2026-01-01 00:05"),
        ("0 9 * * mon-fri", "2026-01-01 09:00"),
        ("0 9 * * MON-FRI", "2026-01-01 09:00"),
        ("0 0 29 2 *", "2028-02-29 00:00"),
        ("0 0 13 * fri", "2026-01-02 00:00"),
        ("0 0 */13 * fri", "2026-02-27 00:00"),
        ("0 0 L * *", "2026-01-31 00:00"),
        ("0 0 LW 1 *", "2026-01-30 00:00"),
        ("0 0 * * fri#2", "2026-01-09 00:00"),
        ("0 0 * * 5L", "2026-01-30 00:00"),
        ("  0   0 1 feb  7 ", "2026-02-01 00:00"),
    ],
)
def test_the_first_tick_after_new_year(expression: str, expected: str) -> None:
    assert cron(expression).after(at("2026-01-01 00:00")) == at(expected)


@pytest.mark.parametrize("name", [*NAMES, "@Daily", " @daily "])
def test_a_name_stands_for_its_five_fields(name: str) -> None:
    now = at("2026-01-01 00:00")
    assert cron(name).next(3, now) == cron(NAMES[name.strip().lower()]).next(3, now)
    assert cron(name).expression == name


def test_a_tick_is_strictly_later_than_the_instant() -> None:
    hourly = cron("@hourly")
    assert hourly.after(at("2026-01-01 09:00")) == at("2026-01-01 10:00")
    assert hourly.after(at("2026-01-01 09:00:00.000001")) == at("2026-01-01 10:00")
    assert hourly.after(at("2026-01-01 09:59:59.999999")) == at("2026-01-01 10:00")


def test_an_instant_may_come_in_any_zone_and_the_tick_is_in_utc() -> None:
    tick = cron("0 9 * * *", "Europe/Paris").after(datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Asia/Tokyo")))
    assert tick == at("2026-07-01 07:00")
    assert tick.tzinfo is UTC


def test_an_instant_without_a_zone_is_refused() -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001  # naive on purpose
    with pytest.raises(SettingsError, match="has no time zone"):
        cron("@daily").after(naive)
    with pytest.raises(SettingsError, match="has no time zone"):
        plan(cron("@daily"), at("2026-01-01"), naive)


def test_next_lists_ticks_oldest_first() -> None:
    assert cron("0 9 * * mon-fri").next(3, at("2026-01-01 10:00")) == [
        at("2026-01-02 09:00"),
        at("2026-01-05 09:00"),
        at("2026-01-06 09:00"),
    ]
    assert cron("@daily").next(0, at("2026-01-01")) == []


def test_a_schedule_describes_itself() -> None:
    assert cron("0 9 * * mon-fri").describe() == "At 09:00 on Monday through Friday"
    assert cron("@hourly").describe() == "At the start of every hour"


def test_a_tick_is_found_in_less_than_a_millisecond() -> None:
    schedules = [cron(expression, "America/New_York") for expression in EXPRESSIONS]
    now = at("2026-03-08 05:00")
    began = time.thread_time()
    for _ in range(10):
        for schedule in schedules:
            schedule.after(now)
    assert (time.thread_time() - began) / (10 * len(schedules)) < 0.001


# The clocks change


def test_a_time_that_is_jumped_over_fires_once_at_the_next_valid_instant() -> None:
    tz = "America/New_York"
    ticks = between(cron("30 2 * * *", tz), at("2026-03-07 05:00"), at("2026-03-10 04:00"))
    assert local(ticks, tz) == ["07 02:30 -0500", "08 03:00 -0400", "09 02:30 -0400"]


def test_several_times_that_are_jumped_over_make_one_tick() -> None:
    tz = "America/New_York"
    ticks = between(cron("0,20,40 2,3 * * *", tz), at("2026-03-08 05:00"), at("2026-03-09 04:00"))
    assert local(ticks, tz) == ["08 03:00 -0400", "08 03:20 -0400", "08 03:40 -0400"]


def test_a_window_of_an_interval_that_is_jumped_over_still_fires_once() -> None:
    tz = "America/New_York"
    ticks = between(cron("*/15 2 * * *", tz), at("2026-03-08 05:00"), at("2026-03-09 04:00"))
    assert local(ticks, tz) == ["08 03:00 -0400"]


def test_a_time_that_comes_twice_fires_the_first_time() -> None:
    tz = "America/New_York"
    ticks = between(cron("30 1 * * *", tz), at("2026-10-31 04:00"), at("2026-11-03 05:00"))
    assert local(ticks, tz) == ["31 01:30 -0400", "01 01:30 -0400", "02 01:30 -0500"]


def test_asked_in_the_second_coming_of_an_hour_the_answer_is_not_in_the_first() -> None:
    tick = cron("30 1 * * *", "America/New_York").after(at("2026-11-01 06:10"))
    assert tick == at("2026-11-02 06:30")


@pytest.mark.parametrize("change", ["2026-03-08 07:00", "2026-11-01 06:00"])
@pytest.mark.parametrize(("expression", "step"), [("*/5 * * * *", 5), ("0 * * * *", 60), ("30 0-23 * * *", 60)])
def test_an_interval_stays_what_it_is_through_both_changes(change: str, expression: str, step: int) -> None:
    middle = at(change)
    ticks = between(cron(expression, "America/New_York"), middle - 6 * HOUR, middle + 6 * HOUR)
    assert {later - tick for tick, later in pairwise(ticks)} == {step * MINUTE}


def test_an_interval_in_a_window_fires_in_both_comings_of_its_hour() -> None:
    ticks = between(cron("*/30 1 * * *", "America/New_York"), at("2026-11-01 04:00"), at("2026-11-02 05:00"))
    assert local(ticks, "America/New_York") == ["01 01:00 -0400", "01 01:30 -0400", "01 01:00 -0500", "01 01:30 -0500"]


def test_a_date_that_a_zone_left_out_has_no_ticks() -> None:
    tz = "Pacific/Apia"
    ticks = between(cron("0 9 * * *", tz), at("2011-12-28 10:00"), at("2012-01-01 10:00"))
    assert local(ticks, tz) == ["28 09:00 -1000", "29 09:00 -1000", "31 09:00 +1400", "01 09:00 +1400"]
    assert cron("0 9 30 12 *", tz).after(at("2011-12-01")) == at("2012-12-29 19:00")


def test_a_jump_to_midnight_moves_a_tick_to_the_first_instant_of_the_next_day() -> None:
    tz = "America/Nuuk"
    ticks = between(cron("30 23 * * *", tz), at("2025-03-29 02:00"), at("2025-04-01 01:00"))
    assert local(ticks, tz) == ["30 00:00 -0100", "30 23:30 -0100", "31 23:30 -0100"]


@pytest.mark.parametrize(("tz", "change"), CHANGES)
def test_around_a_change_every_expression_agrees_with_the_reference(tz: str, change: str) -> None:
    start, end = at(change) - 30 * HOUR, at(change) + 30 * HOUR
    for expression in EXPRESSIONS:
        expected = reference.ticks(expression, tz, start, end)
        assert between(cron(expression, tz), start, end) == expected, expression


@pytest.mark.parametrize(("tz", "change"), CHANGES)
@pytest.mark.parametrize("expression", ["30 1 * * *", "*/15 1-2 * * *", "20,50 * * * *", "0 0 * * *"])
def test_around_a_change_it_does_not_matter_where_one_starts(tz: str, change: str, expression: str) -> None:
    start = at(change) - 3 * HOUR
    expected = reference.ticks(expression, tz, start, start + 60 * HOUR)
    schedule = cron(expression, tz)
    for n in range(0, 6 * 60, 7):
        instant = start + n * MINUTE
        assert schedule.after(instant) == next(tick for tick in expected if tick > instant)


def test_the_listed_changes_are_changes() -> None:
    for tz, change in CHANGES:
        year = at(change).year
        assert at(change) in reference.changes(tz, year, year)


@pytest.mark.parametrize(
    ("tz", "change"), [pair for pair in CHANGES if pair[0] not in ("America/Nuuk", "Asia/Pyongyang")]
)
@pytest.mark.parametrize("hour", [0, 1, 2, 3, 9, 23])
def test_a_daily_job_fires_once_on_every_local_date_that_exists(tz: str, change: str, hour: int) -> None:
    middle, zone = at(change), ZoneInfo(tz)
    first = middle.astimezone(zone).date() - 3 * DAY
    start = datetime(first.year, first.month, first.day, tzinfo=zone).astimezone(UTC)
    instants = [start + n * HOUR for n in range(7 * 24)]
    dates = sorted({instant.astimezone(zone).date() for instant in instants})
    fired = [tick.astimezone(zone).date() for tick in between(cron(f"30 {hour} * * *", tz), start, start + 9 * DAY)]
    assert [day for day in fired if day <= dates[-1]] == dates


zones = st.sampled_from(sorted({tz for tz, _ in CHANGES} | {"UTC", "Asia/Kathmandu", "Africa/Casablanca"}))
minute_fields = st.sampled_from(["*", "*/5", "*/17", "0", "30", "59", "0,30", "10-20", "5-59/9", "*/60"])
hour_fields = st.sampled_from(["*", "*/2", "*/24", "0", "1", "2", "3", "23", "0-3", "1,2", "0-23", "22-23"])
day_fields = st.sampled_from(["*", "*/2", "1", "1-15", "25-31", "30"])
month_fields = st.sampled_from(["*", "*", "3-4", "oct-dec", "12"])
weekday_fields = st.sampled_from(["*", "*/3", "sun", "sat,sun", "mon-fri", "7"])
expressions = st.builds(
    lambda *fields: " ".join(fields), minute_fields, hour_fields, day_fields, month_fields, weekday_fields
)
days = st.datetimes(datetime(2000, 1, 2), datetime(2040, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  # without a zone
near_changes = st.builds(minutes_from, st.sampled_from(CHANGES), st.integers(-1500, 300))


@settings(deadline=None)
@given(expressions, near_changes | st.tuples(zones, days))
@example("0 */2 * * *", ("Europe/Paris", at("2026-10-25 00:30")))
def test_any_expression_at_any_time_agrees_with_the_reference(expression: str, where: tuple[str, datetime]) -> None:
    tz, instant = where
    start = instant.replace(second=0, microsecond=0) + MINUTE
    expected = reference.ticks(expression, tz, start, start + DAY)
    tick = cron(expression, tz).after(start - SECOND)
    assert tick == expected[0] if expected else tick >= start + DAY


@given(expressions, zones, days)
def test_a_tick_is_later_in_utc_and_whole(expression: str, tz: str, instant: datetime) -> None:
    first, second = cron(expression, tz).next(2, instant)
    assert instant < first < second
    assert first.tzinfo is UTC
    assert (first.second, first.microsecond) == (0, 0)


@given(expressions, zones, days, days)
def test_ticks_are_in_the_order_of_their_instants(expression: str, tz: str, one: datetime, other: datetime) -> None:
    earlier, later = sorted((one, other))
    schedule = cron(expression, tz)
    assert schedule.after(earlier) <= schedule.after(later)


@given(expressions)
def test_every_expression_has_a_description(expression: str) -> None:
    assert cron(expression).describe()


# What is refused


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("61 * * * *", "'61' as its minute: expected 0-59"),
        ("* 24 * * *", "'24' as its hour: expected 0-23"),
        ("* * 0 * *", "'0' as its day of month: expected 1-31"),
        ("* * * 13 *", "'13' as its month: expected 1-12"),
        ("* * * * fun", "'fun' as its day of week: expected 0-7"),
        ("*/0 * * * *", "as its minute"),
        ("5-1 * * * *", "as its minute"),
        ("0 0 1--100000000 * *", "'1--100000000' as its day of month"),
        ("0 0 0 1 1 *", "has 6 fields: expected 5"),
        ("0 0 1 1", "has 4 fields: expected 5"),
        ("   ", "has 0 fields: expected 5"),
        ("", "expected at most 200 plain characters"),
        ("0 0 * * \u017fun", "expected at most 200 plain characters"),
        ("@reboot", "when your application starts"),
        ("@often", "expected one of @hourly"),
        ("0 0 31 2 *", "never fires"),
        ("0 0 30,31 feb *", "never fires"),
        ("0 0 31 4,6,9,11 *", "never fires"),
        ("0 0 */40 * mon#5", "never fires"),
    ],
)
def test_a_bad_expression_is_refused_with_what_is_wrong(expression: str, told: str) -> None:
    with pytest.raises(SettingsError) as refused:
        cron(expression)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "expression", ["0 0 1--100000000 * *", "1," * 99, "9" * 190 + " * * * *", "* " * 51_200, "0 0 31 2 *"]
)
def test_a_parser_bomb_is_refused_at_once(expression: str) -> None:
    began = time.thread_time()
    with pytest.raises(SettingsError) as refused:
        cron(expression)
    assert time.thread_time() - began < 0.05
    assert len(str(refused.value)) < 1_000


@given(st.text(st.sampled_from("0123456789*/,-#LW @monjanfeb?\u0663"), max_size=40) | st.text(max_size=300))
def test_any_text_is_a_schedule_or_is_refused(text: str) -> None:
    try:
        schedule = cron(text)
    except SettingsError:
        return
    assert schedule.after(at("2026-01-01")) > at("2026-01-01")
    assert schedule.describe()


shards = st.sampled_from(["*", "0", "5", "7", "31", "L", "LW", "5L", "2#3", "mon", "jan", "-", "/", ",", "#"])
odd_fields = st.lists(shards, min_size=1, max_size=4).map("".join)


@given(odd_fields, st.integers(0, 4))
@example("L,15", 2)
@example("mon,5L,2#3", 4)
def test_any_field_makes_a_schedule_or_is_refused(odd: str, place: int) -> None:
    fields = ["*"] * 5
    fields[place] = odd
    try:
        schedule = cron(" ".join(fields))
    except SettingsError:
        return
    assert schedule.after(at("2026-01-01")) > at("2026-01-01")
    assert schedule.describe()


@pytest.mark.parametrize(
    ("tz", "told"),
    [
        ("Europe/Pari", "did you mean 'Europe/Paris'?"),
        ("europe/paris", "did you mean 'Europe/Paris'?"),
        ("Mars/Olympus_Mons", "expected an IANA name"),
        ("America", "is not known here"),
        ("../../etc/passwd", "expected an IANA name"),
        ("x" * 100_000, "expected at most 64 plain characters"),
        ("", "expected at most 64 plain characters"),
        (None, "expected at most 64 plain characters"),
    ],
)
def test_an_unknown_zone_is_refused_and_a_close_one_named(tz: Any, told: str) -> None:
    with pytest.raises(SettingsError) as refused:
        cron("@daily", tz)
    assert told in str(refused.value)


def test_policies_and_limits_that_do_not_exist_are_refused() -> None:
    with pytest.raises(SettingsError, match="overlap of a schedule is 'never': expected one of skip, queue, allow"):
        cron("@daily", overlap=cast("Any", "never"))
    with pytest.raises(SettingsError, match="missed of a schedule is 'some': expected one of latest, all, none"):
        cron("@daily", missed=cast("Any", "some"))
    for limit in (0, MOST_MISSED + 1, True, 1.5):
        with pytest.raises(SettingsError, match=r"limit of a schedule is .*: expected 1 to"):
            cron("@daily", limit=cast("Any", limit))


def test_a_schedule_is_a_value() -> None:
    schedule = cron("0 9 * * *", "Europe/Paris", overlap="allow", missed="all", limit=7)
    assert schedule == Cron("0 9 * * *", "Europe/Paris", "allow", "all", 7)
    assert pickle.loads(pickle.dumps(schedule)) == schedule
    assert hash(schedule) == hash(Cron("0 9 * * *", "Europe/Paris", "allow", "all", 7))
    with pytest.raises(AttributeError):
        cast("Any", schedule).tz = "UTC"


# Missed ticks


DUE = at("2026-01-01 09:00")


def hourly(missed: Missed, limit: int = 100) -> Cron:
    return cron("@hourly", missed=missed, limit=limit)


@pytest.mark.parametrize("missed", ["latest", "all", "none"])
def test_before_the_tick_there_is_nothing_to_do(missed: Missed) -> None:
    assert plan(hourly(missed), DUE, DUE - SECOND) == Plan((), 0, None, DUE)


@pytest.mark.parametrize("missed", ["latest", "all", "none"])
def test_a_tick_on_time_fires(missed: Missed) -> None:
    assert plan(hourly(missed), DUE, DUE) == Plan((DUE,), 0, None, DUE + HOUR)


def test_latest_fires_the_newest_tick_and_counts_the_others() -> None:
    now = DUE + 3 * HOUR + 10 * MINUTE
    assert plan(hourly("latest"), DUE, now) == Plan((DUE + 3 * HOUR,), 3, DUE, DUE + 4 * HOUR)


def test_all_fires_every_tick_oldest_first() -> None:
    now = DUE + 2 * HOUR + 10 * MINUTE
    assert plan(hourly("all"), DUE, now) == Plan((DUE, DUE + HOUR, DUE + 2 * HOUR), 0, None, DUE + 3 * HOUR)


def test_all_fires_the_newest_up_to_its_limit_and_counts_the_others() -> None:
    now = DUE + 9 * HOUR + 10 * MINUTE
    fire = (DUE + 8 * HOUR, DUE + 9 * HOUR)
    assert plan(hourly("all", limit=2), DUE, now) == Plan(fire, 8, DUE, DUE + 10 * HOUR)


def test_none_fires_a_tick_within_the_grace_only() -> None:
    late = DUE + 2 * HOUR
    assert plan(hourly("none"), DUE, late + GRACE) == Plan((late,), 2, DUE, late + HOUR)
    assert plan(hourly("none"), DUE, late + GRACE + timedelta(milliseconds=1)) == Plan((), 3, DUE, late + HOUR)


def test_none_counts_a_single_late_tick_as_missed() -> None:
    assert plan(hourly("none"), DUE, DUE + 2 * GRACE) == Plan((), 1, DUE, DUE + HOUR)


def test_a_stored_tick_that_the_expression_no_longer_has_still_counts() -> None:
    due = at("2026-01-01 08:45")
    assert plan(hourly("latest"), due, DUE - MINUTE) == Plan((due,), 0, None, DUE)
    assert plan(hourly("all"), due, DUE) == Plan((due, DUE), 0, None, DUE + HOUR)


def test_a_plan_is_in_utc_whatever_zone_it_was_asked_in() -> None:
    zone = ZoneInfo("Asia/Tokyo")
    asked = plan(hourly("latest"), DUE.astimezone(zone), (DUE + MINUTE).astimezone(zone))
    assert asked == Plan((DUE,), 0, None, DUE + HOUR)
    assert all(instant.tzinfo is UTC for instant in (*asked.fire, asked.next))


@pytest.mark.parametrize("missed", ["latest", "all", "none"])
@pytest.mark.parametrize("expression", ["* * * * *", "*/7 1-3 * * *", "0 9 * * mon-fri", "0 0 29 2 *"])
def test_years_of_missed_ticks_are_planned_in_bounded_time(expression: str, missed: Missed) -> None:
    schedule = cron(expression, "America/New_York", missed=missed)
    now = at("2026-01-01 09:00:30")
    due = schedule.after(at("2021-01-01"))
    began = time.thread_time()
    planned = plan(schedule, due, now)
    assert time.thread_time() - began < 2
    assert planned.missed_exact
    assert planned.next == schedule.after(now)


def test_years_of_every_minute_are_counted_exactly() -> None:
    planned = plan(cron("* * * * *", "America/New_York"), at("2024-01-01"), at("2026-01-01"))
    assert planned == Plan((at("2026-01-01"),), (366 + 365) * 1440, at("2024-01-01"), at("2026-01-01 00:01"))


def test_the_newest_of_many_ticks_is_found_without_walking_there() -> None:
    schedule, due, now = cron("* * * 1 *"), at("2026-01-01"), at("2026-12-15")
    began = time.thread_time()
    planned = plan(schedule, due, now)
    assert time.thread_time() - began < 1
    assert planned == Plan((at("2026-01-31 23:59"),), 31 * 1440 - 1, due, at("2027-01-01"))


def test_a_tick_that_was_moved_into_a_day_without_ticks_is_counted_as_one() -> None:
    schedule = cron("0 0,23 * * sat", "America/Nuuk")
    due = schedule.after(at("2025-03-21 12:00"))
    now = at("2025-04-05 12:00")
    ticks = between(schedule, due, now)
    assert local(ticks, "America/Nuuk")[2:] == ["29 00:00 -0200", "30 00:00 -0100", "05 00:00 -0100"]
    assert plan(schedule, due, now).missed == len(ticks) - 1


def test_a_count_that_would_take_too_long_is_a_lower_bound_and_says_so() -> None:
    due, now = at("1970-01-01"), at("2026-01-01")
    planned = plan(cron("* * * * *", "America/New_York"), due, now)
    assert not planned.missed_exact
    assert 1_000_000 < planned.missed < (now - due) // MINUTE
    assert (planned.fire, planned.missed_since, planned.next) == ((now,), due, now + MINUTE)


@settings(deadline=None)
@given(expressions, near_changes, st.integers(0, 5000), st.sampled_from(["latest", "all", "none"]), st.integers(1, 30))
def test_every_tick_is_fired_or_counted_as_missed(
    expression: str, where: tuple[str, datetime], minutes: int, missed: Missed, limit: int
) -> None:
    tz, start = where
    schedule = cron(expression, tz, missed=missed, limit=limit)
    due = schedule.after(start)
    now = due + minutes * MINUTE
    ticks = between(schedule, due, now + SECOND)
    planned = plan(schedule, due, now)
    assert len(planned.fire) + planned.missed == len(ticks)
    assert list(planned.fire) == ticks[planned.missed :][: len(planned.fire)]
    assert planned.missed_since == (due if planned.missed else None)
    assert planned.next == schedule.after(now)
    assert planned.missed_exact
    assert (
        len(planned.fire)
        == {
            "latest": 1,
            "all": min(limit, len(ticks)),
            "none": int(now - ticks[-1] <= GRACE),
        }[missed]
    )


@settings(deadline=None)
@given(expressions, near_changes, st.integers(0, 5000))
def test_planning_in_two_steps_covers_the_same_ticks_as_in_one(
    expression: str, where: tuple[str, datetime], minutes: int
) -> None:
    tz, start = where
    schedule = cron(expression, tz)
    due = schedule.after(start)
    half, now = due + minutes * MINUTE // 2, due + minutes * MINUTE
    once = plan(schedule, due, now)
    first = plan(schedule, due, half)
    second = plan(schedule, first.next, now)
    assert once.missed + 1 == first.missed + 1 + second.missed + len(second.fire)
    assert once.next == second.next


def test_the_reference_reads_fields_as_cron_does() -> None:
    wanted = reference.Expression("5/20 1-3,8 */10 jan-mar 7")
    assert (wanted.minutes, wanted.hours, wanted.days) == ({5, 25, 45}, {1, 2, 3, 8}, {1, 11, 21, 31})
    assert (wanted.months, wanted.weekdays) == ({1, 2, 3}, {0})
    assert wanted.matches(datetime(2026, 3, 1, 8, 25))  # noqa: DTZ001  # naive on purpose
    assert date(2026, 3, 1).isoweekday() == 7
