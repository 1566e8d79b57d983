"""The checker itself: each kind of violation, planted by hand in a history that was clean, is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from windlass import Entry, Happened, Job, Status
from windlass.chaos.checker import Evidence, check, hindered
from windlass.chaos.history import History, Line, What
from windlass.chaos.place import Pace
from windlass.chaos.report import Report, spread, together
from windlass.core.transition import ACQUITTED, UNCOUNTED

BASE = 1_000.0
ZERO = datetime(2026, 1, 1, tzinfo=UTC)
WORKER = "host/{}/abc123"


def at(seconds: float) -> datetime:
    return ZERO + timedelta(seconds=seconds)


def job(name: str, status: Status = Status.SUCCEEDED, **members: object) -> Job:
    finished = at(9) if status.finished else None
    made = Job(
        id=f"id-{name}",
        type="work",
        queue="default",
        payload_json=f'{{"name":"{name}"}}',
        status=status,
        priority=100,
        run_at=ZERO,
        attempts=1,
        max_attempts=50,
        crashes=0,
        max_crashes=50,
        timeout=None,
        created_at=ZERO,
        updated_at=ZERO,
        queued_at=ZERO,
        finished_at=finished,
        lease_token=1,
        result_json="1" if status is Status.SUCCEEDED else None,
    )
    return made._replace(**members)  # type: ignore[arg-type]  # any of its fields


@dataclass
class Case:
    """Evidence in the making."""

    lines: list[Line] = field(default_factory=list[Line])
    effects: dict[str, int] = field(default_factory=dict[str, int])
    jobs: dict[str, Job] = field(default_factory=dict[str, Job])
    histories: dict[str, list[Entry]] = field(default_factory=dict[str, list[Entry]])
    shown: dict[tuple[str, Status], int] | None = None
    one_file: bool = False

    def line(self, what: What, when: float, **members: object) -> None:
        told = Line(what=what, at=BASE + when, wall=at(when).timestamp())
        self.lines.append(replace(told, **members))  # type: ignore[arg-type]  # any of its fields
        self.lines.sort(key=lambda line: line.at)

    def enqueue(self, name: str, seconds: float = 0, **members: object) -> None:
        self.line(What.INVOKED, seconds, name=name, expect="succeeded", **members)
        self.line(What.ACKNOWLEDGED, seconds + 0.01, name=name, job=f"id-{name}")

    def run(self, name: str, begun: float, ended: float | None, token: int = 1, pid: int = 1) -> None:
        told = {"job": f"id-{name}", "token": token, "pid": pid}
        self.line(What.BEGUN, begun, **told)
        if ended is not None:
            self.line(What.ENDED, ended, **told)

    def tell(
        self,
        name: str,
        happened: Happened,
        status: Status,
        seconds: float,
        token: int | None = 1,
        *,
        pid: int = 1,
        note: str | None = None,
    ) -> None:
        entries = self.histories.setdefault(f"id-{name}", [])
        actor = WORKER.format(pid) if happened is Happened.CLAIMED else None
        told = Entry(
            number=len(entries) + 1, at=at(seconds), happened=happened, status=status, token=token, actor=actor
        )
        entries.append(replace(told, note=note))

    def clean(self, name: str, begun: float = 1, ended: float = 2) -> None:
        """A job that was enqueued, ran once and succeeded."""
        self.enqueue(name)
        self.run(name, begun, ended)
        self.line(What.EFFECT, ended, job=f"id-{name}", token=1, pid=1)
        self.effects[f"id-{name}"] = 1
        self.jobs[name] = job(name)
        self.tell(name, Happened.ENQUEUED, Status.QUEUED, 0, None)
        self.tell(name, Happened.CLAIMED, Status.PROCESSING, begun)
        self.tell(name, Happened.SUCCEEDED, Status.SUCCEEDED, ended)

    def robbed(self, name: str, *, stalled: bool) -> None:
        """A job whose first run went on while a second had begun after the store called it lost."""
        self.enqueue(name)
        self.run(name, 1, 3.5)
        self.run(name, 2.5, 4, token=3, pid=2)
        self.jobs[name] = job(name, lease_token=3, result_json="3")
        self.tell(name, Happened.ENQUEUED, Status.QUEUED, 0, None)
        self.tell(name, Happened.CLAIMED, Status.PROCESSING, 1)
        self.tell(name, Happened.LOST, Status.QUEUED, 2.4)
        self.tell(name, Happened.CLAIMED, Status.PROCESSING, 2.5, 3)
        self.tell(name, Happened.SUCCEEDED, Status.SUCCEEDED, 4, 3)
        if stalled:
            self.line(What.FAULT, 1.2, name="freeze", pid=1)
            self.line(What.HEALED, 3.4, name="freeze", pid=1)

    def report(self) -> Report:
        return check(
            Evidence(
                lines=self.lines,
                effects=self.effects,
                jobs=list(self.jobs.values()),
                histories=self.histories,
                shown=self.shown,
                pace=Pace(lease=1.0),
                one_file=self.one_file,
            )
        )


def test_what_is_clean_is_called_clean() -> None:
    case = Case()
    for name in ("a", "b", "c"):
        case.clean(name)
    case.shown = {("default", Status.SUCCEEDED): 3}
    report = case.report()
    assert not report.broken, report.told()
    assert (report.acknowledged, report.runs, report.dup_total, report.bound) == (3, 3, 0, 1.0)


def lost(case: Case) -> None:
    del case.jobs["a"], case.histories["id-a"]


def unexpected(case: Case) -> None:
    case.jobs["x"] = job("x")
    case.histories["id-x"] = [*case.histories["id-a"]]


def enqueued_twice(case: Case) -> None:
    case.jobs["a2"] = job("a", id="id-a2")
    case.histories["id-a2"] = [*case.histories["id-a"]]


def unfinished(case: Case) -> None:
    case.jobs["a"] = job("a", Status.QUEUED, attempts=0)
    case.histories["id-a"] = case.histories["id-a"][:1]


def misjudged(case: Case) -> None:
    case.jobs["a"] = job("a", Status.FAILED)
    case.histories["id-a"][-1] = replace(case.histories["id-a"][-1], happened=Happened.FAILED, status=Status.FAILED)


def token_twice(case: Case) -> None:
    case.run("a", 5, 6, token=1, pid=2)


def robbed_of_a_healthy_worker(case: Case) -> None:
    case.robbed("r", stalled=False)


def moved(case: Case, what: What, name: str, to: float) -> None:
    """What a job's first run did, at another moment."""
    found = [line for line in case.lines if (line.what, line.job, line.token) == (what, f"id-{name}", 1)]
    assert found
    case.lines = [line for line in case.lines if line not in found]
    case.line(what, to, job=f"id-{name}", token=1, pid=1)


