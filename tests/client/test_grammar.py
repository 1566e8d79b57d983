from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.observability.every_event import JOB
from windlass.client.completing import suggested
from windlass.client.grammar import WORDS, How, absolute, understood
from windlass.core.errors import SettingsError
from windlass.core.fingerprint import fingerprint
from windlass.core.job import Error, Job
from windlass.core.status import Status

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
ID = "0190a3c4-5d6e-7f80-9123-456789abcdef"
ERROR = Error(type="SMTPTimeout", message="421 timed out: try again")
FULL = JOB._replace(
    id=ID,
    payload_json='{"user": {"id": 9007199254740993, "name": "Ada"}, "rows": [{"n": 1}, {"n": 2}], "ok": true,'
    ' "no": null}',
    result_json='{"rows": 100, "rate": 0.5}',
    metadata_json='{"tenant": "acme"}',
    tags=("vip", "late"),
    user_id="ada",
    entity_name="order",
    entity_id="4:2",
    error=ERROR,
    attempts=3,
    crashes=1,
    priority=50,
    status=Status.RETRYING,
    wait_ms=31_000,
    duration_ms=5_001,
    unique_key="receipt:42",
    worker_id="web-3",
    schedule="nightly",
)


def test_what_stores_search_for_becomes_words_of_a_search() -> None:
    query = understood(
        "state:failed,retrying task:import.* queue:mail owner:ada entity:order:4:2 correlation:r1 schedule:nightly"
        ' unique:"receipt:42" worker:web-3 tag:vip tag:late attempts>=3 attempts<5 sort:created',
        AT,
    ).checked()
    assert query.search == {
        "status": [Status.FAILED, Status.RETRYING],
        "type": "import.*",
        "queue": "mail",
        "user": "ada",
        "entity": ("order", "4:2"),
        "correlation": "r1",
        "schedule": "nightly",
        "unique_key": "receipt:42",
        "worker": "web-3",
        "tags": ["vip", "late"],
        "attempts_at_least": 3,
        "attempts_at_most": 4,
    }
    assert query.oldest_first
    assert not query.tests


def test_times_and_ages_bound_when_jobs_were_created() -> None:
    def search(line: str) -> dict[str, Any]:
        return dict(understood(line, AT).checked().search)

    hour = timedelta(hours=1)
    assert search("age>1h") == search("before:now-1h") == search("-age<1h") == {"created_before": AT - hour}
    assert search("age<1h after:now-2d") == {"created_since": AT - hour}  # the narrower of both
    assert search("after:2026-11-01") == search("created>=2026-11-01T01:00+01:00")
    assert search("finished>now-15m") == {"finished_since": AT - hour / 4}
    assert search("before:now") == {"created_before": AT}


@pytest.mark.parametrize(
    ("line", "fits"),
    [
        (f"id:{ID}", True),
        ("id:0190A3C4", True),
        ("id:0190a3c5", False),
        ("-id:0190a3c5", True),
        ("payload.user.id:9007199254740993", True),
        ("args.user.id:9007199254740992", False),  # exact, where a float could not tell
        ("args.user.name:A*", True),
        ("args.user.name:ada", False),
        ("args.rows.n:2", True),
        ("args.rows.1.n:2", True),
        ("args.rows.1.n:1", False),
        ("args.rows.7.n:1", False),
        ("args.ok:true args.no:null", True),
        ("args.ok:false", False),
        ("args.user:x", False),
        ("args.nobody:x", False),
        ("args.user.id>9007199254740992", True),
        ("args.user.name>5", False),
        ("args.ok>0", False),
        ("result.rows>=100 result.rows<=100 result.rate<0.6 result.rows:1e2", True),
        ("result.rows<100", False),
        ("result.rows:x", False),
        ("meta.tenant:acme,other", True),
        ('error:"Timed Out: try"', True),
        ("error:smtptimeout", True),
        ("error:refused", False),
        (f"fingerprint:{fingerprint(FULL.type, ERROR)}", True),
        ("fingerprint:0123456789ab", False),
        ("ran>5s wait>30s", True),
        ("ran<=5s", False),
        ("-ran>1m", True),
        ("crashes:1 crashes>0 priority<=50 priority<100", True),
        ("crashes>1", False),
        ("-attempts:3", False),
        ("-tag:test -queue:other -type:import.* -user:bob -entity:order:1", True),
        ("-tag:vip", False),
        ("queue:mail,other type:send,x", True),
        ("-worker:web-3", False),
        ("-schedule:x -correlation:x -parent:x -next:x -unique:x", True),
        ("SEND", True),
        ("receipt", True),
        ("vip", True),
        ('"try again"', True),
        ("nothing-like-it", False),
        ("-nothing-like-it", True),
    ],
)
def test_what_no_store_searches_by_is_tested_job_by_job(line: str, fits: bool) -> None:
    assert understood(line, AT).checked().fits(FULL) is fits


