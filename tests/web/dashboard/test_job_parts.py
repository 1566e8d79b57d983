"""What the job's page is made of, asked without a browser."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.core.making import a_job as some_job
from windlass.core.history import Entry, Happened
from windlass.core.job import Error, Job
from windlass.core.status import Status
from windlass.web.dashboard.json_tree import json_tree, masked_json, shown_json
from windlass.web.dashboard.pages.job import linking, stretches
from windlass.web.dashboard.pages.job.attempts import attempts, folded
from windlass.web.dashboard.pages.job.moves import moves
from windlass.web.dashboard.pages.job.similar import similar

BEGAN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OWN, OTHER = "01a1eef7-f35e-7000-8009-6eb526efee66", "01a1eef7-f35e-7000-8009-6eb526efee67"
DEAD = "lease 1 expired, worker web-1 is presumed dead (crash 1 of 3)"
TRACEBACK = """Traceback (most recent call last):
  File "/srv/.venv/lib/python3.11/site-packages/windlass/worker/execution.py", line 1, in run
    await call()
  File "/srv/.venv/lib/python3.11/site-packages/other/lib.py", line 2, in call
    return f()
           ^^^
  File "/srv/shop/jobs.py", line 9, in send
    raise ValueError(x)
ValueError: it broke
  with a second line"""


def history(*told: tuple[float, Happened, Status, dict[str, Any]]) -> list[Entry]:
    return [
        Entry(number=n, at=BEGAN + timedelta(seconds=at), happened=happened, status=status, **more)
        for n, (at, happened, status, more) in enumerate(told, 1)
    ]


LONG_LIFE = history(
    (0, Happened.ENQUEUED, Status.QUEUED, {}),
    (1, Happened.CLAIMED, Status.PROCESSING, {"actor": "web-1", "token": 1}),
    (31, Happened.LOST, Status.QUEUED, {"token": 1, "note": DEAD}),
    (32, Happened.CLAIMED, Status.PROCESSING, {"actor": "web-2", "token": 3}),
    (33, Happened.REFUSED, Status.PROCESSING, {"token": 1, "note": "late succeeded of lease 1, the lease is 3 now"}),
    (42, Happened.SNOOZED, Status.SCHEDULED, {"token": 3, "note": "closed"}),
    (102, Happened.PROMOTED, Status.QUEUED, {}),
    (103, Happened.CLAIMED, Status.PROCESSING, {"actor": "web-1", "token": 4}),
    (113, Happened.FAILED, Status.FAILED, {"token": 4, "note": "ValueError: it broke"}),
    (90_000, Happened.RETRIED, Status.QUEUED, {"actor": "key:ops", "note": "fixed"}),
    (90_001, Happened.AGED, Status.QUEUED, {"note": "priority 100 to 90"}),
)  # fmt: skip


def a_job(**more: Any) -> Job:
    return some_job(**{"id": OWN, "attempts": 0, **more})


def test_every_move_has_its_words_its_actor_and_its_delta() -> None:
    told = moves(a_job(), LONG_LIFE, inside=True)
    assert [one.words for one in told] == [
        "Enqueued",
        f"Attempt 1 of {a_job().max_attempts} started",
        "Lease 1 expired by 12:00:31; worker web-1 presumed dead; handed back (crash 1 of 3)",
        f"Attempt 1 of {a_job().max_attempts} started",
        "A late result of lease 1 was refused: not applied",
        "Snoozed: the attempt is given back",
        "Due: queued",
        f"Attempt 1 of {a_job().max_attempts} started",
        "Failed for good after 10.0 s",
        "Queued again, with fresh attempts",
        "It had waited long: priority 100 to 90",
    ]
    assert [one.actor for one in told[1:5]] == ["web-1 · lease 1", "rescuer", "web-2 · lease 3", "web-1 · lease 1"]
    assert (told[9].actor, told[9].detail, told[1].passed) == ("key:ops", "fixed", timedelta(seconds=1))


def test_users_are_told_no_names() -> None:
    told = moves(a_job(), LONG_LIFE, inside=False)
    text = " ".join(f"{one.words} {one.detail} {one.actor}" for one in told)
    for name in ("web-", "key:ops", "lease", "fixed", "it broke"):
        assert name not in text


def test_every_happening_has_words() -> None:
    for inside in (True, False):
        for happened in Happened:
            for before in (Status.PROCESSING, Status.QUEUED):
                some = history((0, Happened.ENQUEUED, before, {}), (1, happened, Status.QUEUED, {"note": "x"}))
                [_, told] = moves(a_job(), some, inside=inside)
                assert told.words
                assert told.icon


def test_attempts_have_the_error_of_the_last_that_failed() -> None:
    failed = a_job(error=Error(type="ValueError", message="it broke", traceback=TRACEBACK))
    told = attempts(failed, LONG_LIFE)
    assert [(one.outcome, one.worker, one.error is not None) for one in told] == [
        ("lost", "web-1", False),
        ("snoozed", "web-2", False),
        ("failed", "web-1", True),
    ]
    snoozed = LONG_LIFE[:6]  # what ended well later has no error of its own
    assert [one.error is not None for one in attempts(failed, snoozed)] == [True, False]
    assert attempts(a_job(), LONG_LIFE[5:])[0].number is None  # what was dropped cannot be counted


def test_frames_of_libraries_fold_and_the_message_stays() -> None:
    told = folded(TRACEBACK)
    assert [(part.library, part.count) for part in told] == [(False, 0), (True, 2), (False, 1), (False, 0)]
    assert "\n".join(part.text for part in told) == TRACEBACK
    assert folded("no traceback at all")[0].text == "no traceback at all"


def test_the_strip_is_to_scale_and_rests_are_gaps() -> None:
    found = stretches.stretches(LONG_LIFE, BEGAN + timedelta(seconds=90_010))
    assert [(one.words, one.lasted.total_seconds()) for one in found] == [
        ("waited in its queue", 1),
        ("ran and was lost", 30),
        ("waited in its queue", 1),
        ("ran and was snoozed", 10),
        ("waited for its time", 60),
        ("waited in its queue", 1),
        ("ran and failed", 10),
        ("had ended, and was queued again", 89_887),
        ("waited in its queue", 10),
    ]
    assert (stretches.waited(found).total_seconds(), stretches.ran(found).total_seconds()) == (73, 50)
    drawn = stretches.strip(found)
    assert drawn.count("<rect") == 8
    assert drawn.count("strip-gap") == 1
    assert "style" not in drawn
    assert stretches.legend(found)[0].times == 4
    assert stretches.strip([]).startswith("<svg")


def test_a_job_is_compared_with_others_of_its_type() -> None:
    ids = [f"01a1eef7-f35e-7000-8009-6eb526efee{n:02x}" for n in range(9)]
    last = [a_job()._replace(id=id_, duration_ms=100, status=Status.SUCCEEDED) for id_ in reversed(ids)]
    one = last[4]._replace(duration_ms=320)
    told = similar(one, last, None)
    assert told.told == "It ran 0.3 s, 3.2 times as long as most: the median of 8 others is 0.1 s."
    assert [run.here for run in told.runs].index(True) == 4
    assert told.draw().count("<rect") == 9
    older = a_job()._replace(id="00000000-f35e-7000-8009-6eb526efee66", duration_ms=100, status=Status.SUCCEEDED)
    assert similar(older, last, None).runs[0].here
    running = similar(one._replace(status=Status.PROCESSING, duration_ms=None), last, 5)
    assert running.told.startswith("It has run for 5 ms, much faster than most")
    assert "has not run yet" in similar(one._replace(duration_ms=None, status=Status.QUEUED), last[:2], None).told
    assert similar(one, [], None).told == "No other job of this type has run lately."


def test_ids_are_links_commands_are_set_apart_and_all_else_is_text() -> None:
    told = linking.linked(f'<b>{OTHER}</b>\u202e "windlass retry {OWN}" {OWN}', lambda id_: f"/jobs/{id_}", OWN)
    assert "<b>" not in told
    assert "\u202e" not in told
    assert told.count("<a ") == 1
    assert f'href="/jobs/{OTHER}"' in told
    assert f"<code>windlass retry {OWN}</code>" in told


def test_what_is_called_a_secret_is_not_shown() -> None:
    text = json.dumps({"password": "hunter2", "tokens": 300, "rows": [{"api_key": "abcd", "password": ""}]})
    told = json_tree(shown_json(text))
    assert "hunter2" not in told
    assert "abcd" not in told
    assert told.count("not shown because of its name") == 2
    assert masked_json(text) == {"password": "***", "tokens": 300, "rows": [{"api_key": "***", "password": ""}]}
