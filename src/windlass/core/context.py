"""What a running handler sees of its job: the optional first parameter `ctx: Ctx`."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, TypeVarTuple, overload

from windlass.core.errors import SettingsError, TransactionRefused, WindlassError
from windlass.core.job import Progress, storable
from windlass.core.keys import shown
from windlass.core.signals import Cancel
from windlass.core.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from datetime import timedelta

    from windlass.core.errors import ChildFailed
    from windlass.core.job import Job
    from windlass.core.remembers import Gatherable, Remembers
    from windlass.core.steps import Errors

MOST_PROGRESS = 2**53
"""up to here a float counts every whole number"""

R = TypeVar("R")
Ts = TypeVarTuple("Ts")
_current: ContextVar[Ctx] = ContextVar("windlass_ctx")
working: ContextVar[str | None] = ContextVar("windlass_worker", default=None)
"""the id of the worker whose work this is"""


class Completing(Protocol):
    """Ends the running job as succeeded inside its handler's own transaction."""

    async def later(self, tx: object, result: Any) -> None:
        """On an asynchronous driver's transaction."""
        ...

    def now(self, tx: object, result: Any) -> None:
        """On a synchronous driver's, on the calling thread."""
        ...


class Ctx:
    """The running job: its progress, the request to stop, and what it remembers from one attempt to the next.

    Safe to use from the handler's own thread. What ends in `_now` is for handlers that are not asynchronous.
    """

    __slots__ = ("_cancelled", "_completing", "_made", "_report", "job", "remembers")

    def __init__(
        self,
        job: Job,
        report: Callable[[Progress], None],
        cancelled: Callable[[], bool],
        completing: Completing | None = None,
        remembers: Remembers | None = None,
    ) -> None:
        self.job = job
        self._report = report
        self._cancelled = cancelled
        self._completing = completing
        self.remembers = remembers
        self._made: Steps | None = None

    @property
    def id(self) -> str:
        """The job's id. A replay of the job has another: effects that must not happen twice go by `origin`."""
        return self.job.id

    @property
    def origin(self) -> str:
        """The id that stays the same through attempts, crashes and replays: the idempotency key for outside effects."""
        return self.job.origin or self.job.id

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.job.attempts

    @property
    def token(self) -> int:
        """The fencing token of this attempt's lease: grows with every claim, so a resource can refuse an older one."""
        return self.job.lease_token

    @property
    def cancelled(self) -> bool:
        """Whether someone asked this job to stop."""
        return self._cancelled()

    def check(self) -> None:
        """End the job as cancelled here if someone asked for it: a safe point for handlers that run in a thread."""
        if self._cancelled():
            raise Cancel("cancelled on request")

    def progress(self, done: float, of: float | None = None, note: str | None = None) -> None:
        """Say how far the job is. Returns at once; the newest report is written within a fraction of a second."""
        whole = None if of is None else _plain(of)
        self._report(Progress(done=_plain(done), of=whole, note=None if note is None else storable(note)))

    async def complete_in(self, tx: object, result: Any = None) -> None:
        """End the job as succeeded inside the handler's own transaction, so that effect and end commit together.

        Raises LeaseLost, still inside the transaction, when the job is another worker's by now: let it roll back. What
        the handler returns counts no more. If the transaction is rolled back after all, the attempt has failed.
        """
        await self._able().later(tx, result)

    def complete_in_now(self, tx: object, result: Any = None) -> None:
        """The same for handlers that are not asynchronous, on their own thread."""
        self._able().now(tx, result)

    @overload
    async def step(
        self, name: str, function: Callable[[*Ts], Awaitable[R]], *args: *Ts, key: str | None = None
    ) -> R: ...
    @overload
    async def step(self, name: str, function: Callable[[*Ts], R], *args: *Ts, key: str | None = None) -> R: ...

    async def step(self, name: str, function: Callable[[*Ts], Any], *args: *Ts, key: str | None = None) -> Any:
        """Call the function once in the job's life, and give what it returned: in later attempts without calling it.

        The result is durable before this returns. A function that raises is not remembered, and one that ran while its
        worker died may run again. What it returns is kept as JSON by its return annotation, and is given as that reads,
        in the first attempt, too; StepInvalid when it no longer fits. Steps go by their names, not by their order: a
        name stands once in an attempt, and in a loop `key` tells the rounds apart. A function that is not asynchronous
        runs in a thread. Afterwards it is a safe point, as `save` is.
        """
        return await self._steps.step(name, function, args, key)

    def step_now(self, name: str, function: Callable[[*Ts], R], *args: *Ts, key: str | None = None) -> R:
        """`step` for handlers that are not asynchronous; the function runs on their own thread."""
        result: R = self._steps.step_now(name, function, args, key)
        return result

    @property
    def saved(self) -> Any:
        """What was saved last, in this attempt or in one before; None at first."""
        return self._steps.saved

    async def save(self, value: Any, tx: object | None = None) -> None:
        """Have the job remember a value, in place of the one before: durable when this returns.

        A safe point: if the job was asked to cancel it ends here as cancelled, and a worker that is stopping hands it
        back here, its attempt not counted, to go on elsewhere from what was saved. With `tx` the value is kept inside
        the handler's own transaction, as `complete_in` ends a job there; that is no safe point.
        """
        await self._steps.save(value, tx)

    def save_now(self, value: Any, tx: object | None = None) -> None:
        """`save` for handlers that are not asynchronous."""
        self._steps.save_now(value, tx)

    async def wait(self, name: str, timeout: float | timedelta | None = None) -> Any:
        """Wait for a signal: the value it was sent with, or None when it did not come in time (for ever by default).

        Where it has not come yet, the job is suspended: it leaves its worker, its slot and its limits, and begins again
        from its top when the signal comes or the time is up, exactly one of both. The attempt is not counted. A signal
        that was sent before it was waited for is kept until then; of one name the first counts, in every attempt.
        """
        return self._steps.wait(name, timeout)

    def wait_now(self, name: str, timeout: float | timedelta | None = None) -> Any:
        """`wait` for handlers that are not asynchronous."""
        return self._steps.wait(name, timeout)

    @overload
    async def gather(self, name: str, jobs: Iterable[Gatherable[R]]) -> list[R]: ...
    @overload
    async def gather(self, name: str, jobs: Iterable[Gatherable[R]], *, errors: Literal["raise"]) -> list[R]: ...
    @overload
    async def gather(
        self, name: str, jobs: Iterable[Gatherable[R]], *, errors: Literal["return"]
    ) -> list[R | ChildFailed]: ...

    async def gather(self, name: str, jobs: Iterable[Gatherable[Any]], *, errors: Errors = "raise") -> list[Any]:
        """Enqueue jobs as children of this one, and give their results in order when all have ended.

        Meanwhile the job is suspended, as in `wait`. Children are enqueued once, however often this begins again. One
        that failed or was cancelled raises ChildFailed, for which the job is not tried again; with `errors="return"`
        the error stands in its place.
        """
        return await self._steps.gather(name, list(jobs), errors)

    @overload
    def gather_now(self, name: str, jobs: Iterable[Gatherable[R]]) -> list[R]: ...
    @overload
    def gather_now(self, name: str, jobs: Iterable[Gatherable[R]], *, errors: Literal["raise"]) -> list[R]: ...
    @overload
    def gather_now(
        self, name: str, jobs: Iterable[Gatherable[R]], *, errors: Literal["return"]
    ) -> list[R | ChildFailed]: ...

    def gather_now(self, name: str, jobs: Iterable[Gatherable[Any]], *, errors: Errors = "raise") -> list[Any]:
        """`gather` for handlers that are not asynchronous."""
        return self._steps.run(self._steps.gather(name, list(jobs), errors))

    def left(self, error: BaseException | None = None) -> None:
        """Called when the handler has ended: StepInvalid if that hides that the job was suspended."""
        if self._made is not None:
            self._made.refuse_hidden(error)

    @property
    def _steps(self) -> Steps:
        if self._made is None:
            self._made = Steps(self.job, self.remembers, self.check)
        return self._made

    def _able(self) -> Completing:
        if self._completing is None:
            raise TransactionRefused(
                "there is no store here to complete the job in: handlers with process=True, and those called directly,"
                " end by returning"
            )
        return self._completing

    @staticmethod
    def current() -> Ctx:
        """The context of the job that is running here, for code that was not handed one."""
        try:
            return _current.get()
        except LookupError:
            raise WindlassError("Ctx.current() was called outside a running job") from None


def _plain(number: float) -> float:
    # Decimals and numpy's numbers become Python's own; a store has no place for others, nor for not-a-number.
    plain = number if type(number) is int else float(number)
    if not -MOST_PROGRESS <= plain <= MOST_PROGRESS:
        raise SettingsError(f"progress is {shown(number)}: expected a number from -2**53 to 2**53")
    return plain


_entered: dict[Callable[[Job], None], None] = {}


def on_enter(call: Callable[[Job], None]) -> None:
    """Have this called with each job that begins, in its context of execution."""
    _entered[call] = None


def enter(ctx: Ctx) -> None:
    """Make `ctx` the current one in this context of execution."""
    _current.set(ctx)
    for call in _entered:
        call(ctx.job)


def running() -> Ctx | None:
    """The context of the job that is running here, if one is."""
    return _current.get(None)
