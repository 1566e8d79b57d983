"""The law, case by case: what each store does with a draft and a job about to start, and with a signal.

`core.admission` says the first, `core.kept` the second.

The tables are enumerated, and what is expected is computed by the law from the same facts that the store is brought to:
a store that decides in a statement or a script of its own cannot deviate in any of them unseen.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import product
from typing import Any, Literal, NamedTuple

import pytest

from tests.contract.steps import (
    AGAIN_LATER,
    BOOM,
    DONE,
    HOUR,
    NEVER_AGAIN,
    RELEASED,
    SNOOZED,
    get,
    last_entry,
    put,
    settle,
    start,
    statuses,
    told,
)
from tests.support.drafts import INSTANT, draft, want
from tests.support.until import until
from windlass.core.admission import (
    Candidate,
    Created,
    Holder,
    Inserted,
    InUse,
    Known,
    Replaced,
    Waiting,
    admit,
    judge,
    replacement,
    status_of_new,
)
from windlass.core.draft import Draft
from windlass.core.history import Happened
from windlass.core.job import Job
from windlass.core.kept import LARGEST, Received, Signal, read_kept, receive
from windlass.core.kept import MOST as MOST_NAMES
from windlass.core.limit import Limit
from windlass.core.outcome import Cancelled, Gathering, Unfit
from windlass.core.outcome import Outcome as End
from windlass.core.outcome import Waiting as WaitsFor
from windlass.core.rate import Rate
from windlass.core.status import Status
from windlass.core.unique import Unique
from windlass.stores.contract import Action, Answer, Keep, Lease, Operated, Order, Store, Verdict

pytestmark = pytest.mark.timeout(120)

# Inserting.

Place = Literal["scheduled", "queued", "flow", "limit", "processing", "retrying"]
PLACES: tuple[Place, ...] = ("scheduled", "queued", "flow", "limit", "processing", "retrying")
"""how the holder of a unique key waits or runs"""
MOST = {"unbounded": None, "room": 2, "full": 1}
"""the largest depth of a queue in which one job waits"""
TIMES: dict[str, dict[str, Any]] = {"now": {}, "later": {"delay": HOUR}, "awaits": {"awaits": "end"}}
HOLDERS: dict[str, dict[str, Any]] = {
    "scheduled": {"delay": HOUR},
    "flow": {"awaits": "end"},
    "limit": {"limit": Limit("slot", 1)},
}
CONFLICTS: dict[str, dict[str, Any]] = {
    "existing": {"on_conflict": "existing"},
    "replace": {"on_conflict": "replace"},
    "replace, put off long enough": {"on_conflict": "replace", "longest_wait": INSTANT},
}


class Case(NamedTuple):
    """The facts that one draft meets."""

    is_there: bool
    same: bool
    unique: Place | Literal["free"] | None
    conflict: str
    room: str
    time: str


def _cases() -> list[Case]:
    """All, but for those that differ in nothing that can matter: conflicts of nobody, times of a job that is there."""
    uniques: tuple[Any, ...] = (None, "free", *PLACES)
    table = map(Case._make, product((False, True), (False, True), uniques, CONFLICTS, MOST, TIMES))
    return [
        case
        for case in table
        if (case.unique in PLACES or case.conflict == "existing") and not (case.is_there and case.time != "now")
    ]


class Scene(NamedTuple):
    """A case, brought about in a store: the draft, and what is there before it."""

    case: Case
    draft: Draft
    same: Draft | None
    holder: Draft | None

    @staticmethod
    def of(case: Case, n: int) -> Scene:
        unique = None if case.unique is None else f"u{n}"
        made = draft(
            payload='{"new":1}',
            queue=f"q{n}",
            priority=50,
            unique=unique,
            idempotency_window=HOUR,
            **CONFLICTS[case.conflict],
            **TIMES[case.time],
        )._replace(idempotency_key=f"i{n}" if case.same else None)
        same = draft(queue="same", idempotency_window=HOUR)._replace(idempotency_key=f"i{n}") if case.same else None
        return Scene(case, made, same, _holder(case.unique, f"u{n}") if case.unique in PLACES else None)


def _holder(place: str, key: str) -> Draft:
    unique = Unique(key, key if place in ("processing", "retrying") else None)
    return draft(place, queue="holders", unique=unique, **HOLDERS.get(place, {}))


async def _bring_about(store: Store, scenes: Sequence[Scene]) -> None:
    holders = [scene.holder for scene in scenes if scene.holder is not None]
    before = [draft("before", queue="holders", next_id=one.id) for one in holders if one.options.awaits is not None]
    await put(store, draft("slot", queue="holders", limit=Limit("slot", 1)))
    assert len(await store.jobs.claim(want(types={"slot"}))) == 1
    await put(store, *before, *holders, *[scene.same for scene in scenes if scene.same is not None])
    await put(store, *[draft(id=scene.draft.id, queue="there") for scene in scenes if scene.case.is_there])
    await put(store, *[draft("filler", queue=scene.draft.options.queue) for scene in scenes])
    bounds = [(scene.draft.options.queue, MOST[scene.case.room]) for scene in scenes]
    for queue, most in bounds:
        if most is not None:
            await store.queues.limit_depth(queue, most)
    assert await store.jobs.claim(want(1000, types={"limit"})) == []
    assert await store.jobs.claim(want(1000, types={"processing"})) != []
    for job in await store.jobs.claim(want(1000, types={"retrying"})):
        await settle(store, job, AGAIN_LATER)


class Outcome(NamedTuple):
    """What an insert answers, and what is to be read of the draft's job and of the holder afterwards."""

    verdict: Inserted
    draft: tuple[Any, ...] | None
    holder: tuple[Any, ...] | None


