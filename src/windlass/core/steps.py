"""Durable steps: what a running job remembers from one attempt to the next, and how it suspends. `Ctx` is their door.

Nothing is replayed: a handler begins at its top in every attempt, and finds by name what it has done before.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeVar

from windlass.core.draft import ids_after
from windlass.core.errors import (
    ChildFailed,
    HandlerError,
    PayloadInvalid,
    SettingsError,
    StepInvalid,
    TransactionRefused,
    WindlassError,
)
from windlass.core.kept import (
    GATHER,
    MOST,
    MOST_BYTES,
    SAVED,
    check_fits,
    gather_name,
    read_kept,
    signal_name,
    size_of,
    step_name,
)
from windlass.core.keys import shown
from windlass.core.outcome import Gathering, Outcome, Released, Waiting
from windlass.core.returned import PLAIN, codec_of
from windlass.core.signals import LONGEST, Suspend, as_duration
from windlass.core.spans import stepping
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from windlass.core.draft import Draft
    from windlass.core.job import Job
    from windlass.core.payload import ResultCodec
    from windlass.core.remembers import Gatherable, Remembers

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)
Errors: TypeAlias = Literal["raise", "return"]
MOST_GATHERED = 10_000


class Steps:
    """What one attempt knows of its job's memory."""

    __slots__ = ("_bytes", "_check", "_job", "_remembers", "_used", "kept", "suspended")

    def __init__(self, job: Job, remembers: Remembers | None, check: Callable[[], None]) -> None:
        self._job, self._remembers, self._check = job, remembers, check
        self._used: set[str] = set()
        self.kept = read_kept(job.kept_json)
        self._bytes = 0 if job.kept_json is None else len(job.kept_json.encode())
        """at least as many as all names and values have"""
        self.suspended: Outcome | None = None
        """as what the attempt has been suspended, once it has"""

    # Steps.

    async def step(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], key: str | None) -> Any:
        """What the function returned when it first went well."""
        label, codec = self._begin(step_name(name, key)), codec_of(function)
        self._refuse_secrets(label, codec)
        with stepping("step", name, key, remembered=label in self.kept):
            if label not in self.kept:
                text = self._text(label, codec, await self._called(function, args))
                await self._keep(label, text)
                self._safe_point()
            return self._value(label, codec)

    def step_now(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], key: str | None) -> Any:
        """The same on the handler's own thread."""
        label, codec = self._begin(step_name(name, key)), codec_of(function)
        self._refuse_secrets(label, codec)
        with stepping("step", name, key, remembered=label in self.kept):
            if label not in self.kept:
                value = function(*args)
                if inspect.isawaitable(value):
                    _close(value)
                    raise HandlerError(
                        f"{label} of job {self._job.id} calls {shown(function)}, which is asynchronous: a handler that"
                        " is not calls functions that are not"
                    )
                self.run(self._keep(label, self._text(label, codec, value)))
                self._safe_point()
            return self._value(label, codec)

    async def _called(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if self._remembers is None or _is_asynchronous(function):
            value = function(*args)
        else:
            value = await self._remembers.in_thread(functools.partial(function, *args))
        return await value if inspect.isawaitable(value) else value

    # A cursor.

    @property
    def saved(self) -> Any:
        """What was saved last."""
        text = self.kept.get(SAVED)
        return None if text is None else json.loads(text)

    async def save(self, value: Any, tx: object | None) -> None:
        """Keep it; inside the caller's transaction it is no safe point, which would roll that back."""
        self._go_on()
        text = self._text(SAVED, PLAIN, value)
        if tx is None:
            await self._keep(SAVED, text)
            self._safe_point()
        else:
            await self._in_transaction().keep_in(tx, SAVED, text)
            self.kept[SAVED] = text

    def save_now(self, value: Any, tx: object | None) -> None:
        """The same on the handler's own thread."""
        if tx is None:
            self.run(self.save(value, None))
            return
        self._go_on()
        text = self._text(SAVED, PLAIN, value)
        self._in_transaction().keep_in_now(tx, SAVED, text)
        self.kept[SAVED] = text

    def _in_transaction(self) -> Remembers:
        if self._remembers is None:
            raise TransactionRefused("there is no store here to save in: the handler was called directly")
        return self._remembers

    # Signals.

    def wait(self, name: str, timeout: float | timedelta | None) -> Any:
        """The signal's value, None where it did not come in time; suspends until it is known."""
        self._go_on()
        label = signal_name(name)
        for_ = LONGEST if timeout is None else as_duration(timeout, "the timeout of the wait")
        with stepping("wait", name, None, remembered=label in self.kept):
            if label not in self.kept:
                self._in_worker("wait for a signal")
                self._suspend(Waiting(name, for_))
            return json.loads(self.kept[label])

    # Children.

    async def gather(self, name: str, jobs: Sequence[Gatherable[Any]], errors: Errors) -> list[Any]:
        """The results of the children in order; suspends until all have ended."""
        if errors not in ("raise", "return"):
            raise SettingsError(f"errors is {shown(errors)}: expected 'raise' or 'return'")
        label = self._begin(gather_name(name))
        if label not in self.kept and not jobs:
            return []
        with stepping("gather", name, None, remembered=label in self.kept):
            return await self._gathered(name, label, jobs, errors)

    async def _gathered(self, name: str, label: str, jobs: Sequence[Gatherable[Any]], errors: Errors) -> list[Any]:
        remembers = self._in_worker("gather jobs")
        ids, fresh = await self._ids(label, remembers, len(jobs))
        children = [None] * len(ids) if fresh else await remembers.look(ids)
        await self._insert_missing(label, remembers, jobs, dict(zip(ids, children, strict=True)))
        ended = [child for child in children if child is not None and child.status.finished]
        if len(ended) < len(ids):
            self._suspend(Gathering(name))
        codecs = {job.type: job.declaration.codec for job in jobs}
        results = [_result(name, child, codecs) for child in ended]
        for result in results:
            if isinstance(result, ChildFailed) and errors == "raise":
                raise result
        return results

    async def _ids(self, label: str, remembers: Remembers, n: int) -> tuple[list[str], bool]:
        """Of the children, and whether they are new. They are known before any is inserted: an insert may be tried
        again by another attempt, and must then be of the same jobs.
        """
        fresh = label not in self.kept
        if fresh:
            if n > MOST_GATHERED:
                raise SettingsError(f"{label} has {n:,} jobs: expected at most {MOST_GATHERED:,}")
            await self._keep(label, json.dumps([remembers.new_id(), n]))
        first, count = json.loads(self.kept[label])
        return ids_after(first, count), fresh

    async def _insert_missing(
        self, label: str, remembers: Remembers, jobs: Sequence[Gatherable[Any]], children: Mapping[str, Job | None]
    ) -> None:
        missing = [number for number, child in enumerate(children.values()) if child is None]
        if not missing:
            return
        if len(jobs) != len(children):
            raise StepInvalid(
                self._job.id,
                label,
                f"was begun with {len(children):,} jobs, of which some are missing, and is given"
                f" {len(jobs):,}: gather the same jobs in every attempt, or let a step decide which",
            )
        ids = list(children)
        await remembers.insert([_child(jobs[number].draft(), ids[number], self._job.id) for number in missing])

    # What these share.

    def _begin(self, label: str) -> str:
        self._go_on()
        if label in self._used:
            raise StepInvalid(
                self._job.id,
                label,
                "was asked for twice in one attempt: give each a name of its own, or pass key= in a loop",
            )
        self._used.add(label)
        return label

    def _refuse_secrets(self, label: str, codec: ResultCodec) -> None:
        if codec.holds_secrets:
            raise StepInvalid(
                self._job.id,
                label,
                "returns a Secret, which steps do not keep: fetch it in each attempt, or return what names it",
            )

    def _text(self, label: str, codec: ResultCodec, value: Any) -> str:
        try:
            text = codec.encode(value)
        except PayloadInvalid as error:
            raise StepInvalid(self._job.id, label, f"cannot be kept: {error}") from None
        self._check_fits(label, text)
        return text

    def _check_fits(self, label: str, text: str) -> None:
        """Count anew only where there may be no room: else each of a thousand saves would count all that is kept."""
        size = size_of(label, text)
        if self._bytes + size > MOST_BYTES or len(self.kept) >= MOST:
            check_fits(self.kept, label, text, self._job.id)
            self._bytes = sum(size_of(name, kept) for name, kept in self.kept.items() if name != label)
        self._bytes += size

    def _value(self, label: str, codec: ResultCodec) -> Any:
        """As it was kept, in every attempt alike: what differs after a crash only would be found too late."""
        try:
            return codec.decode(self.kept[label])
        except PayloadInvalid as error:
            raise StepInvalid(
                self._job.id,
                label,
                f"was kept in a form that no longer fits: {error}; give the step another name to"
                " have it run again, or let its type read the older form, too",
            ) from None

    async def _keep(self, label: str, text: str) -> None:
        if self._remembers is not None:
            await self._remembers.keep(label, text)
        self.kept[label] = text

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Take one of the asynchronous forms to its end, for a handler that is not asynchronous."""
        if self._remembers is not None:
            return self._remembers.run(call)
        try:
            while True:  # once: without a worker there is nothing to wait for
                call.send(None)
        except StopIteration as end:
            result: T = end.value
            return result

    def _safe_point(self) -> None:
        self._check()
        if self._remembers is not None and self._remembers.stopping:
            self._suspend(Released("the worker is stopping; the job goes on from what it has kept"))

    def _in_worker(self, what: str) -> Remembers:
        if self._remembers is None:
            raise WindlassError(
                f"there is no worker here to {what}: the handler was called directly; run it as a job, or test the"
                " parts before and after by themselves"
            )
        return self._remembers

    def _go_on(self) -> None:
        if self.suspended is not None:
            raise Suspend(self.suspended)

    def _suspend(self, outcome: Outcome) -> NoReturn:
        self.suspended = outcome
        raise Suspend(outcome)

    def refuse_hidden(self, error: BaseException | None) -> None:
        """Refuse that a handler which was suspended ends in another way of its own.

        What is no Exception is the suspension itself, also in a group, or comes from outside, as when a worker that
        stops cancels a handler which is tidying up.
        """
        if self.suspended is None or not (error is None or isinstance(error, Exception)):
            return
        ended = "returned" if error is None else f"raised {type(error).__name__}"
        what = f"suspended as {type(self.suspended).__name__.lower()}"
        raise StepInvalid(
            self._job.id,
            "the handler",
            f"was {what} and {ended} instead: let Suspend pass, a bare except or an"
            " except BaseException must raise it on",
        )


def gathered_as(job: Job, child_id: str) -> tuple[str, int] | None:
    """As what a job gathers a child, and with how many in all; None of a job that it does not gather."""
    for label, text in read_kept(job.kept_json).items():
        kind, _, name = label.partition(":")
        if kind == GATHER:
            first, n = json.loads(text)
            if child_id in ids_after(first, n):
                return name, n
    return None


def _result(name: str, child: Job, codecs: Mapping[str, Any]) -> Any:
    if child.status is not Status.SUCCEEDED or child.result_json is None:
        return ChildFailed(child, name)
    codec = codecs.get(child.type)
    return child.result if codec is None else codec.decode_result(child.result_json)


def _child(draft: Draft, id_: str, parent: str) -> Draft:
    options = draft.options
    if options.on_conflict == "replace":  # a job that was there before would not name this one as its next
        options = replace(options, on_conflict="raise")
    return draft._replace(id=id_, next_id=parent, options=options)


def _close(value: Any) -> None:
    if inspect.iscoroutine(value):
        value.close()


def _is_asynchronous(function: Callable[..., Any]) -> bool:
    called = getattr(function, "__call__", None)  # noqa: B004  # of an object: whether that is asynchronous
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
