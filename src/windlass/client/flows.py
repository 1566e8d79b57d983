"""Jobs not yet enqueued, alone or one after the other: `bind(...).then(...)` and `app.group([...]).then(...)`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast, overload

from windlass.client.handle import Handle
from windlass.client.operating import operate
from windlass.core.draft import Awaits, Draft, Options, Taken
from windlass.core.errors import DuplicateJob, HandlerError, SettingsError
from windlass.core.keys import shown
from windlass.stores.contract import Action, Created, Duplicate, Full, Inserted, Order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windlass.client.client import Client
    from windlass.core.handler import Declaration
    from windlass.core.payload import Codec

R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)

OnFailure: TypeAlias = Literal["cancel", "run"]
"""what becomes of a job when one that it waits for fails or is cancelled"""

MOST_IN_A_FLOW = 10_000
_AWAITS: dict[str, Awaits] = {"cancel": "success", "run": "end"}


class Takes(Protocol[T_contra, S_co]):
    """A job that can be called with one value: what comes out of the step before it."""

    @property
    def declaration(self) -> Declaration: ...
    @property
    def options(self) -> Options: ...

    def bind(self, value: T_contra, /) -> Bound[S_co]: ...


@dataclass(frozen=True, slots=True)
class Bound(Generic[R_co]):
    """A job not yet enqueued: a handler with its arguments, compared by what it would enqueue."""

    type: str
    payload_json: str
    options: Options
    client: Client = field(compare=False, repr=False)
    declaration: Declaration = field(compare=False, repr=False)

    async def enqueue(self, tx: object | None = None) -> Handle[R_co]:
        """Enqueue it; returns when it is durable."""
        return await self.client.enqueue(self.draft(), self.declaration.codec, tx)

    def enqueue_sync(self, tx: object | None = None) -> Handle[R_co]:
        """The same from code without an event loop; inside a transaction it runs on this very thread."""
        return self.client.enqueue_sync(self.draft(), self.declaration.codec, tx)

    def draft(self) -> Draft:
        """What would be enqueued here and now: inside a running job, as its child."""
        return self.client.draft(self.declaration, self.payload_json, self.options)

    @overload
    def then(self, step: Bound[S], *, on_failure: OnFailure = "cancel") -> Flow[S]: ...
    @overload
    def then(self, step: Takes[R_co, S], *, on_failure: OnFailure = "cancel") -> Flow[S]: ...

    def then(self, step: Bound[S] | Takes[Any, S], *, on_failure: OnFailure = "cancel") -> Flow[S]:
        """Let another follow when it has succeeded: a job with its own arguments, or one that takes the result.

        With `on_failure="run"` the next runs however this one ends; otherwise it is cancelled when this one fails.
        """
        flow: Flow[Any] = Flow(self.client, ((self,),))
        return flow.then(cast("Bound[S]", step), on_failure=on_failure)


@dataclass(frozen=True, slots=True)
class Group(Generic[R_co]):
    """Jobs that run side by side. `then` adds the one that runs when all of them have."""

    client: Client = field(repr=False)
    jobs: tuple[Bound[R_co], ...]

    @overload
    def then(self, step: Bound[S], *, on_failure: OnFailure = "cancel") -> Flow[S]: ...
    @overload
    def then(self, step: Takes[list[R_co], S], *, on_failure: OnFailure = "cancel") -> Flow[S]: ...

    def then(self, step: Bound[S] | Takes[Any, S], *, on_failure: OnFailure = "cancel") -> Flow[S]:
        """All of these, and when they have succeeded the next: with its own arguments, or taking the list of results.

        With `on_failure="run"` the next runs when all have ended, however; otherwise it is cancelled when one fails.
        """
        flow: Flow[Any] = Flow(self.client, (self.jobs,), listed=True)
        return flow.then(cast("Bound[S]", step), on_failure=on_failure)

    async def enqueue(self, tx: object | None = None) -> list[Handle[R_co]]:
        """Enqueue all of them, without a next, in one durable step."""
        return list((await self._alone().enqueue(tx)).jobs)

    def enqueue_sync(self, tx: object | None = None) -> list[Handle[R_co]]:
        """The same from code without an event loop; inside a transaction it runs on this very thread."""
        return list(self._alone().enqueue_sync(tx).jobs)

    def _alone(self) -> Flow[Any]:
        return Flow(self.client, (self.jobs,))


def group(client: Client, jobs: Iterable[Bound[S]]) -> Group[S]:
    """Jobs side by side; at least one, at most 10,000."""
    given = tuple(jobs)
    if not 1 <= len(given) <= MOST_IN_A_FLOW:
        raise SettingsError(f"the group has {len(given):,} jobs: expected 1 to {MOST_IN_A_FLOW:,}")
    return Group(client, given)


@dataclass(frozen=True, slots=True)
class Flow(Generic[R_co]):
    """Steps that run one after the other, the first of which may be a group; typed by the result of the last."""

    client: Client = field(repr=False)
    steps: tuple[tuple[Bound[Any], ...], ...]
    listed: bool = False
    """the first step is a group: what takes its result takes a list"""

    @overload
    def then(self, step: Bound[S], *, on_failure: OnFailure = "cancel") -> Flow[S]: ...
    @overload
    def then(self, step: Takes[R_co, S], *, on_failure: OnFailure = "cancel") -> Flow[S]: ...

    def then(self, step: Bound[S] | Takes[Any, S], *, on_failure: OnFailure = "cancel") -> Flow[S]:
        """One more step after the last."""
        if on_failure not in _AWAITS:
            raise SettingsError(f"on_failure is {shown(on_failure)}: expected 'cancel' or 'run'")
        if step.options.delay is not None or step.options.run_at is not None:
            raise SettingsError("a job that waits for others has no time of its own: leave out delay and at")
        awaits = _AWAITS[on_failure]
        if isinstance(step, Bound):
            made: Bound[Any] = replace(step, options=replace(step.options, awaits=awaits))
        else:
            made = self._taking(step, awaits)
        return Flow(self.client, (*self.steps, (made,)), self.listed)

    def _taking(self, step: Takes[Any, Any], awaits: Awaits) -> Bound[Any]:
        declaration, before = step.declaration, self.steps[-1]
        if awaits != "success":
            raise SettingsError(
                f"{declaration.name} takes what comes before it, which a failure would not give:"
                f' with on_failure="run" give it arguments of its own, {declaration.name}.bind(...)'
            )
        name = declaration.codec.first
        if name is None:
            raise HandlerError(f"{declaration.source} takes no argument: write {declaration.name}.bind()")
        listed = self.listed and len(self.steps) == 1
        taken = Taken(name, len(before) if listed else None)
        options = replace(step.options, awaits=awaits, takes=taken.text())
        return Bound(declaration.name, "{}", options, self.client, declaration)

    async def enqueue(self, tx: object | None = None) -> FlowHandle[R_co]:
        """Enqueue all steps in one durable step; the handle is that of the last."""
        drafts = self._drafts()
        client = self.client
        joined = client.transaction(tx)
        store = client.store if joined is not None else await client.ready()
        async with client.surrounded([draft for draft, _ in drafts]) as made:
            verdicts = await store.jobs.insert(made, joined)
            if joined is None and _refused(drafts, verdicts) is not None:
                await self._take_back(verdicts)
            return self._handle(drafts, verdicts, joined)

    async def _take_back(self, verdicts: Sequence[Inserted]) -> None:
        """Nothing of a flow that cannot be whole should run; what has begun already ends by itself."""
        made = [one.id for one in verdicts if isinstance(one, Created)]
        orders = [Order(id=id_, action=Action.CANCEL, actor="client", reason="its flow was refused") for id_ in made]
        await operate(self.client, orders)

    def enqueue_sync(self, tx: object | None = None) -> FlowHandle[R_co]:
        """The same from code without an event loop; inside a transaction it runs on this very thread."""
        joined = self.client.transaction(tx)
        if joined is None:
            return self.client.run_sync(self.enqueue())
        drafts = self._drafts()
        with self.client.surrounded_now([draft for draft, _ in drafts]) as made:
            return self._handle(drafts, self.client.store.jobs.insert_now(made, joined), joined)

    def _handle(
        self, drafts: Sequence[tuple[Draft, Codec]], verdicts: Sequence[Inserted], tx: object | None
    ) -> FlowHandle[R_co]:
        handles = self.client.handles(drafts, verdicts, tx)
        refused = _refused(drafts, verdicts)
        if isinstance(refused, Duplicate):
            raise DuplicateJob(refused.id, refused.key)
        last = handles[-1]
        return FlowHandle(self.client, last.id, created=last.created, codec=drafts[-1][1], jobs=tuple(handles))

    def _drafts(self) -> list[tuple[Draft, Codec]]:
        if sum(len(step) for step in self.steps) > MOST_IN_A_FLOW:
            raise SettingsError(f"the flow has more than {MOST_IN_A_FLOW:,} jobs")
        steps: list[list[tuple[Draft, Codec]]] = []
        for number, step in enumerate(self.steps):
            before = steps[-1][0][0] if steps else None
            made = [self._draft(one, before, single=number > 1 or not self.listed) for one in step]
            if not steps:
                made = _correlated(made)
            else:
                steps[-1] = [(draft._replace(next_id=made[0][0].id), codec) for draft, codec in steps[-1]]
            steps.append(made)
        return _sparing(list(chain.from_iterable(steps)))

    def _draft(self, one: Bound[Any], before: Draft | None, *, single: bool) -> tuple[Draft, Codec]:
        declaration = one.declaration
        options = one.options if before is None else _inherit(one.options, before, single=single)
        draft = self.client.draft(declaration, one.payload_json, options)
        return draft, declaration.codec


class FlowHandle(Handle[R_co]):
    """The last job of a flow, with those before it."""

    __slots__ = ("jobs",)

    def __init__(
        self, client: Client, job_id: str, *, created: bool, codec: Codec | None, jobs: tuple[Handle[Any], ...]
    ) -> None:
        super().__init__(client, job_id, created=created, codec=codec)
        self.jobs = jobs
        """every job of the flow, in order"""

    async def cancel_all(self, reason: str | None = None) -> int:
        """Cancel what has not ended, running jobs are asked to stop; how many that were."""
        orders = [Order(id=one.id, action=Action.CANCEL, actor="client", reason=reason) for one in reversed(self.jobs)]
        answers = await operate(self._client, orders)
        return sum(answer.verdict in ("done", "requested") for answer in answers)


def _inherit(options: Options, before: Draft, *, single: bool) -> Options:
    """What a step does not say itself it has from the step before, so that a flow can be found as a whole."""
    given = before.options
    changed: dict[str, Any] = {
        name: getattr(given, name)
        for name in ("correlation_id", "user_id", "entity_name", "entity_id")
        if getattr(options, name) is None
    }
    if single:
        changed["parent_id"] = before.id
    return replace(options, **changed)


def _correlated(step: list[tuple[Draft, Codec]]) -> list[tuple[Draft, Codec]]:
    """A flow without a correlation of its own has the id of its first job."""
    first = step[0][0]
    if first.options.correlation_id is not None:
        return step
    # Drafts that were asked for alike go on sharing their options: stores write such in one piece.
    known = {id(draft.options): replace(draft.options, correlation_id=first.id) for draft, _ in step}
    return [(draft._replace(options=known[id(draft.options)]), codec) for draft, codec in step]


def _sparing(drafts: list[tuple[Draft, Codec]]) -> list[tuple[Draft, Codec]]:
    """Let nothing that hands a result on, or takes one, replace a job.

    What was there before would hand on nothing, and is to run with arguments of its own.
    """
    taking = _taking(drafts)
    known: dict[int, Options] = {}
    spared: list[tuple[Draft, Codec]] = []
    for draft, codec in drafts:
        options = draft.options
        if options.on_conflict == "replace" and (draft.next_id in taking or draft.id in taking):
            if id(options) not in known:
                known[id(options)] = replace(options, on_conflict="raise")
            spared.append((draft._replace(options=known[id(options)]), codec))
        else:
            spared.append((draft, codec))
    return spared


def _taking(drafts: Sequence[tuple[Draft, Codec]]) -> set[str]:
    return {draft.id for draft, _ in drafts if draft.options.takes is not None}


def _refused(drafts: Sequence[tuple[Draft, Codec]], verdicts: Sequence[Inserted]) -> Full | Duplicate | None:
    # A job that was there before does not hand its result to this flow: one that is to take it would lack it.
    taking = _taking(drafts)
    for (draft, _), verdict in zip(drafts, verdicts, strict=True):
        if isinstance(verdict, Full):
            return verdict
        if isinstance(verdict, Duplicate) and (draft.options.on_conflict == "raise" or draft.next_id in taking):
            return verdict
    return None
