from __future__ import annotations

import pytest

from tests.core.making import a_job
from windlass.core.events import Event, Hub, JobEnded, JobEnqueued, JobsPromoted, StoreRecovered
from windlass.core.gathering import Claims, Ended, Ending, Ends
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.status import Status
from windlass.core.transition import Transition

AN_EVENT = JobsPromoted(3)


def test_every_listener_is_told_in_the_order_they_came() -> None:
    hub, heard = Hub(), list[tuple[str, Event]]()
    hub.listen(lambda event: heard.append(("first", event)))
    hub.listen(lambda event: heard.append(("second", event)))
    hub.tell(AN_EVENT)
    assert heard == [("first", AN_EVENT), ("second", AN_EVENT)]


def test_a_listener_that_raises_stops_neither_the_work_nor_the_others() -> None:
    hub, heard = Hub(), list[Event]()

    def broken(event: Event) -> None:
        raise ValueError("no")

    hub.listen(broken)
    hub.listen(heard.append)
    hub.tell(AN_EVENT)
    hub.tell(AN_EVENT)
    assert heard == [AN_EVENT, AN_EVENT]


def test_of_each_listener_that_raises_is_told_once_however_it_listens() -> None:
    told: list[tuple[object, str]] = []
    hub = Hub(raised=lambda listener, error: told.append((listener, str(error))))

    def broken(event: Event) -> None:
        raise ValueError(event.name)

    class Gatherer:
        def __call__(self, event: Event) -> None:
            raise ValueError(event.name)

        def take_claims(self, claims: Claims) -> None:
            raise ValueError("claims")

        def take_start(self, job: Job) -> None:
            raise ValueError("start")

        def take_ends(self, ends: Ends) -> None:
            raise ValueError("ends")

    gatherer = Gatherer()
    hub.listen(broken)
    hub.listen(gatherer)
    for _ in range(2):
        hub.claimed([a_job()])
        hub.started(a_job())
        hub.tell(AN_EVENT)
    assert told == [(gatherer, "claims"), (broken, "job.claimed")]


def test_a_listener_cannot_swallow_the_end_of_the_program() -> None:
    def stop(event: Event) -> None:
        raise KeyboardInterrupt

    hub = Hub()
    hub.listen(stop)
    with pytest.raises(KeyboardInterrupt):
        hub.tell(AN_EVENT)


def test_a_listener_that_was_removed_hears_no_more_and_may_be_removed_again() -> None:
    hub, heard = Hub(), list[Event]()
    remove = hub.listen(heard.append)
    hub.tell(AN_EVENT)
    remove()
    remove()
    hub.tell(AN_EVENT)
    assert heard == [AN_EVENT]


def test_one_that_listens_twice_is_told_twice_and_removed_once_each() -> None:
    hub, heard = Hub(), list[Event]()
    remove_one = hub.listen(heard.append)
    hub.listen(heard.append)
    hub.tell(AN_EVENT)
    assert len(heard) == 2
    remove_one()
    remove_one()
    hub.tell(AN_EVENT)
    assert len(heard) == 3


def test_a_hub_nobody_listens_to_is_silent() -> None:
    hub = Hub()
    assert hub.silent
    hub.tell(AN_EVENT)
    remove = hub.listen(lambda event: None)
    silent = [hub.silent]
    remove()
    assert [*silent, hub.silent] == [False, True]


def test_a_listener_may_come_and_go_while_an_event_is_told() -> None:
    hub, heard = Hub(), list[str]()

    def once(event: Event) -> None:
        heard.append("once")
        remove()
        hub.listen(lambda event: heard.append("later"))

    remove = hub.listen(once)
    hub.tell(AN_EVENT)
    assert heard == ["once"]
    hub.tell(AN_EVENT)
    assert heard == ["once", "later"]


@pytest.mark.parametrize(("to", "finished"), [(Status.FAILED, True), (Status.RETRYING, False)])
def test_the_end_of_an_attempt_says_whether_it_was_that_of_the_job(to: Status, finished: bool) -> None:
    transition = Transition(id="1", token=1, to=to, happened=Happened(to.value))
    assert JobEnded(a_job(), transition, 0.1).finished is finished


def test_events_are_values() -> None:
    assert JobEnqueued("1", "mail", "default") == JobEnqueued("1", "mail", "default")
    assert JobEnqueued("1", "mail", "default") != JobEnqueued("1", "mail", "other")
    with pytest.raises(AttributeError):
        StoreRecovered("claim", 1.5).seconds = 2  # type: ignore[misc]  # the refusal is tested


class Noted:
    """A fallback that notes what it is told."""

    def __init__(self, *, silent: bool) -> None:
        self.silent = silent
        self.heard: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.heard.append(event)


