from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.making import NOON
from windlass.core.draft import Options, Taken, as_priority, check_id, kept_options, make_id, with_kept
from windlass.core.errors import PayloadInvalid, SettingsError
from windlass.core.handler import make_draft
from windlass.core.limit import Limit
from windlass.core.rate import Rate
from windlass.core.unique import Unique, idempotency_key

AN_ID = "0190a3c4-5d6e-7f80-9123-456789abcdef"

moments = st.tuples(st.integers(0, 2**48 - 1), st.integers(0, 2**74 - 1))


class Nowhere(tzinfo):
    """A zone that does not know its offset, which makes a datetime naive although it has a zone."""

    def utcoffset(self, dt: datetime | None, /) -> timedelta | None:
        return None

    def dst(self, dt: datetime | None, /) -> timedelta | None:
        return None

    def tzname(self, dt: datetime | None, /) -> str | None:
        return None


# ids


@given(moments)
def test_an_id_is_a_uuid_of_version_7_that_holds_its_millisecond(moment: tuple[int, int]) -> None:
    milliseconds, entropy = moment
    found = UUID(make_id(milliseconds, entropy))
    assert found.version == 7
    assert found.variant == "specified in RFC 4122"
    assert found.int >> 80 == milliseconds
    assert (found.int >> 64 & 0xFFF) << 62 | found.int & (2**62 - 1) == entropy
    assert str(found) == make_id(milliseconds, entropy)