def begun_late(case: Case) -> None:
    case.robbed("r", stalled=True)
    moved(case, What.BEGUN, "r", 6)


def late_accepted(case: Case) -> None:
    case.robbed("r", stalled=True)
    case.jobs["r"] = case.jobs["r"]._replace(result_json="1")


def ended_after_loss(case: Case) -> None:
    case.robbed("r", stalled=True)
    case.histories["id-r"][-1] = replace(case.histories["id-r"][-1], token=1)


def spent(case: Case) -> None:
    case.jobs["a"] = case.jobs["a"]._replace(attempts=2)


def failed_unbegun(case: Case) -> None:
    case.enqueue("f")
    case.jobs["f"] = job("f", Status.FAILED, attempts=0, crashes=1, max_crashes=1)
    case.tell("f", Happened.ENQUEUED, Status.QUEUED, 0, None)
    case.tell("f", Happened.CLAIMED, Status.PROCESSING, 1)
    case.tell("f", Happened.FAILED, Status.FAILED, 2)


def crash_of_the_living(case: Case) -> None:
    case.robbed("r", stalled=True)
    case.jobs["r"] = case.jobs["r"]._replace(crashes=1)


EXPIRED = "lease 1 expired, worker host/1/abc123 is presumed dead"
COUNTED = f"{EXPIRED} (crash 1 of 50)"