def test_what_still_waits_or_runs_counts_until_now() -> None:
    waiting = JOB._replace(status=Status.QUEUED, queued_at=AT - timedelta(seconds=31))
    running = JOB._replace(status=Status.PROCESSING, started_at=AT - timedelta(seconds=6))
    assert understood("wait>30s", AT).fits(waiting)
    assert not understood("wait>32s", AT).fits(waiting)
    assert understood("ran>5s", AT).fits(running)
    assert not understood("ran>0s", AT).fits(waiting)
    assert not understood("error:x fingerprint:0123456789ab", AT).fits(waiting)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("statis:failed", "did you mean status"),
        ("state:broken", "is no status"),
        ("state:failed -state:failed", "no job can be"),
        ("queue:", "has no value"),
        ("queue:a queue:b", "given twice"),
        ("queue>a", "not compared"),
        ("queue.x:a", "has no parts"),
        ("age:1h", "compared with"),
        ("age>soon", "expected a duration"),
        ("after:yesterday", "expected a time"),
        ("after:a,b", "takes one value"),
        ("finished:2026-01-01", "compared with"),
        ("attempts:many", "whole number"),
        ("attempts<0", "fewer than 0"),
        ("payload:42", "of which part"),
        ("payload.a>x", "compares numbers"),
        ("entity:order", "by name and id"),
        ("fingerprint:x", "twelve hexadecimal"),
        ("id:xyz", "at least the first four"),
        ("sort:priority", "expected sort"),
        ("-sort:created", "expected sort"),
        ("sort:created sort:created", "given twice"),
        ('error:"open', "quotes stand"),
        ("-", "nothing behind the dash"),
    ],
)
def test_a_term_that_cannot_be_understood_is_told_with_its_place(line: str, told: str) -> None:
    query = understood(f"tag:x {line}", AT)
    [problem] = query.problems
    assert told in str(problem.problem)
    assert query.text[problem.start : problem.end] in line.split(" ")
    with pytest.raises(SettingsError, match=told):
        query.checked()


def test_a_line_is_bounded() -> None:
    with pytest.raises(SettingsError, match="2,001 characters"):
        understood("x" * 2_001)
    with pytest.raises(SettingsError, match="more than 50 terms"):
        understood("a " * 51)


@given(st.text(alphabet='abc:"-.,<>=*\\ ñ\n0', max_size=60))
def test_any_line_is_understood_or_told_and_nothing_of_it_is_dropped(text: str) -> None:
    query = understood(text, AT)
    covered = "".join(query.text[term.start : term.end] for term in query.terms)
    assert "".join(covered.split()) == "".join(text.split())
    query.fits(FULL)
    for place in range(0, len(text), 7):
        suggested(text, place, {})


def test_how_a_term_is_looked_for_is_told() -> None:
    query = understood("queue:mail age>1h tag:x id:0190a3c45d6e error:y", AT)
    assert [term.how for term in query.terms] == [How.INDEX, How.BOUND, How.WALK, How.BOUND, How.WALK]
    assert query.search["created_since"] < query.search["created_before"]


def test_every_example_is_understood() -> None:
    for word in WORDS.values():
        line = word.example.replace("…", "0123456789ab")
        assert not understood(line, AT).problems, line
        assert understood(line, AT).terms[0].word == word.name


def test_an_absolute_line_means_the_same_later() -> None:
    line = 'status:failed  age>1h -age>2d finished>now-1h before:now after:2026-01-01 error:"age>1h" x'
    fixed = absolute(line, AT)
    assert "now" not in fixed
    assert 'error:"age>1h"' in fixed
    late, early = understood(fixed, AT + timedelta(days=9)).checked(), understood(line, AT).checked()
    assert late.search == early.search


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("", "status:"),
        ("st", "status:"),
        ("queue:mail a", "after:"),
        ("-ta", "-tag:"),
        ("ag", "age>"),
        ("status:f", "status:failed"),
        ("status:failed,re", "status:failed,retrying"),
        ("queue:m", 'queue:"my mail"'),
        ("-queue:m", '-queue:"my mail"'),
        ("age>", "age>30s"),
        ("after:", "after:now-15m"),
        ("sort:", "sort:-created"),
        ("owner:a", "owner:ada"),
    ],
)
def test_a_line_is_completed(line: str, first: str) -> None:
    found = suggested(line, len(line), {"queue": ["default", "my mail"], "user": ["ada"]})
    assert found[0].text == first
    assert line[: found[0].start] + found[0].text == line[: line.rfind(" ") + 1] + first


def test_nothing_is_suggested_inside_quotes_and_for_what_nobody_knows() -> None:
    assert suggested('error:"sta', 10, {}) == []
    assert suggested("colour:r", 8, {}) == []
    assert suggested("-so", 3, {}) == []


def test_secrets_are_not_searched() -> None:
    job: Job = FULL._replace(payload_json='{"token":{"$secret":"wl1.abc"}}')
    assert understood("args.token:***", AT).fits(job)
    assert not understood("args.token.$secret:wl1*", AT).fits(job)
    assert not understood("wl1", AT).fits(job)