def test_the_fallback_is_told_unless_somebody_listens_in_its_place() -> None:
    noted = Noted(silent=True)
    hub = Hub(noted)
    hub.listen(lambda _: None)
    hub.tell(AN_EVENT)
    remove = hub.listen(lambda _: None, in_place_of_fallback=True)
    hub.tell(AN_EVENT)
    assert noted.heard == [AN_EVENT]
    remove()
    remove()
    hub.tell(AN_EVENT)
    assert noted.heard == [AN_EVENT, AN_EVENT]


def test_a_hub_is_as_silent_as_its_fallback_while_nobody_listens() -> None:
    assert Hub().silent
    assert Hub(Noted(silent=True)).silent
    assert not Hub(Noted(silent=False)).silent


class Gathered(Noted):
    """A listener that only counts."""

    def __init__(self) -> None:
        super().__init__(silent=False)
        self.batches: list[object] = []

    def take_claims(self, claims: Claims) -> None:
        self.batches.append(dict(claims))

    def take_start(self, job: Job) -> None:
        self.batches.append(job)

    def take_ends(self, ends: Ends) -> None:
        self.batches.append(dict(ends))


def an_end(happened: Happened, to: Status, seconds: float = 0.1) -> Ended:
    return a_job(), Transition(id="1", token=1, to=to, happened=happened), seconds, None


WELL, CANCELLED = an_end(Happened.SUCCEEDED, Status.SUCCEEDED), an_end(Happened.CANCELLED, Status.CANCELLED)


def test_who_only_counts_is_given_what_happens_to_every_job_by_the_batch_and_no_event_of_each() -> None:
    gathered, hub = Gathered(), Hub()
    remove = hub.listen(gathered)
    job = a_job()._replace(type="send", queue="mail", wait_ms=1500)
    for silent in (False, True):
        assert hub.silent is silent
        hub.claimed([job, job._replace(wait_ms=None), job._replace(wait_ms=500)])
        hub.started(job)
        hub.ended([(job, WELL[1], 0.1, None), (job, CANCELLED[1], 0.2, None), (job, WELL[1], 0.3, None)])
        hub.tell(AN_EVENT)
        remove()
    well = Ending("send", "mail", Happened.SUCCEEDED, Status.SUCCEEDED, crashed=False)
    cancelled = well._replace(happened=Happened.CANCELLED, to=Status.CANCELLED)
    assert gathered.batches == [{("send", "mail"): [1.5, 0.5]}, job, {well: [0.1, 0.3], cancelled: [0.2]}]
    assert gathered.heard == [AN_EVENT]


def test_who_is_silent_is_told_of_each_end_that_did_not_go_well_and_of_no_other() -> None:
    silent, loud = Noted(silent=True), Noted(silent=False)
    hub = Hub(silent)
    hub.claimed([a_job()])
    hub.started(a_job())
    hub.ended([WELL, CANCELLED, an_end(Happened.FAILED, Status.FAILED)])
    assert [told.transition.happened.value for told in ends_in(silent.heard)] == ["cancelled", "failed"]
    assert len(silent.heard) == 2
    hub.listen(loud)
    hub.claimed([a_job(), a_job()])
    hub.started(a_job())
    hub.ended([WELL, CANCELLED])
    assert [type(told).__name__ for told in loud.heard] == ["JobClaimed"] * 2 + ["JobStarted"] + ["JobEnded"] * 2
    assert len(silent.heard) == 3


def ends_in(heard: list[Event]) -> list[JobEnded]:
    return [told for told in heard if isinstance(told, JobEnded)]


def test_who_gathers_and_raises_stops_neither_the_work_nor_the_others() -> None:
    class Broken(Gathered):
        def take_claims(self, claims: Claims) -> None:
            raise ValueError

        def take_start(self, job: Job) -> None:
            raise ValueError

        def take_ends(self, ends: Ends) -> None:
            raise ValueError

    hub, gathered, noted = Hub(), Gathered(), Noted(silent=False)
    for one in (Broken(), gathered, noted):
        hub.listen(one)
    hub.claimed([a_job()])
    hub.started(a_job())
    hub.ended([WELL])
    assert (len(gathered.batches), len(noted.heard)) == (3, 3)


def test_one_that_speaks_up_later_hears_of_what_begins_after_the_next_claim() -> None:
    noted = Noted(silent=True)
    hub = Hub(noted)
    hub.claimed([a_job()])
    noted.silent = False
    hub.claimed([a_job()])
    hub.started(a_job())
    assert [type(told).__name__ for told in noted.heard] == ["JobClaimed", "JobStarted"]
