from __future__ import annotations

from datetime import timedelta

import pytest

from tests.observability.every_event import ALL, JOB, ended
from windlass import Windlass
from windlass.core import events
from windlass.core.history import Happened
from windlass.core.status import Status
from windlass.observability.measures import MEASURES, Bounds, measured


@pytest.fixture
def bounds() -> Bounds:
    app = Windlass("sqlite:///:memory:")

    @app.job(name="send", queue="mail")
    async def send() -> None: ...

    return Bounds(app.registry)


def counted(event: events.Event, bounds: Bounds) -> dict[str, tuple[float, tuple[str, ...]]]:
    return {one.measure.name: (one.value, one.labels) for one in measured(event, bounds)}


def test_every_measure_comes_of_an_event_and_has_its_labels(bounds: Bounds) -> None:
    more: list[events.Event] = [
        events.JobClaimed(JOB._replace(wait_ms=1500)),
        events.JobsPromoted(3, {"mail": 3}),
        ended(Status.RETRYING, Happened.CRASHED, crashed=True, delay=timedelta(seconds=1)),
    ]
    found = [one for event in (*ALL, *more) for one in measured(event, bounds)]
    assert {one.measure for one in found} == set(MEASURES)
    assert all(len(one.labels) == len(one.measure.labels) for one in found)


def test_an_attempt_is_counted_by_how_it_ended(bounds: Bounds) -> None:
    again = ended(Status.RETRYING, Happened.CRASHED, crashed=True, delay=timedelta(seconds=1))
    assert counted(again, bounds) == {
        "jobs.ended": (1, ("send", "mail", "crashed")),
        "job.run": (0.5, ("send", "mail")),
        "jobs.retried": (1, ("send", "mail")),
        "jobs.crashed": (1, ("send", "mail")),
    }
    handed_back = ended(Status.QUEUED, Happened.RELEASED, give_back=True)
    assert counted(handed_back, bounds) == {"jobs.ended": (1, ("send", "mail", "released"))}
    assert counted(events.JobClaimed(JOB._replace(wait_ms=1500)), bounds) == {"job.wait": (1.5, ("send", "mail"))}


def test_labels_are_bounded_by_what_is_declared_and_worked(bounds: Bounds) -> None:
    strange = events.JobEnqueued("j", "strange", "strange")
    assert counted(strange, bounds) == {"jobs.enqueued": (1, ("other", "other"))}
    measured(events.WorkerStarted("w", "sqlite:///x", ("strange",), (), 1), bounds)
    assert counted(strange, bounds) == {"jobs.enqueued": (1, ("other", "strange"))}
