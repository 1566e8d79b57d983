from __future__ import annotations

from datetime import UTC, datetime

import pytest

from windlass.cli import words
from windlass.core.errors import SettingsError


def test_a_time_without_a_zone_is_this_hosts() -> None:
    assert words.instant("2026-11-30T09:00+01:00", "--at") == datetime(2026, 11, 30, 8, tzinfo=UTC)
    assert words.instant("2026-11-30T09:00", "--at").tzinfo is not None
    with pytest.raises(SettingsError, match="--at is 'tomorrow'"):
        words.instant("tomorrow", "--at")


def test_queues_in_either_form() -> None:
    assert words.queues(["mail:10", "default"], 20) == {"mail": 10, "default": 20}
    assert words.queues(["mail:10,default"], 5) == {"mail": 10, "default": 5}
    assert words.queues([], 5) is None


@pytest.mark.parametrize("text", ["mail:x", ":3", "mail:", "a,,b"])
def test_a_malformed_queue_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="NAME:SLOTS"):
        words.queues([text], 5)


def test_weights_of_queues() -> None:
    assert words.weights(["mail=3", "default=1"]) == words.weights(["mail=3,default=1"]) == {"mail": 3, "default": 1}
    assert words.weights([]) is None


@pytest.mark.parametrize("text", ["mail", "mail=", "=3", "mail=x", "mail=-1"])
def test_a_malformed_weight_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="NAME=N"):
        words.weights([text])


def test_an_entity_is_a_name_and_an_id() -> None:
    assert words.entity("order:4:2") == ("order", "4:2")
    assert words.entity(None) is None
    with pytest.raises(SettingsError):
        words.entity("order")


def test_values_are_json_where_they_are_json() -> None:
    assert [words.value(text) for text in ("1", "true", "[1]", '"1"', "a b", "{")] == [1, True, [1], "1", "a b", "{"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.004, "4 ms"), (0.8, "0.8 s"), (63, "1 m 3 s"), (7500, "2 h 5 m"), (270000, "3 d 3 h"), (-2, "-2.0 s")],
)
def test_spans_for_people(seconds: float, text: str) -> None:
    assert words.span(seconds) == text
    assert words.span(None) == "–"


def test_sizes_and_plurals() -> None:
    assert words.size("é") == "2 B"
    assert words.size("x" * 20480) == "20.0 KiB"
    assert (words.plural(1, "job"), words.plural(1200, "job")) == ("1 job", "1,200 jobs")
