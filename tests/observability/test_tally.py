from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from windlass.observability.measures import JOB_RUN, JOBS_EXPIRED, JOBS_STARTED, NOTIFIER_HEALTHY, SLOTS, Measure
from windlass.observability.tally import Series, Shared, Tally, buckets_of

ROOT = Path(__file__).parents[2]
CHILD = textwrap.dedent("""
    import os, sys
    from windlass.observability.measures import JOB_RUN, JOBS_STARTED, NOTIFIER_HEALTHY, SLOTS
    from windlass.observability.tally import Tally
    tally = Tally(int(sys.argv[1]))
    for _ in range(3):
        tally.add(JOBS_STARTED, 1, ("send", "mail"))
    tally.add(JOB_RUN, 0.3, ("send", "mail"))
    tally.add(SLOTS, 5, ())
    tally.add(NOTIFIER_HEALTHY, 0, ())
    print("counted", flush=True)
    sys.stdin.read()
""")


def one(series: Series, measure: Measure, *labels: str) -> float | None:
    cells = series.get((measure, labels))
    return None if cells is None else cells[0]


def child(file: int) -> subprocess.Popen[str]:
    made = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(file)],
        pass_fds=(file,),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert made.stdout is not None
    assert made.stdout.readline() == "counted\n"
    return made


def test_seconds_are_spread_over_buckets_with_their_sum() -> None:
    tally = Tally()
    for seconds in (0.001, 0.0011, 3600):
        tally.add(JOB_RUN, seconds, ("send", "mail"))
    [cells] = tally.read().values()
    assert cells[:2] == [1, 1]  # a bound is the last of its own bucket
    assert cells[len(buckets_of(JOB_RUN))] == 1  # longer than every bound
    assert cells[-1] == pytest.approx(3600.0021)


def test_what_a_killed_process_has_counted_stays_and_counts_once() -> None:
    together = Shared()
    with together.process() as file:
        first = child(file)
        assert (one(together.read(), JOBS_STARTED, "send", "mail"), together.alive) == (3, 1)
        with together.process() as beside:
            second = child(beside)
            both = together.read()
            assert (one(both, JOBS_STARTED, "send", "mail"), one(both, SLOTS)) == (6, 10)
            assert one(both, NOTIFIER_HEALTHY) == 0
            second.kill()
            second.communicate()
        left = together.read()
        assert (one(left, JOBS_STARTED, "send", "mail"), one(left, SLOTS)) == (6, 5)
        first.kill()
        first.communicate()
    gone = together.read()
    assert (one(gone, JOBS_STARTED, "send", "mail"), one(gone, SLOTS), together.alive) == (6, None, 0)
    assert sum(gone[JOB_RUN, ("send", "mail")][:-1]) == 2
    with together.process() as file:  # as the supervisor starts another
        third = child(file)
        assert one(together.read(), JOBS_STARTED, "send", "mail") == 9
        third.kill()
        third.communicate()


def test_labels_keep_what_they_hold() -> None:
    together = Shared()
    with together.process() as file:
        tally = Tally(file)
        tally.add(JOBS_STARTED, 1, ('a"b\n\\', "ü\x00"))
        tally.add(JOBS_EXPIRED, 2, ())
        assert together.read() == {(JOBS_STARTED, ('a"b\n\\', "ü\x00")): [1], (JOBS_EXPIRED, ()): [2]}
