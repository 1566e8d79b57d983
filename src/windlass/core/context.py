"""What a running handler sees of its job: the optional first parameter `ctx: Ctx`."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from windlass.core.errors import SettingsError, TransactionRefused, WindlassError
from windlass.core.job import Progress, storable
from windlass.core.keys import shown
from windlass.core.signals import Cancel

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.core.job import Job

MOST_PROGRESS = 2**53
"""up to here a float counts every whole number"""

_current: ContextVar[Ctx] = ContextVar("windlass_ctx")


class Completing(Protocol):
    """Ends the running job as succeeded inside its handler's own transaction."""

    async def later(self, tx: object, result: Any) -> None:
        """On an asynchronous driver's transaction."""
        ...

    def now(self, tx: object, result: Any) -> None:
        """On a synchronous driver's, on the calling thread."""
        ...


class Ctx:
    """The running job, its progress and the request to stop. Safe to use from the handler's own thread."""

    __slots__ = ("_cancelled", "_completing", "_report", "job")

    def __init__(
        self,
        job: Job,
        report: Callable[[Progress], None],
        cancelled: Callable[[], bool],
        completing: Completing | None = None,
    ) -> None:
        self.job = job
        self._report = report
        self._cancelled = cancelled
        self._completing = completing

    @property
    def id(self) -> str:
        """The job's id: the natural idempotency key for effects outside windlass."""
        return self.job.id

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


def enter(ctx: Ctx) -> None:
    """Make `ctx` the current one in this context of execution."""
    _current.set(ctx)


def running() -> Ctx | None:
    """The context of the job that is running here, if one is."""
    return _current.get(None)