@given(moments, moments)
def test_ids_sort_as_text_by_time_and_then_by_entropy(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (make_id(*one) < make_id(*other)) is (one < other)
    assert (make_id(*one) == make_id(*other)) is (one == other)


@given(moments)
def test_what_makes_an_id_can_be_checked_as_one(moment: tuple[int, int]) -> None:
    assert check_id(make_id(*moment)) == make_id(*moment)


def test_an_id_in_capitals_is_the_same_id() -> None:
    assert check_id(AN_ID.upper()) == AN_ID


@pytest.mark.parametrize(
    "value",
    [
        "",
        "42",
        AN_ID[:-1],
        AN_ID + "0",
        AN_ID + "\n",
        " " + AN_ID,
        AN_ID.replace("-", ""),
        AN_ID.replace("f", "g"),
        "z" * 36,
        "-" * 36,
        AN_ID.replace("-", "0"),
        "0190a3c45-d6e-7f80-9123-456789abcdef",
        AN_ID.replace("0", "٠"),
        "{" + AN_ID[1:-1] + "}",
        "'; DROP TABLE jobs;--",
        {"$gt": ""},
        None,
        42,
        UUID(AN_ID),
        pytest.param(10**5000, id="5,001 digits"),
        pytest.param("x" * 10_000, id="long"),
    ],
)
def test_what_is_not_an_id_is_refused_shortly(value: object) -> None:
    with pytest.raises(SettingsError, match=r"is not a job id: expected a UUID like") as caught:
        check_id(value)
    assert len(str(caught.value)) < 200


# options


def test_options_are_the_documented_defaults() -> None:
    found = Options()
    assert (found.queue, found.priority, found.max_attempts, found.max_crashes) == ("default", 100, 5, 3)
    assert found.timeout == timedelta(hours=1)
    assert found.on_conflict == "existing"


@pytest.mark.parametrize(("name", "number"), [("critical", 10), ("high", 50), ("normal", 100), ("low", 200), (-7, -7)])
def test_a_priority_is_a_name_or_a_number(name: Any, number: int) -> None:
    assert as_priority(name) == number


@pytest.mark.parametrize("name", ["", "urgent", "HIGH", "10"])
def test_an_unknown_priority_names_the_known_ones(name: str) -> None:
    with pytest.raises(SettingsError, match=rf"priority is '{name}': expected .* critical, high, normal, low"):
        as_priority(name)


ACCEPTED: list[dict[str, Any]] = [
    {"queue": "q" * 200},
    {"queue": "bulk mail"},
    {"priority": -(2**31) + 1},
    {"priority": 2**31 - 1},
    {"max_attempts": 1},
    {"max_crashes": 2**31 - 1},
    {"timeout": None},
    {"timeout": timedelta(milliseconds=1)},
    {"delay": timedelta(0)},
    {"delay": timedelta(days=36_500)},
    {"run_at": NOON},
    {"run_at": datetime.max.replace(tzinfo=UTC)},
    {"run_at": datetime(1, 1, 1, tzinfo=UTC)},
    {"tags": tuple(f"t{n}" for n in range(32))},
    {"user_id": "u" * 512},
    {"trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
]


@pytest.mark.parametrize("options", ACCEPTED, ids=lambda options: next(iter(options)))
def test_options_at_their_limits_are_accepted(options: dict[str, Any]) -> None:
    [(name, value)] = options.items()
    assert getattr(Options(**options), name) == value


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"queue": ""}, r"the queue is '': expected 1 to 200 printable characters"),
    ({"queue": "q" * 201}, r"the queue is 'qqq.*\.\.\.: expected 1 to 200"),
    ({"queue": "a\x00b"}, r"the queue is 'a\\x00b': expected"),
    ({"queue": "a\nb"}, r"the queue is 'a\\nb': expected"),
    ({"queue": " mail"}, r"the queue is ' mail': expected .* without spaces around"),
    ({"queue": None}, r"the queue is None: expected"),
    ({"priority": "high"}, r"priority is 'high': expected a whole number from"),
    ({"priority": 2**31}, r"priority is 2147483648: expected a whole number from -2147483647 to 2147483647"),
    ({"priority": 1.5}, r"priority is 1.5: expected a whole number"),
    ({"priority": True}, r"priority is True: expected a whole number"),
    ({"max_attempts": 0}, r"max_attempts is 0: expected a whole number from 1 to 2147483647"),
    ({"max_attempts": -1}, r"max_attempts is -1"),
    ({"max_attempts": 10**5000}, r"max_attempts is <int>: expected"),
    ({"max_crashes": 0}, r"max_crashes is 0: expected a whole number from 1"),
    ({"timeout": timedelta(0)}, r"timeout is 0:00:00: expected at least a millisecond, or None for no timeout"),
    ({"timeout": timedelta(microseconds=999)}, r"timeout is 0:00:00.000999: expected at least a millisecond"),
    ({"timeout": timedelta(-1)}, r"timeout is .*: expected a timedelta from 0"),
    ({"timeout": 30}, r"timeout is 30: expected a timedelta"),
    ({"delay": timedelta(seconds=-1)}, r"delay is .*: expected a timedelta from 0 to 100 years"),
    ({"delay": timedelta.max}, r"delay is .*: expected a timedelta from 0 to 100 years"),
    ({"longest_wait": 5}, r"longest_wait is 5"),
    ({"expires": timedelta(0)}, r"expires is 0:00:00: expected at least a millisecond, or None for no expiry"),
    ({"expires": NOON}, r"expires is .*: expected a timedelta from 0 to 100 years"),
    ({"idempotency_window": timedelta(-1)}, r"idempotency_window is"),
    ({"delay": timedelta(1), "run_at": NOON}, r"both delay and at were given: choose one"),
    ({"run_at": NOON.replace(tzinfo=None)}, r"at is .*, without a zone: give an aware datetime"),
    ({"run_at": NOON.replace(tzinfo=Nowhere())}, r"at is .*, without a zone: give an aware datetime"),
    ({"run_at": "2024-05-06T12:00Z"}, r"at is '2024-05-06T12:00Z', without a zone: give an aware datetime"),
    ({"run_at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))}, r"at is 9999-.*outside the calendar"),
    ({"run_at": datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))}, r"at is 0001-.*outside the calendar"),
    ({"tick": NOON.replace(tzinfo=None)}, r"tick is .*, without a zone"),
    ({"on_conflict": "ignore"}, r"on_conflict is 'ignore': expected 'existing', 'raise' or 'replace'"),
    ({"tags": tuple(f"t{n}" for n in range(33))}, r"33 tags were given: expected at most 32"),
    ({"tags": ("ok", "")}, r"a tag is ''"),
    ({"tags": (5,)}, r"a tag is 5"),
    ({"trace": "a\r\nb"}, r"trace is 'a\\r\\nb': expected at most 1024 printable characters"),
    ({"trace": "a" * 1025}, r"trace is .*: expected at most 1024"),
    *(
        ({name: value}, rf"{name} is .*: expected text of 1 to 512 printable characters")
        for name in ("correlation_id", "user_id", "entity_name", "entity_id", "schedule", "parent_id", "replay_of")
        for value in ("", "a\x00", "x" * 513, 42)
    ),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=range(len(REFUSED)))
