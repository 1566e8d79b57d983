"""Surrounding: what an application lays around its enqueues sees each job about to be enqueued, and may change it."""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, cast

from windlass.client.options import lay_over
from windlass.core.draft import FAIR_FIELDS, fair_key
from windlass.core.errors import HandlerError, SettingsError
from windlass.core.keys import shown
from windlass.core.sealing import masked
from windlass.core.values import plain
from windlass.core.words import read_words

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Generator, Mapping, Sequence
    from datetime import datetime, timedelta
    from types import TracebackType

    from windlass.client.options import Asked
    from windlass.core.around import Layer
    from windlass.core.draft import Draft, Options, Priority
    from windlass.core.registry import Registry

T = TypeVar("T")


class Changes(TypedDict, total=False):
    """What a layer may change. Keys and limits stay as they were asked for: they were made of the arguments already."""

    delay: float | timedelta | None
    at: datetime | None
    expires: float | timedelta | None
    priority: Priority
    queue: str
    max_attempts: int
    max_crashes: int
    timeout: float | timedelta | None
    user: str | None
    entity: tuple[str, str | int] | None
    correlation: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any] | None


WORDS = tuple(Changes.__annotations__)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A job about to be enqueued, as a layer sees it. It is never changed: `using` makes another, to be yielded."""

    draft: Draft
    _laid: _Laid = field(repr=False, compare=False)

    @property
    def id(self) -> str:
        """The id that the job will have, unless another is found to be there already."""
        return self.draft.id

    @property
    def type(self) -> str:
        """The name of its handler."""
        return self.draft.type

    @property
    def queue(self) -> str:
        """Where it will wait."""
        return self.draft.options.queue

    @property
    def payload(self) -> Any:
        """Its arguments, as plain values; `***` for a secret."""
        return masked(self.draft.payload_json)

    @property
    def metadata(self) -> dict[str, Any]:
        """What was given as metadata so far."""
        text = self.draft.options.metadata_json
        return {} if text is None else cast("dict[str, Any]", plain(text))

    @property
    def options(self) -> Options:
        """All else."""
        return self.draft.options

    def using(self, **changes: Unpack[Changes]) -> Outgoing:
        """The same job with other options."""
        options = self._laid.over(self.draft.options, changes)
        draft = self.draft._replace(options=options)
        if options.fair_by in FAIR_FIELDS:
            draft = draft._replace(fair_key=fair_key(options, {}))
        return Outgoing(draft, self._laid)


class _Laid:
    """Options that were changed alike are one value, so that a store writes their jobs in one piece."""

    def __init__(self) -> None:
        self._last: tuple[Options, Changes, Options] | None = None

    def over(self, options: Options, changes: Changes) -> Options:
        last = self._last
        if last is not None and last[0] is options and last[1] == changes:
            return last[2]
        read_words(cast("Mapping[str, object]", changes), WORDS, "option that a layer may change")
        laid = lay_over(options, cast("Asked", changes))
        self._last = (options, changes, laid)
        return laid


@asynccontextmanager
async def surrounded(registry: Registry, drafts: Sequence[Draft]) -> AsyncGenerator[list[Draft], None]:
    """While inside, the layers are around all of these: entered in order before, left in reverse order after."""
    laid = _Laid()
    async with AsyncExitStack() as stack:
        made: list[Draft] = []
        for draft in drafts:
            job = Outgoing(draft, laid)
            for layer in registry.around_enqueue(draft.type):
                job = _changed(layer, job, await stack.enter_async_context(layer.around(job)))
            made.append(job.draft)
        yield sent(registry, stack, made)


@contextmanager
def surrounded_now(registry: Registry, drafts: Sequence[Draft]) -> Generator[list[Draft], None, None]:
    """The same on a thread without a loop, as inside a synchronous transaction. Nothing there may wait."""
    laid = _Laid()
    with ExitStack() as stack:
        made: list[Draft] = []
        for draft in drafts:
            job = Outgoing(draft, laid)
            for layer in registry.around_enqueue(draft.type):
                job = _changed(layer, job, stack.enter_context(_WithoutLoop(layer, job)))
            made.append(job.draft)
        yield sent(registry, stack, made)


def sent(registry: Registry, stack: AsyncExitStack | ExitStack, drafts: list[Draft]) -> list[Draft]:
    """These as they go to the store: inside a span, if the application is traced, for as long as the stack is open."""
    return drafts if registry.spans is None else [*stack.enter_context(registry.spans.sending(drafts))]


class _WithoutLoop:
    """A layer of either kind around one job, entered and left at once."""

    def __init__(self, layer: Layer[Outgoing], job: Outgoing) -> None:
        self._layer, self._around = layer, layer.around(job)

    def __enter__(self) -> object:
        return _at_once(self._layer, self._around.__aenter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _at_once(self._layer, self._around.__aexit__(kind, error, trace))


def _at_once(layer: Layer[Any], step: Coroutine[Any, Any, T]) -> T:
    """Take a coroutine to its end without a loop."""
    try:
        step.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    step.close()
    raise SettingsError(
        f"{layer.source} waits for something, which it cannot in enqueue_sync inside a transaction: there is no event"
        " loop on this thread. Write it as a function that yields without awaiting"
    )


def _changed(layer: Layer[Any], job: Outgoing, given: object) -> Outgoing:
    if given is None:
        return job
    if isinstance(given, Outgoing) and (given.draft.id, given.draft.type) == (job.draft.id, job.draft.type):
        return given
    raise HandlerError(
        f"{layer.source} yielded {shown(given)}: expected the job that it was given, job.using(…), or nothing"
    )