def _shown(job: Job | None, happened: Sequence[Happened]) -> tuple[Any, ...] | None:
    if job is None:
        return None
    return job.status, job.blocked_by, job.payload_json, job.priority, job.unique_key, tuple(happened)


async def _read(store: Store, verdict: Inserted, scene: Scene) -> Outcome:
    ids = [scene.draft.id, scene.draft.id if scene.holder is None else scene.holder.id]
    [made, holder] = await store.views.get(ids)
    lines = [await told(store, id_) for id_ in ids]
    return Outcome(verdict, _shown(made, lines[0]), None if scene.holder is None else _shown(holder, lines[1]))


def _expected(scene: Scene, holder: Job | None, before: Sequence[Happened]) -> Outcome:
    """By the law."""
    case, made = scene.case, scene.draft
    known = Known(
        is_there=case.is_there,
        same=None if scene.same is None else scene.same.id,
        holder=None if holder is None else Holder(holder.id, holder.status),
        depth=1,
        most=MOST[case.room],
    )
    verdict = judge(made, known)
    kept = _shown(holder, before)
    if isinstance(verdict, Replaced):
        assert holder is not None
        newer = replacement(made.options, Waiting(holder.blocked_by, HOUR), made.options.delay or timedelta(0))
        blocked_by = holder.blocked_by if newer.status is Status.BLOCKED else None
        taken_over = (newer.status, blocked_by, made.payload_json, made.options.priority, holder.unique_key)
        return Outcome(verdict, None, (*taken_over, (*before, Happened.REPLACED)))
    if verdict is None:
        status = status_of_new(made.options, later=case.time == "later")
        blocked_by = f"flow:{made.id}" if status is Status.BLOCKED else None
        new = (status, blocked_by, made.payload_json, made.options.priority, made.unique_queued)
        return Outcome(Created(made.id), (*new, (Happened.ENQUEUED,)), kept)
    there = (Status.QUEUED, None, "{}", 100, None, (Happened.ENQUEUED,)) if case.is_there else None
    return Outcome(verdict, there, kept)


async def _insert(store: Store, scenes: Sequence[Scene], together: bool) -> list[Inserted]:  # a parameter
    if not together:
        return [verdict for scene in scenes for verdict in await store.jobs.insert([scene.draft])]
    # Those that await others may take a way of their own: the others are not to go along.
    verdicts: dict[str, Inserted] = {}
    for awaits in (False, True):
        some = [scene.draft for scene in scenes if (scene.case.time == "awaits") == awaits]
        verdicts |= dict(zip([one.id for one in some], await store.jobs.insert(some), strict=True))
    return [verdicts[scene.draft.id] for scene in scenes]


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "together"])
async def test_an_insert_does_with_each_draft_what_the_law_says(store: Store, together: bool) -> None:
    scenes = [Scene.of(case, n) for n, case in enumerate(_cases())]
    await _bring_about(store, scenes)
    expected: dict[Case, Outcome] = {}
    for scene in scenes:
        holder = None if scene.holder is None else await get(store, scene.holder.id)
        expected[scene.case] = _expected(scene, holder, [] if holder is None else await told(store, holder.id))
    verdicts = await _insert(store, scenes, together)
    found = {scene.case: await _read(store, verdict, scene) for scene, verdict in zip(scenes, verdicts, strict=True)}
    assert {case: (found[case], expected[case]) for case in expected if found[case] != expected[case]} == {}
    assert len({type(outcome.verdict) for outcome in expected.values()}) == 4


