"""Every program in examples/ runs by itself, on a file of its own, and prints what it says it does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import windlass

EXAMPLES = Path(__file__).parents[2] / "examples"
UNFIT = "invoice.print does not fit its types: order_id: Field required; order: Extra inputs are not permitted"
TWO_WAYS = "can be read in two ways: say which comes first, day or month, or write 2026-12-31"

PRINTS = {
    "hello": ["Hello, Ada!"],
    "retries": [
        "http://shop.example answered at attempt 3",
        "the service took it at attempt 2",
        "the file came; attempt 1 is still the first",
        "failed after 1 attempt: ValueError: invalid literal for int() with base 10: 'ten'",
        "failed after 1 attempt: Reject: card 1234 is blocked",
    ],
    "unique": [
        "second created: False, same job: True",
        "refused for job first",
        "north recounted",
        "home indexed with 'windlass'",
        "ada@example.com welcomed",
        "welcomed again: False",
        "recounted again: True",
    ],
    "files": [
        "ann: written, 2fe334e6",
        "bob: written, 5bfcedbc",
        "cem: refused, another version is the current one",
        "version of ann: 12 bytes, 2fe334e6",
        "version of bob: 12 bytes, 5bfcedbc",
        "version of nobody: 12 bytes, 2fe334e6",
        "on disk: <h1>ann</h1>",
    ],
    "retention": ["50 pruned, 100 kept", "pings takes no more than 2"],
    "flows": ["the total is 192", "6 jobs, all of them found by 6", "cleaned /srv/pages"],
    "rates": ["12 calls took a second or more: True", "bob was served as number 2"],
    "limits": ["12 exports done", "acme: at most 2 at once", "globex: at most 2 at once"],
    "locks": ["site is held", "home: written", "home: written", "home: refused, a later holder was here"],
    "dead_letters": [
        "3 x LookupError in charge: order -3 is gone",
        "would replay 3",
        "replayed as a new job: True, again: False",
        "charged 3",
        "2 replayed, skipped: {}",
        "3 discarded",
    ],
    "sentry": ["charge failed, attempt 1: ConnectionError"],
    "explain": [
        "no_worker: No worker is alive: start one with windlass worker MODULE:APP.",
        "paused since then: True",
        "limit held by the first: True",
    ],
    "lineage": [
        "book of ada, about book 7",
        *["  chapter of ada, about book 7"] * 2,
        *["    page of ada, about book 7"] * 4,
    ],
    "tracing": [
        "POST /orders",
        "  send orders",
        "    process orders  job.retrying",
        "      step charge",
        "    process orders",
        "      step charge  remembered",
        "      send mail",
        "        process mail",
    ],
    "schedule": [
        "At 02:30 every day, in Europe/Paris:",
        "  2026-03-28 01:30 UTC",
        "  2026-03-29 01:00 UTC",
        "  2026-03-30 00:30 UTC",
        "acme-report: 0 8 * * * Europe/Paris makes report_for",
        "morning_report: 0 9 * * mon-fri America/New_York makes morning_report",
        "report for acme",
        "removed: True",
    ],
    "transaction": [
        "2 orders, 2 jobs",
        "order 3: payment declined",
        "2 orders, 2 jobs",
        "receipt for order 1",
        "receipt for order 2",
    ],
    "class_handler": [
        "to Ada: your shift starts at 09:30",
        "to Grace: your shift starts at 14:00",
        "ShiftStartReminder does not fit its types: data.starts_at: Field required",
    ],
    "process_job": [
        "3.141592653589793238462643383279",
        "computed in another process: True",
        "failed: ran longer than its timeout of 0:00:00.500000",
    ],
    "fastapi_app": ["a stranger: 401", "ada: receipt 7 for ada@example.org of ada", "grace: 404"],
    "bulk": ["2500 handles, 2500 waiting", "2500 done; the last gave 6245001"],
    "approval": [
        "no worker runs, and signal: It waits for the signal approved",
        "payment-7, approved by eve, lamp packed, desk packed",
        "payment-8, declined by eve",
        "charged once each: [7, 8]",
    ],
    "killed_import": [
        *(f"killed worker {number} in the middle of it" for number in (1, 2, 3)),
        "60 rows",
        "each row once: True",
    ],
    "resumes": [
        "sent: queued",
        "processed: completed by rules",
        "resume-Ada-Example-Northwind.md: a good match, missing Rust",
        "resume-Ada-Example-Contoso.md: a good match, missing nothing",
        "forgotten: 1 record, 1 file, 1 job",
    ],
    "imports": [
        "orders.xlsx: 2 inserted, 2 refused",
        "  row 4: total: is not a number (twelve)",
        f"  row 5: placedOn: {TWO_WAYS} (3/4/2026)",
        "  row 5: pieces: has to be greater than or equal to 1 (0)",
        "to correct: A-003, A-004",
        "corrections.xlsx: 2 inserted, 0 refused",
        "A-001 1299.5 2026-03-01",
        "A-002 12 2026-03-02",
        "A-003 12 2026-03-02",
        "A-004 80.25 2026-04-03",
    ],
    "by_name": [
        "2 x invoice 42",
        "jobs about order 42: invoice.print",
        UNFIT,
        UNFIT,
    ],
}


FAIL_ON_PURPOSE = {
    "dead_letters": {"failed"},
    "files": {"failed", "write"},
    "killed_import": {"lost"},
    "process_job": {"failed"},
    "retries": {"failed", "retrying"},
    "sentry": {"failed"},
    "tracing": {"retrying"},
}
"""which examples have jobs that fail, and by what their lines on standard error begin"""


def run(name: str, folder: Path) -> list[str]:
    source = str(Path(windlass.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source, "WINDLASS_URL": f"sqlite:///{folder / 'jobs.db'}"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # What fails on purpose is logged, as in any program that has set up no logging.
    logged = {line.split()[0] for line in done.stderr.splitlines()}
    assert logged <= FAIL_ON_PURPOSE.get(name, set()), done.stderr
    return done.stdout.splitlines()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", PRINTS)
def test_an_example_prints_what_it_promises(name: str, tmp_path: Path) -> None:
    assert run(name, tmp_path) == PRINTS[name]


@pytest.mark.timeout(60)
def test_progress_is_told_and_a_running_job_is_cancelled(tmp_path: Path) -> None:
    printed = run("progress_and_cancel", tmp_path)
    reports = [line for line in printed if " of 3: row " in line]
    # Reports are gathered, and on a busy machine a newer one may overtake an older one.
    assert reports
    assert reports == sorted(reports)
    assert [line for line in printed if line not in reports] == [
        "enqueued",
        "claimed",
        "succeeded",
        "enqueued",
        "claimed",
        "cancelled at once: False",
        "cancel_requested",
        "cancelled",
        "cancelled at once: True, it is cancelled",
    ]


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == PRINTS.keys() | {"progress_and_cancel"}