def robbed_again(case: Case, why: str) -> None:
    """Lost first by one who then died, for this reason; and once more by one who lives, which alone is counted."""
    case.enqueue("r")
    case.run("r", 1, None)
    case.run("r", 2.5, 4.5, token=3, pid=2)
    case.run("r", 4.1, 5, token=5, pid=3)
    case.jobs["r"] = job("r", lease_token=5, result_json="5", crashes=1)
    case.tell("r", Happened.ENQUEUED, Status.QUEUED, 0, None)
    case.tell("r", Happened.CLAIMED, Status.PROCESSING, 1)
    case.tell("r", Happened.LOST, Status.QUEUED, 2.4, note=why)
    case.tell("r", Happened.CLAIMED, Status.PROCESSING, 2.5, 3, pid=2)
    case.tell("r", Happened.LOST, Status.QUEUED, 4, 3, note=COUNTED)
    case.tell("r", Happened.CLAIMED, Status.PROCESSING, 4.1, 5, pid=3)
    case.tell("r", Happened.SUCCEEDED, Status.SUCCEEDED, 5, 5)
    case.line(What.FAULT, 1.2, name="kill", pid=1)


def crash_of_the_living_beside_a_loss_that_is_none(case: Case) -> None:
    robbed_again(case, f"{EXPIRED} ({UNCOUNTED})")


def crash_of_the_living_beside_one_that_was_taken_back(case: Case) -> None:
    robbed_again(case, COUNTED)
    case.tell("r", Happened.REFUSED, Status.SUCCEEDED, 5.1, 1, note=f"late; {ACQUITTED}")


def crash_of_the_living_beside_a_failure(case: Case) -> None:
    case.clean("f")
    case.histories["id-f"].pop()
    case.tell("f", Happened.LOST, Status.QUEUED, 1.5, note=COUNTED)
    case.tell("f", Happened.CLAIMED, Status.PROCESSING, 1.6, 3, pid=2)
    case.tell("f", Happened.FAILED, Status.FAILED, 2, 3, note="ValueError: no")
    case.jobs["f"] = job("f", Status.FAILED, lease_token=3, crashes=1)
    case.line(What.FAULT, 9, name="kill", pid=2)


def revived(case: Case) -> None:
    case.tell("a", Happened.RETRIED, Status.QUEUED, 5, None)
    case.jobs["a"] = job("a", Status.QUEUED)


def changed_after_its_end(case: Case) -> None:
    case.tell("a", Happened.LOST, Status.QUEUED, 5)
    case.jobs["a"] = job("a", Status.QUEUED)


def lease_of_an_ended_job(case: Case) -> None:
    case.jobs["a"] = case.jobs["a"]._replace(lease_expires_at=at(99))


def token_fell(case: Case) -> None:
    case.jobs["a"] = case.jobs["a"]._replace(lease_token=0)


def wrong_token_ended(case: Case) -> None:
    case.histories["id-a"][-1] = replace(case.histories["id-a"][-1], token=7)
    case.jobs["a"] = case.jobs["a"]._replace(result_json="7")


def too_many_crashes(case: Case) -> None:
    case.jobs["a"] = case.jobs["a"]._replace(crashes=51)


def key_held_twice(case: Case) -> None:
    for name in ("a", "b"):
        case.jobs[name] = job(name, Status.QUEUED, unique_key="k", unique_queued="k")
        case.histories[f"id-{name}"] = case.histories[f"id-{name}"][:1]


def key_shared_over_time(case: Case) -> None:
    case.lines = [replace(line, key="k") if line.what is What.INVOKED else line for line in case.lines]