# Claiming.

WINDOW = timedelta(milliseconds=100)
LINED_UP, FIRST = 200, 10
"""priorities behind and before the candidate's"""


class Rated(NamedTuple):
    """The candidate's rate: how many may start, how many have, who waits, and whether it was called from its line."""

    n: int
    starts: int
    in_line: int = 0
    called: bool = False


class Meeting(NamedTuple):
    """What one candidate meets."""

    limit: Literal["room", "full", "filled by this claim"] | None
    key: Literal["free", "held", "taken by this claim", "own"] | None
    rate: Rated | None


NOT_CALLED = [Rated(n, starts, in_line) for n in (1, 2, 3) for starts, in_line in ((0, 0), (1, 0), (1, 1), (2, 1))]
# One that is called has the room of its rate; a start in the same claim may have come before it.
CALLED = [
    Rated(n, starts, in_line, True) for n, starts, in_line in ((1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1), (2, 1, 0))
]
# One that was handed back has started once.
HANDED_BACK = [Rated(n, 1) for n in (1, 2)]


def _meetings() -> list[Meeting]:
    limits: tuple[Any, ...] = (None, "room", "full", "filled by this claim")
    keys: tuple[Any, ...] = (None, "free", "held", "taken by this claim")
    first = map(Meeting._make, product(limits, keys, (None, *NOT_CALLED, *CALLED)))
    return [*first, *map(Meeting._make, product(limits, ("own",), (None, *HANDED_BACK)))]


class Stage(NamedTuple):
    """A meeting, with the candidate and all that it is to meet."""

    meeting: Meeting
    n: int
    candidate: Draft

    @staticmethod
    def of(meeting: Meeting, n: int) -> Stage:
        limit = None if meeting.limit is None else Limit(f"l{n}", 2 if meeting.limit == "room" else 1)
        unique = None if meeting.key is None else Unique(running=f"k{n}")
        return Stage(meeting, n, draft(queue=f"q{n}", limit=limit, unique=unique, rate=_rate(meeting.rate, n)))

    def helper(self, type_: str, **options: Any) -> Draft:
        return draft(type_, queue=self.candidate.options.queue, **options)

    def holders(self, *, now: bool) -> list[Draft]:
        """Who takes a slot or key, before the claim or in it."""
        # In the claim they come first, and are of the candidate's type.
        made: dict[str, Any] = {"type_": "noop", "priority": FIRST} if now else {"type_": "holder"}
        drafts: list[Draft] = []
        if self.meeting.limit in (("filled by this claim",) if now else ("room", "full")):
            drafts.append(self.helper(**made, limit=Limit(f"l{self.n}", 2)))
        if self.meeting.key == ("taken by this claim" if now else "held"):
            drafts.append(self.helper(**made, unique=Unique(running=f"k{self.n}")))
        return drafts

    def starts(self, *, now: bool) -> list[Draft]:
        """Who starts under the rate, before the claim or in it."""
        rate = self.meeting.rate
        if rate is None or self.meeting.key == "own" or rate.called != now:
            return []
        made: dict[str, Any] = {"type_": "noop", "priority": FIRST} if now else {"type_": "holder"}
        return [self.helper(**made, rate=Rate(9, WINDOW if now else HOUR, f"r{self.n}")) for _ in range(rate.starts)]


def _rate(rate: Rated | None, n: int) -> Rate | None:
    return None if rate is None else Rate(rate.n, WINDOW if rate.called else HOUR, f"r{n}")


def _in_line(stages: Sequence[Stage]) -> list[Draft]:
    return [
        stage.helper(
            "line", priority=LINED_UP, rate=Rate(1, (stage.candidate.options.rate or Rate(1)).per, f"r{stage.n}")
        )
        for stage in stages
        for _ in range(0 if stage.meeting.rate is None else stage.meeting.rate.in_line)
    ]


