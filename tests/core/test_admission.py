from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.drafts import draft
from windlass.core.admission import (
    Candidate,
    Created,
    Duplicate,
    Full,
    Holder,
    Inserted,
    InUse,
    Known,
    Replaced,
    Replacement,
    Waiting,
    admit,
    judge,
    replacement,
    status_of_new,
)
from windlass.core.blocked import BlockedBy, Kind
from windlass.core.draft import Draft, Options
from windlass.core.status import LIVE, WAITING, Status

MINUTE = timedelta(minutes=1)
NOW = timedelta(0)


def keyed(**options: Any) -> Draft:
    return draft(id="new", queue="q", unique="u", **options)._replace(idempotency_key="i")


@pytest.mark.parametrize(
    ("known", "verdict"),
    [
        (Known(), None),
        (Known(depth=1, most=2), None),
        (Known(depth=2, most=2), Full("q", 2)),
        (Known(depth=3, most=2), Full("q", 2)),
        (Known(depth=0, most=0), Full("q", 0)),
        (Known(holder=Holder("old", Status.QUEUED)), Duplicate("old", "u")),
        (Known(holder=Holder("new", Status.QUEUED)), None),
        (Known(same="old"), Duplicate("old", "i")),
        (Known(same="new"), None),
        (Known(same="old", holder=Holder("older", Status.QUEUED), depth=2, most=2), Duplicate("old", "i")),
        (Known(holder=Holder("old", Status.QUEUED), depth=2, most=2), Duplicate("old", "u")),
        (Known(is_there=True, same="old", holder=Holder("old", Status.QUEUED), depth=2, most=2), Created("new")),
    ],
)
def test_an_insert_asks_for_the_id_then_the_keys_then_for_room(known: Known, verdict: Inserted | None) -> None:
    assert judge(keyed(), known) == verdict


def test_a_draft_without_keys_meets_nobody() -> None:
    known = Known(same="old", holder=Holder("old", Status.QUEUED))
    assert judge(draft(id="new"), known) is None


@pytest.mark.parametrize("status", sorted(LIVE))
def test_only_a_holder_that_waits_is_replaced_and_only_on_request(status: Status) -> None:
    known = Known(holder=Holder("old", status), depth=9, most=9)
    replaced = Replaced("old") if status in WAITING else Duplicate("old", "u")
    assert judge(keyed(on_conflict="replace"), known) == replaced
    assert judge(keyed(on_conflict="existing"), known) == Duplicate("old", "u")
    assert judge(keyed(on_conflict="raise"), known) == Duplicate("old", "u")


def test_a_new_job_waits_for_others_or_for_its_time_or_for_a_worker() -> None:
    assert status_of_new(Options(), later=False) is Status.QUEUED
    assert status_of_new(Options(delay=MINUTE), later=True) is Status.SCHEDULED
    assert status_of_new(Options(awaits="end"), later=False) is Status.BLOCKED


@pytest.mark.parametrize(
    ("longest", "age", "wait", "then"),
    [
        (None, 9 * MINUTE, NOW, Replacement(Status.QUEUED, NOW)),
        (None, 9 * MINUTE, -MINUTE, Replacement(Status.QUEUED, -MINUTE)),
        (None, 9 * MINUTE, MINUTE, Replacement(Status.SCHEDULED, MINUTE)),
        (5 * MINUTE, MINUTE, 3 * MINUTE, Replacement(Status.SCHEDULED, 3 * MINUTE)),
        (5 * MINUTE, 3 * MINUTE, 3 * MINUTE, Replacement(Status.SCHEDULED, 2 * MINUTE)),
        (5 * MINUTE, 5 * MINUTE, 3 * MINUTE, Replacement(Status.QUEUED, NOW)),
        (5 * MINUTE, 9 * MINUTE, 3 * MINUTE, Replacement(Status.QUEUED, NOW)),
        (5 * MINUTE, MINUTE, -MINUTE, Replacement(Status.QUEUED, NOW)),
    ],
)
def test_a_replaced_job_is_due_as_the_draft_but_not_put_off_for_ever(
    longest: timedelta | None, age: timedelta, wait: timedelta, then: Replacement
) -> None:
    options = Options(on_conflict="replace", longest_wait=longest)
    assert replacement(options, Waiting(None, age), wait) == then
    assert replacement(options, Waiting("limit:flow:a", age), wait) == then
    assert replacement(options, Waiting("flow:a", age), wait) == Replacement(Status.BLOCKED, None)


LIMIT, UNIQUE, RATE = BlockedBy(Kind.LIMIT, "l"), BlockedBy(Kind.UNIQUE, "u"), BlockedBy(Kind.RATE, "r")
ALL = Candidate("l", 2, "u", "r", 3)


@pytest.mark.parametrize(
    ("job", "in_use", "by"),
    [
        (Candidate(), InUse(9, True, 9, 9), None),
        (ALL, InUse(1, False, 2, 0), None),
        (ALL, InUse(2, True, 3, 1), LIMIT),
        (ALL, InUse(3, False, 0, 0), LIMIT),
        (ALL, InUse(1, True, 3, 1), UNIQUE),
        (ALL, InUse(1, False, 3, 0), RATE),
        (ALL, InUse(1, False, 2, 1), RATE),
        (ALL, InUse(1, False, 1, 1), None),
        (ALL._replace(called=True), InUse(1, False, 2, 9), None),
        (ALL._replace(called=True), InUse(1, False, 3, 0), RATE),
        (ALL._replace(called=True), InUse(2, True, 0, 0), LIMIT),
        (ALL._replace(limit_key=None, running_key=None), InUse(9, True, 0, 0), None),
    ],
)
def test_a_job_waits_for_its_limit_then_its_key_then_its_rate(
    job: Candidate, in_use: InUse, by: BlockedBy | None
) -> None:
    assert admit(job, in_use) == by