def limit_passed_over_time(case: Case) -> None:
    case.lines = [replace(line, key="k", limit=1) if line.what is What.INVOKED else line for line in case.lines]


def tick_twice(case: Case) -> None:
    for name in ("a", "b"):
        case.jobs[name] = case.jobs[name]._replace(schedule="nightly", tick=at(0))


def history_out_of_order(case: Case) -> None:
    case.histories["id-a"][1] = replace(case.histories["id-a"][1], number=5)


def cancelled_and_run(case: Case) -> None:
    case.jobs["a"] = job("a", Status.CANCELLED, attempts=0, lease_token=0)
    case.histories["id-a"] = case.histories["id-a"][:1]
    case.tell("a", Happened.CANCELLED, Status.CANCELLED, 0.5, None)


def blocked_for_nothing(case: Case) -> None:
    case.jobs["a"] = job("a", Status.BLOCKED, limit_key="k", limit=1, blocked_by="limit:k", attempts=0)
    case.histories["id-a"] = case.histories["id-a"][:1]
    case.tell("a", Happened.BLOCKED, Status.BLOCKED, 0.5, None)


def miscounted(case: Case) -> None:
    case.shown = {("default", Status.SUCCEEDED): 2}


def effect_without_a_file(case: Case) -> None:
    case.effects["id-a"] = 0


PLANTED: list[tuple[Callable[[Case], None], str, str]] = [
    (lost, "lost", "id-a"),
    (unexpected, "unexpected", "id-x"),
    (enqueued_twice, "unexpected", "id-a2"),
    (unfinished, "unfinished", "id-a"),
    (misjudged, "misjudged", "id-a"),
    (token_twice, "dup_in_lease", "ran twice"),
    (robbed_of_a_healthy_worker, "dup_in_lease", "still ran"),
    (begun_late, "begun_late", "id-r"),
    (late_accepted, "late_accepted", "result of token 1 was accepted under token 3"),
    (ended_after_loss, "late_accepted", "after it was lost"),
    (spent, "spent", "id-a"),
    (failed_unbegun, "failed_unbegun", "id-f"),
    (failed_unbegun, "crashes_of_the_living", "id-f"),
    (crash_of_the_living, "crashes_of_the_living", "1 crashes are counted, 0 were"),
    (crash_of_the_living_beside_a_loss_that_is_none, "crashes_of_the_living", "id-r: 1 crashes are counted, 0 were"),
    (crash_of_the_living_beside_one_that_was_taken_back, "crashes_of_the_living", "id-r"),
    (crash_of_the_living_beside_a_failure, "crashes_of_the_living", "id-f: 1 crashes are counted, 0 were"),
    (revived, "violations", "I1 id-a was revived"),
    (changed_after_its_end, "violations", "I1 id-a"),
    (lease_of_an_ended_job, "violations", "I2"),
    (token_fell, "violations", "I2"),
    (wrong_token_ended, "violations", "I3"),
    (too_many_crashes, "violations", "I5"),
    (key_held_twice, "violations", "I6 k is held"),
    (key_shared_over_time, "violations", "I6 3 live"),
    (limit_passed_over_time, "violations", "I7 3 of k"),
    (tick_twice, "violations", "I8"),
    (history_out_of_order, "violations", "I9"),
    (cancelled_and_run, "violations", "I10"),
    (blocked_for_nothing, "violations", "I11"),
    (miscounted, "violations", "I12"),
    (effect_without_a_file, "violations", "witness"),
]


@pytest.mark.parametrize(("plant", "figure", "told"), PLANTED, ids=[f"{one[0].__name__}-{one[1]}" for one in PLANTED])
def test_what_is_planted_is_found(plant: Callable[[Case], None], figure: str, told: str) -> None:
    case = Case()
    for name in ("a", "b", "c"):
        case.clean(name)
    plant(case)
    report = case.report()
    assert any(told in one for one in report.broken.get(figure, ())), report.told() or "nothing was found"


