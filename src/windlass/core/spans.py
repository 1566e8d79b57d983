"""Spans: what is laid around sends, runs and steps of an application that is traced. A listener writes them.

Working code asks `Registry.spans`, which is None where nothing is traced; inside a run, `stepping` finds them.
"""

from __future__ import annotations

from contextlib import nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager

    from windlass.core.draft import Draft
    from windlass.core.job import Job

Kind: TypeAlias = Literal["step", "wait", "gather"]


class Spans(Protocol):
    """What writes spans. None of it raises, and none of it hides what is raised inside."""

    def sending(self, drafts: Sequence[Draft], *, apart: bool = False) -> AbstractContextManager[Sequence[Draft]]:
        """While inside, these are sent to the store; gives them as they are to be sent, with where they came from.

        `apart` is for what has no caller here, as a tick of a schedule: it begins a trace of its own.
        """
        ...

    def idle(self, job: Job) -> bool:
        """Whether there is nothing to lay around an attempt of this job."""
        ...

    def running(self, jobs: Sequence[Job]) -> AbstractContextManager[object]:
        """While inside, an attempt of this job runs, or one call does all of these."""
        ...

    def stepping(self, kind: Kind, name: str, key: str | None, *, remembered: bool) -> AbstractContextManager[object]:
        """While inside, a durable step of the running job is taken, or what it gave before is read."""
        ...

    def received(self, headers: Iterable[tuple[bytes, bytes]]) -> AbstractContextManager[object]:
        """While inside, what is sent goes on with the trace that the headers of a request name."""
        ...

    def carried(self) -> str | None:
        """Where we are, as text for another process of the same job."""
        ...

    def going_on(self, carried: str | None) -> AbstractContextManager[object]:
        """While inside, in that process, what is sent and stepped goes on from there."""
        ...

    def flush(self) -> None:
        """Write what has ended, before this process does."""
        ...


inside: ContextVar[Spans | None] = ContextVar("windlass_spans", default=None)
"""the writer of the spans of the job that runs here"""
_NOTHING = nullcontext[object](None)


def stepping(kind: Kind, name: str, key: str | None, *, remembered: bool) -> AbstractContextManager[object]:
    """A span around a step of the job that runs here, if that is traced."""
    spans = inside.get()
    return _NOTHING if spans is None else spans.stepping(kind, name, key, remembered=remembered)


def carried() -> str | None:
    """Where the job that runs here is in its trace, as text for another process; None if it is not traced."""
    spans = inside.get()
    return None if spans is None else spans.carried()
