"""One or more examples of every event, for tests of who listens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from windlass.core import events
from windlass.core.history import Happened
from windlass.core.job import Error, Job
from windlass.core.status import Status
from windlass.core.transition import Transition

NOW = datetime(2026, 11, 30, tzinfo=UTC)
JOB = Job(
    id="j1",
    type="send",
    queue="mail",
    payload_json="{}",
    status=Status.PROCESSING,
    priority=100,
    run_at=NOW,
    attempts=1,
    max_attempts=5,
    crashes=0,
    max_crashes=3,
    timeout=None,
    created_at=NOW,
    updated_at=NOW,
    queued_at=NOW,
    correlation_id="c1",
    worker_id="w1",
    user_id="ann",
    trace=f"00-{'4b' * 16}-{'0f' * 8}-01",
)

ERROR = Error(type="ValueError", message="no good", traceback="Traceback: …")


def ended(to: Status, happened: Happened, **more: object) -> events.JobEnded:
    return events.JobEnded(JOB, Transition(id="j1", token=1, to=to, happened=happened, **more), 0.5)  # type: ignore[arg-type]  # any


ALL: list[events.Event] = [
    events.JobEnqueued("j1", "send", "mail", "c1", "ann"),
    events.JobEnqueuedInTransaction("j1", "send", "mail", False, "c1", "ann"),
    events.JobReplaced("j1", "send", "mail", "c1", "ann"),
    events.JobDeduplicated("j1", "send", "mail", "receipt:1", "c1", "ann"),
    events.JobClaimed(JOB),
    events.JobOperated("j1", "cancel", "ann", "too late", requested=True),
    events.JobOperated("j1", "replay", "ann", replay_id="j2"),
    events.JobOperatedInTransaction("j1", "retry", "ann"),
    events.JobSignalled("j1", "approved", "ann", freed=True),
    events.JobRescued(JOB, Status.QUEUED),
    events.JobRescued(JOB, Status.FAILED),
    events.JobExpired("j1"),
    events.JobDiscarded("j1", "send", "ann", "a test order"),
    events.JobStarted(JOB),
    ended(Status.SUCCEEDED, Happened.SUCCEEDED),
    ended(Status.RETRYING, Happened.RETRYING, error=ERROR, delay=timedelta(seconds=2)),
    ended(Status.FAILED, Happened.FAILED, error=ERROR),
    ended(Status.CANCELLED, Happened.CANCELLED, note="no longer needed"),
    ended(Status.SCHEDULED, Happened.SNOOZED, delay=timedelta(seconds=2), note="too early", give_back=True),
    ended(Status.QUEUED, Happened.RELEASED, note="the worker was stopping", give_back=True),
    ended(Status.BLOCKED, Happened.SUSPENDED, note="waits", delay=timedelta(days=1), give_back=True),
    ended(Status.RETRYING, Happened.CRASHED, error=ERROR, crashed=True, delay=timedelta(seconds=2)),
    ended(Status.FAILED, Happened.CRASHED, error=ERROR, crashed=True),
    ended(Status.BLOCKED, Happened.BLOCKED, error=ERROR, note="parked", give_back=True),
    events.ResultRefused(JOB, Transition(id="j1", token=1, to=Status.SUCCEEDED, happened=Happened.SUCCEEDED)),
    events.JobFenced(JOB),
    events.JobStuck(JOB, 1),
    events.LoopBlocked(2.0, ("send",)),
    events.WorkerStarted("w1", "sqlite:///x", (), ("send",), 20),
    events.WorkerWarned("w1", "queues", "queue 'mial' is named by no handler here"),
    events.WorkerStopping("w1", 2, timedelta(seconds=30)),
    events.WorkerStopped("w1", 3, 1),
    events.JobsPromoted(3),
    events.JobsUnblocked(2),
    events.JobsAged(1),
    events.JobsPruned(2),
    events.ScheduleFired("morning", NOW, "j1"),
    events.ScheduleSkipped("morning", NOW),
    events.ScheduleMissed("morning", NOW, 3),
    events.LoopAnswered(0.002),
    events.StoreCalled("claim", 0.004, went_well=False),
    events.StoreTroubled("claim", "gone"),
    events.StoreRecovered("claim", 1.5),
]
