"""Batches: several jobs that one call of their handler does, each with an end of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from windlass.core.errors import SettingsError
from windlass.core.keys import shown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from windlass.core.context import Ctx
    from windlass.core.job import Job

MOST = 10_000
"""jobs of one batch"""
D = TypeVar("D")
R = TypeVar("R")


class Batched(Generic[D, R]):
    """One job of a batch, with its data and its own end. Safe to use from the handler's own thread.

    When the handler returns, each job has succeeded, with what was given to `done`, unless it was given to `fail`. When
    it raises, that is how the jobs end that were given to neither. The last word on a job counts.
    """

    __slots__ = ("_ctx", "_result", "data", "error", "is_done")

    def __init__(self, ctx: Ctx, data: D) -> None:
        self._ctx = ctx
        self.data = data
        self._result: Any = None
        self.is_done = False
        """whether `done` was called, and not `fail` after it"""
        self.error: BaseException | None = None
        """what `fail` was given"""

    @property
    def id(self) -> str:
        """The job's id."""
        return self._ctx.id

    @property
    def job(self) -> Job:
        """The job as it was claimed."""
        return self._ctx.job

    @property
    def attempt(self) -> int:
        """Which attempt of this job it is, from 1."""
        return self._ctx.attempt

    @property
    def cancelled(self) -> bool:
        """Whether someone asked this job to stop: the handler may leave it out, with `fail(Cancel("…"))`."""
        return self._ctx.cancelled

    def progress(self, done: float, of: float | None = None, note: str | None = None) -> None:
        """Say how far this job is, as `ctx.progress` does."""
        self._ctx.progress(done, of, note)

    def done(self, result: R) -> None:
        """Let this job succeed with a result when the handler has ended, however it ends."""
        self._result, self.is_done, self.error = result, True, None

    def fail(self, error: BaseException) -> None:
        """End this job, when the handler has ended, as if it had raised this alone: an error, or a signal like Snooze.

        The others do not end by it.
        """
        if not isinstance(cast("object", error), BaseException):
            raise SettingsError(
                f"fail was given {shown(error)}: expected an exception, such as ValueError('no such row')"
            )
        self._result, self.is_done, self.error = None, False, error

    @property
    def result(self) -> R:
        """What `done` was given; None before that."""
        return cast("R", self._result)

    def __repr__(self) -> str:
        return f"<{self.job.type} {self.id} of a batch>"


def context_of(one: Batched[Any, Any]) -> Ctx:
    """What the layers around its run see. Not for the handler: nothing that a batch keeps by it would be durable."""
    return one._ctx  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # of this module


def alone(call: Callable[..., Any], one: Batched[Any, Any], *, awaits: bool) -> Any:
    """Call a batch handler with one job and give its result, or raise what it failed with; a coroutine if it awaits."""
    if awaits:
        return _awaited(call([one]), one)
    call([one])
    return _end(one)


async def _awaited(called: Awaitable[None], one: Batched[Any, Any]) -> Any:
    await called
    return _end(one)


def _end(one: Batched[Any, Any]) -> Any:
    if one.error is not None:
        raise one.error
    return one.result