def test_options_no_store_could_keep_are_refused_with_what_was_found(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        Options(**options)
    assert len(str(caught.value)) < 250
    assert str(caught.value).isprintable()


def test_options_are_checked_again_when_they_are_changed() -> None:
    with pytest.raises(SettingsError, match=r"max_attempts is 0"):
        replace(Options(), max_attempts=0)


# what a schedule keeps

kept = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.integers(-99, 99),
        "max_attempts": st.integers(1, 99),
        "max_crashes": st.integers(1, 99),
        "timeout": st.none() | st.integers(1, 10**9).map(lambda ms: timedelta(milliseconds=ms)),
        "expires": st.none() | st.integers(1, 10**9).map(lambda ms: timedelta(milliseconds=ms)),
        "tags": st.lists(st.sampled_from(["a", "b", "ü"]), max_size=5).map(tuple),
        "user_id": st.none() | st.sampled_from(["u1", "ü"]),
        "entity_name": st.just("order"),
        "metadata_json": st.just('{"a":1}'),
    },
)


@given(kept, kept)
def test_the_options_a_schedule_keeps_come_back_over_those_of_its_handler(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert with_kept(Options(**other), kept_options(Options(**one))) == Options(**one)


def test_a_schedule_keeps_neither_keys_nor_times() -> None:
    own = Options(queue="mail", limit=Limit("l"), unique=Unique.of("u"))
    found = with_kept(own, kept_options(Options(queue="vip", delay=timedelta(1), schedule="s", limit=Limit("m"))))
    assert found == own


def test_what_a_schedule_did_not_keep_is_as_the_handler_declares_it() -> None:
    own = Options(priority=7, timeout=timedelta(seconds=5), expires=timedelta(seconds=6), tags=("a",))
    assert with_kept(own, "{}") == own
    assert with_kept(own, '{"priority":50}') == replace(own, priority=50)


# drafts


def a_draft(
    payload: str = '{"file":"f1","order_id":42}', *, templated: bool = True, defaults: Any = None, **options: Any
) -> Any:
    return make_draft("mail.send", AN_ID, payload, Options(**options), templated=templated, defaults=defaults)


def test_a_draft_without_keys_is_only_what_it_was_given() -> None:
    found = a_draft("{}")
    assert (found.id, found.type, found.payload_json, found.options) == (AN_ID, "mail.send", "{}", Options())
    assert {found.unique_queued, found.unique_running, found.idempotency_key, found.limit_key, found.limit} == {None}


def test_a_handlers_keys_are_filled_from_the_jobs_arguments() -> None:
    found = a_draft(unique=Unique(queued="q:{file}", running="r:{order_id}"), limit=Limit("l:{file}", 3))
    assert (found.unique_queued, found.unique_running) == ("q:f1", "r:42")
    assert (found.limit_key, found.limit) == ("l:f1", 3)


def test_a_key_for_one_phase_leaves_the_other_free() -> None:
    found = a_draft(unique=Unique(running="r:{order_id}"))
    assert (found.unique_queued, found.unique_running) == (None, "r:42")


def test_a_callers_unique_key_is_plain_text() -> None:
    found = a_draft(templated=False, unique=Unique.of("receipt:{42"))
    assert (found.unique_queued, found.unique_running) == ("receipt:{42", "receipt:{42")


def test_a_default_stands_in_for_an_argument_left_out() -> None:
    found = a_draft('{"file":"f1"}', defaults={"file": "none", "size": 100}, limit=Limit("l:{file}:{size}"))
    assert found.limit_key == "l:f1:100"


@pytest.mark.parametrize("payload", ["{}", "[1]", "5", '{"file":null}', '{"file":["a"]}'])
def test_a_key_that_the_payload_cannot_fill_is_refused(payload: str) -> None:
    with pytest.raises(PayloadInvalid, match=r"needs the argument 'file' as text or a number"):
        a_draft(payload, limit=Limit("l:{file}"))


def test_a_draft_is_idempotent_only_within_a_window() -> None:
    assert a_draft("{}", idempotency_window=timedelta(days=1)).idempotency_key == idempotency_key("mail.send", "{}")
    assert a_draft("{}", limit=Limit("l")).idempotency_key is None


def test_a_payload_is_not_read_where_no_key_needs_it() -> None:
    assert a_draft("not even JSON", idempotency_window=timedelta(days=1), unique=Unique.of("u"), templated=False)


@given(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20), st.integers(-(2**63), 2**63 - 1))
def test_equal_arguments_make_equal_keys(file: str, order_id: int) -> None:
    payload = json.dumps({"order_id": order_id, "file": file})
    found = a_draft(payload, unique=Unique.of("{file}/{order_id}"))
    assert found.unique_queued == found.unique_running == f"{file}/{order_id}"