def test_a_second_run_after_a_frozen_workers_lease_is_counted_but_allowed() -> None:
    case = Case()
    case.robbed("r", stalled=True)
    case.effects["id-r"] = 2
    case.tell("r", Happened.REFUSED, Status.SUCCEEDED, 5)
    report = case.report()
    assert not report.broken, report.told()
    assert (report.dup_total, report.late_refused, report.effects_twice) == (1, 1, 1)


def test_of_runs_that_begin_when_a_frozen_process_goes_on_one_is_allowed() -> None:
    case = Case()
    case.robbed("r", stalled=True)
    moved(case, What.BEGUN, "r", 3.41)
    assert not case.report().broken, case.report().told()
    case.robbed("s", stalled=False)
    moved(case, What.BEGUN, "s", 3.42)
    assert len(case.report().begun_late) == 1


def test_a_key_is_not_held_by_what_a_frozen_process_goes_on_with() -> None:
    case = Case()
    case.robbed("r", stalled=True)
    moved(case, What.ENDED, "r", 8)
    case.clean("next", 6, 7)
    case.lines = [replace(line, key="k") if line.what is What.INVOKED else line for line in case.lines]
    case.lines = [replace(line, at=line.at + 5) if line.name == "next" else line for line in case.lines]
    assert not case.report().broken, case.report().told()


def test_the_crash_of_a_worker_that_was_killed_is_counted_rightly() -> None:
    case = Case()
    crash_of_the_living(case)
    case.line(What.FAULT, 1.25, name="kill", pid=1)
    assert not case.report().broken, case.report().told()


def test_the_crash_of_a_process_that_a_job_had_alone_is_its_own() -> None:
    case = Case()
    case.clean("a")
    case.jobs["a"] = case.jobs["a"]._replace(crashes=1)
    assert case.report().crashes_of_the_living
    end = case.histories["id-a"].pop()
    case.tell("a", Happened.CRASHED, Status.RETRYING, 1.5)
    case.tell("a", Happened.PROMOTED, Status.QUEUED, 1.6, None)
    case.tell("a", Happened.CLAIMED, Status.PROCESSING, 1.7, 2)
    case.tell("a", Happened.SUCCEEDED, Status.SUCCEEDED, 2, 2)
    case.jobs["a"] = case.jobs["a"]._replace(lease_token=2, result_json="2")
    assert end.token == 1
    assert not case.report().broken, case.report().told()


def blocked_while_another_stood_still(*, type_: str = "block") -> Case:
    """The job of a blocked loop was lost and taken by another while a third process stood still."""
    case = Case(one_file=True)
    case.robbed("r", stalled=False)
    case.jobs["r"] = case.jobs["r"]._replace(type=type_)
    case.line(What.STALLED, 2.35, pid=9, seconds=1.3)
    return case


def test_on_one_file_a_process_that_stands_still_may_have_kept_all_others_from_writing() -> None:
    case = blocked_while_another_stood_still()
    assert not case.report().broken, case.report().told()


def test_a_file_that_was_written_to_meanwhile_was_not_held() -> None:
    case = blocked_while_another_stood_still()
    case.clean("other", 1.4, 1.8)
    case.tell("other", Happened.REFUSED, Status.SUCCEEDED, 2.2)
    assert "id-r" in case.report().dup_in_lease[0]


def test_a_held_file_excuses_nobody_who_could_have_stopped_and_no_other_store() -> None:
    assert blocked_while_another_stood_still(type_="work").report().dup_in_lease
    case = blocked_while_another_stood_still()
    case.one_file = False
    assert case.report().dup_in_lease


def test_a_run_that_is_gone_without_a_word_was_there_until_it_last_acted() -> None:
    for acted, beside in ((2.0, False), (3.0, True)):
        case = Case()
        case.robbed("r", stalled=False)
        case.lines = [line for line in case.lines if not (line.what is What.ENDED and line.token == 1)]
        for when in (1.5, acted):
            case.line(What.ACTED, when, job="id-r", token=1, pid=1)
        assert bool(case.report().dup_in_lease) is beside