async def _be_called(store: Store, stages: Sequence[Stage]) -> None:
    """Spend the rates of these, so that the candidates are blocked, and wait until they are called."""
    spend = [stage.helper("holder", priority=FIRST, rate=stage.candidate.options.rate) for stage in stages]
    twice = [
        stage.helper("holder", priority=FIRST, rate=stage.candidate.options.rate)
        for stage in stages
        if stage.meeting.rate is not None and stage.meeting.rate.n == 2
    ]
    await put(store, *spend, *twice, *[stage.candidate for stage in stages], *_in_line(stages))
    for stage in stages:
        await store.jobs.claim(want(types={"holder", "noop", "line"}, queues={stage.candidate.options.queue: 9}))
    ids = [stage.candidate.id for stage in stages]
    assert await statuses(store, ids) == [Status.BLOCKED] * len(ids)

    async def called() -> bool:
        await store.jobs.promote(1000)
        return await statuses(store, ids) == [Status.QUEUED] * len(ids)

    await until(called, "the candidates to be called")


async def _hand_back(store: Store, stages: Sequence[Stage]) -> None:
    """Let these start once, and hand them back."""
    await put(store, *[stage.candidate for stage in stages])
    for stage in stages:
        [job] = await store.jobs.claim(want(queues={stage.candidate.options.queue: 9}))
        await settle(store, job, RELEASED)


async def _set(store: Store, stages: Sequence[Stage]) -> None:
    called = [stage for stage in stages if stage.meeting.rate is not None and stage.meeting.rate.called]
    own = [stage for stage in stages if stage.meeting.key == "own"]
    others = [stage for stage in stages if stage not in called and stage not in own]
    await _be_called(store, called)
    await _hand_back(store, own)
    before = [one for stage in stages for one in (*stage.holders(now=False), *stage.starts(now=False))]
    await put(store, *before)
    started = 0
    while started < len(before):
        jobs = await store.jobs.claim(want(1000, types={"holder"}))
        assert jobs or jobs.more, "all that the candidates are to meet has room to start"
        started += len(jobs)
    lined_up = _in_line([*own, *others])
    await put(store, *lined_up)
    while (jobs := await store.jobs.claim(want(1000, types={"line"}))).more:
        pass
    assert jobs == []
    assert await statuses(store, [one.id for one in lined_up]) == [Status.BLOCKED] * len(lined_up)
    await put(store, *[stage.candidate for stage in others])
    await put(store, *[one for stage in stages for one in (*stage.holders(now=True), *stage.starts(now=True))])


def _admitted(stage: Stage) -> str | None:
    """By the law: what the candidate has to wait for."""
    limit, key, rate = stage.meeting
    made = stage.candidate
    candidate = Candidate(
        limit_key=made.limit_key,
        limit=made.limit or 1,
        running_key=None if key == "own" else made.unique_running,
        rate_key=made.rate_key,
        rate_n=rate.n if rate else 0,
        called=rate.called if rate else False,
    )
    in_use = InUse(
        slots=0 if limit is None else 1,
        held=key in ("held", "taken by this claim"),
        starts=rate.starts if rate else 0,
        in_line=rate.in_line if rate else 0,
    )
    by = admit(candidate, in_use)
    return None if by is None else by.text


async def test_a_claim_does_with_each_candidate_what_the_law_says(store: Store) -> None:
    stages = [Stage.of(meeting, n) for n, meeting in enumerate(_meetings())]
    await _set(store, stages)
    found: dict[Meeting, Any] = {}
    expected: dict[Meeting, Any] = {}
    for stage in stages:
        id_, by = stage.candidate.id, _admitted(stage)
        attempts = (await get(store, id_)).attempts
        claimed = await store.jobs.claim(want(queues={stage.candidate.options.queue: 9}))
        job, line = await get(store, id_), await last_entry(store, id_)
        found[stage.meeting] = id_ in {one.id for one in claimed}, job.status, job.blocked_by, job.attempts, line.note
        to = Status.PROCESSING if by is None else Status.BLOCKED
        expected[stage.meeting] = by is None, to, by, attempts + (by is None), by
        assert line.happened is (Happened.CLAIMED if by is None else Happened.BLOCKED), stage.meeting
    assert {
        meeting: (found[meeting], expected[meeting]) for meeting in found if found[meeting] != expected[meeting]
    } == {}
    assert {(by or "").partition(":")[0] for *_, by in expected.values()} == {"", "limit", "unique", "rate"}


