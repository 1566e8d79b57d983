"""What durable steps ask of a worker, and of the jobs that they gather."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from datetime import timedelta

    from windlass.core.draft import Draft
    from windlass.core.handler import Declaration
    from windlass.core.job import Job

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)


class Promise(Protocol[R_co]):
    """What enqueueing gives."""

    async def result(self, timeout: float | timedelta | None = None) -> R_co:
        """The result of the job."""
        ...


class Gatherable(Protocol[R_co]):
    """A job not yet enqueued, as `bind` makes it."""

    @property
    def type(self) -> str:
        """The name of its handler."""
        ...

    @property
    def declaration(self) -> Declaration:
        """Its handler."""
        ...

    def draft(self) -> Draft:
        """What would be enqueued here."""
        ...

    async def enqueue(self, tx: object | None = None) -> Promise[R_co]:
        """Enqueue it by itself."""
        ...


class Remembers(Protocol):
    """The worker's part: where values are kept, and children are inserted and looked at. From any loop or thread."""

    @property
    def stopping(self) -> bool:
        """Whether the worker is shutting down."""
        ...

    async def keep(self, name: str, text: str) -> None:
        """Return when it is durable; LeaseLost when the job is another worker's."""
        ...

    async def keep_in(self, tx: object, name: str, text: str) -> None:
        """The same inside the handler's own transaction."""
        ...

    def keep_in_now(self, tx: object, name: str, text: str) -> None:
        """The same inside a synchronous driver's transaction, on the calling thread."""
        ...

    async def insert(self, drafts: Sequence[Draft]) -> None:
        """Insert children, or raise why one cannot be."""
        ...

    async def look(self, ids: Sequence[str]) -> list[Job | None]:
        """The children as they are now, in order."""
        ...

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Call a function that may block."""
        ...

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run one of these from a handler that has no event loop; refused in the worker's own."""
        ...

    def new_id(self) -> str:
        """An id that no job has."""
        ...