def test_recovery_is_counted_from_the_kill_to_the_next_begin() -> None:
    case = Case()
    case.robbed("r", stalled=False)
    case.lines = [line for line in case.lines if not (line.what is What.ENDED and line.token == 1)]
    case.line(What.FAULT, 1.25, name="kill", pid=1)
    report = case.report()
    assert not report.broken, report.told()
    assert list(report.recovery) == pytest.approx([1.25])


def test_only_who_worked_before_can_resume() -> None:
    case = Case()
    for name, begun, pid in (("a", 1, 1), ("b", 1, 2), ("c", 4.5, 1), ("d", 8, 3)):
        case.enqueue(name)
        case.run(name, begun, begun + 0.1, pid=pid)
    case.line(What.FAULT, 2, name="silence")
    case.line(What.HEALED, 4, name="silence")
    assert list(case.report().resume) == pytest.approx([0.5])


def test_a_hand_back_is_counted_from_the_end_of_the_grace_or_the_second_signal() -> None:
    for second, expected in ((None, 0.7), (1.5, 1.0)):
        case = Case()
        case.enqueue("h")
        case.jobs["h"] = job("h", Status.QUEUED, attempts=0)
        case.tell("h", Happened.ENQUEUED, Status.QUEUED, 0, None)
        case.tell("h", Happened.CLAIMED, Status.PROCESSING, 1)
        case.tell("h", Happened.RELEASED, Status.QUEUED, 2.5)
        case.line(What.FAULT, 1.5, name="term", pid=1)
        if second is not None:
            case.line(What.FAULT, second, name="term", pid=1)
        assert list(case.report().handback) == pytest.approx([expected])


def test_an_enqueue_that_raised_may_have_made_a_job_or_not() -> None:
    case = Case()
    case.clean("a")
    for name in ("u", "v"):
        case.line(What.INVOKED, 0, name=name)
        case.line(What.UNKNOWN, 1, name=name, note="StoreUnavailable")
    case.jobs["u"] = job("u")
    case.histories["id-u"] = [*case.histories["id-a"]]
    report = case.report()
    assert not report.broken, report.told()
    assert (report.acknowledged, report.unknown, report.unknown_there) == (1, 2, 1)


def test_stalls_are_added_up_once_each() -> None:
    case = Case()
    case.line(What.FAULT, 1, name="freeze", pid=1)
    case.line(What.STALLED, 3, pid=1, seconds=1.5)
    case.line(What.HEALED, 2, name="freeze", pid=1)
    case.line(What.STALLED, 3, pid=2, seconds=3)
    case.line(What.FAULT, 5, name="outage")
    assert hindered(case.lines, 1, BASE, BASE + 10) == pytest.approx(2 + 5)


def test_reports_add_up() -> None:
    one = Report(acknowledged=100, lost=("a",), recovery=(1.0, 2.0))
    both = together([one, replace(one, acknowledged=200, lost=())])
    assert (both.acknowledged, both.lost, both.bound, len(both.recovery)) == (300, ("a",), 0.01, 4)
    assert spread(both.recovery) == {"p50": 1.0, "p95": 2.0, "max": 2.0}
    assert both.figures()["lost"] == 1


def test_the_history_is_one_line_per_thing_and_one_file_per_effect(tmp_path: Path) -> None:
    one, other = History(tmp_path), History(tmp_path)
    one.tell(What.INVOKED, name="a")
    assert [line.name for line in other.lines()] == ["a"]
    one.effect("j", 1)
    other.effect("j", 2)
    assert other.effects() == {"j": 2}
    assert [line.what for line in one.lines()] == [What.INVOKED, What.EFFECT, What.EFFECT]
    assert (one.first("x"), other.first("x")) == (True, False)
    one.close()
    other.close()