@pytest.mark.parametrize(
    ("fair_by", "key"),
    [("user_id", "u1"), ("entity_id", "order:42"), ("correlation_id", "c1"), ("team:{team}", "team:red"), (None, None)],
)
def test_turns_are_counted_for_a_field_or_for_arguments(fair_by: str | None, key: str | None) -> None:
    options = Options(user_id="u1", entity_name="order", entity_id="42", correlation_id="c1", fair_by=fair_by)
    assert make_draft("t", AN_ID, '{"team":"red"}', options, templated=True).fair_key == key


@pytest.mark.parametrize("fair_by", ["user_id", "entity_id", "correlation_id"])
def test_a_job_without_the_field_takes_no_turns(fair_by: str) -> None:
    assert make_draft("t", AN_ID, "{}", Options(fair_by=fair_by), templated=True).fair_key is None


@pytest.mark.parametrize("fair_by", ["", "user", "queue", "a.{b.c}", "{{x}}", 5])
def test_turns_by_something_else_are_refused(fair_by: Any) -> None:
    with pytest.raises(SettingsError, match=r"fair_by is .*: expected one of user_id|the key template"):
        Options(fair_by=fair_by)


def test_a_rates_key_is_filled_from_the_jobs_arguments() -> None:
    rated = Options(rate=Rate(5, key="api:{host}"))
    assert make_draft("t", AN_ID, '{"host":"a"}', rated, templated=True).rate_key == "api:a"
    assert make_draft("t", AN_ID, "{}", Options(rate=Rate(5)), templated=False).rate_key == "type:t"


@pytest.mark.parametrize("when", [{"delay": timedelta(0)}, {"run_at": datetime(2030, 1, 1, tzinfo=UTC)}])
def test_a_job_that_waits_for_others_has_no_time_of_its_own(when: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="a job that waits for others has no time of its own"):
        Options(awaits="success", **when)


def test_a_job_waits_for_success_or_for_the_end() -> None:
    assert [Options(awaits=one).awaits for one in (None, "success", "end")] == [None, "success", "end"]
    with pytest.raises(SettingsError, match="awaits is 'failure': expected 'success' or 'end'"):
        Options(awaits="failure")  # type: ignore[arg-type]  # what a caller without types might give


@given(st.from_regex(r"[a-z_*]{1,20}", fullmatch=True), st.none() | st.integers(1, 10_000))
def test_what_a_job_takes_is_read_as_it_was_written(name: str, count: int | None) -> None:
    assert Taken.of(Taken(name, count).text()) == Taken(name, count)


def test_a_list_without_a_number_takes_any_number() -> None:
    assert Taken.of("rows[]") == Taken("rows", 0)