# Signals.

ENDS: dict[str, End | None] = {
    "runs": None,
    "waits for it": WaitsFor("approved", HOUR),
    "waits for another": WaitsFor("approve", HOUR),
    "gathers": Gathering("approved"),
    "cannot be read": Unfit(BOOM),
    "is queued": RELEASED,
    "is scheduled": SNOOZED,
    "is retried": AGAIN_LATER,
    "has succeeded": DONE,
    "has failed": NEVER_AGAIN,
    "was cancelled": Cancelled("enough"),
}
"""how the attempt ended of a job that is sent the signal `approved`"""
KEPT: dict[str, dict[str, str]] = {
    "nothing": {},
    "it": {"signal:approved": "null"},
    "others": {"signal:approve": "1", "step:approved": "1", "saved": "1"},
    "all but one name": {f"step:{n}": "1" for n in range(MOST_NAMES - 1)},
    "all names": {f"step:{n}": "1" for n in range(MOST_NAMES)},
    "all names, and it": {"signal:approved": "1"} | {f"step:{n}": "1" for n in range(MOST_NAMES - 1)},
    "nearly all bytes": {f"step:{n}": "1" * (LARGEST - 6 - (19 if n == 0 else 0)) for n in range(4)},
}
"""what such a job keeps before; the last has room for `true` and not for `false`"""
VALUES = {"small": "true", "of five bytes": "false", "as large": "1" * LARGEST, "too large": "1" * (LARGEST + 1)}


class Sent(NamedTuple):
    """A signal, and how the job stands that it is sent to."""

    end: str
    kept: str
    value: str


def _sent() -> list[Sent]:
    """Every place with every load, and the sizes of values where size can matter."""
    sized = {("runs", "nothing"), ("runs", "others"), ("waits for it", "nothing"), ("waits for it", "nearly all bytes")}
    table = map(Sent._make, product(ENDS, KEPT, VALUES))
    return [sent for sent in table if sent.value == "small" or (sent.end, sent.kept) in sized]


async def _stand(store: Store, sent: Sent, n: int) -> Job:
    """A job that has kept so much and stands so."""
    job = await start(store, draft(f"t{n}"))
    keeps = [Keep(Lease(job.id, job.lease_token), name, text) for name, text in KEPT[sent.kept].items()]
    assert set(await store.jobs.keep(keeps)) <= {Verdict.APPLIED}
    end = ENDS[sent.end]
    if isinstance(end, Gathering):
        await put(store, draft("child", delay=HOUR, next_id=job.id))
    if end is not None:
        assert await settle(store, job, end) is Verdict.APPLIED
    return await get(store, job.id)


def _received(job: Job, signal: Signal) -> tuple[Any, ...]:
    """By the law: what is answered, and what is read of the job and of its history afterwards."""
    kept = read_kept(job.kept_json)
    received = receive(job.status, job.blocked_by, kept, signal)
    answer = Answer(Operated(received.value), job.status)
    if received in (Received.KEPT, Received.DONE):
        kept[f"signal:{signal.name}"] = signal.json
    goes_on = received is Received.DONE
    status, line = (Status.QUEUED, None) if goes_on else (job.status, job.blocked_by)
    return answer, status, line, kept, received in (Received.KEPT, Received.DONE)


async def test_a_signal_does_with_each_job_what_the_law_says(store: Store) -> None:
    found: dict[Sent, Any] = {}
    expected: dict[Sent, Any] = {}
    for n, sent in enumerate(_sent()):
        job = await _stand(store, sent, n)
        signal = Signal("approved", VALUES[sent.value])
        lines = await told(store, job.id)
        [answer] = await store.jobs.operate([Order(id=job.id, action=Action.SIGNAL, actor="ann", signal=signal)])
        after = await get(store, job.id)
        expected[sent] = _received(job, signal)
        more = (await told(store, job.id))[len(lines) :]
        found[sent] = answer, after.status, after.blocked_by, read_kept(after.kept_json), more == [Happened.SIGNALLED]
        assert len(more) <= 1, sent
    assert [sent for sent in found if found[sent] != expected[sent]] == []
    assert {answer.verdict for answer, *_ in expected.values()} == {Operated(received.value) for received in Received}
