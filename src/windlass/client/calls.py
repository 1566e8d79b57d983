"""Calls: a declared handler as its callers see it. `using()` takes options, `enqueue()` takes the job's arguments."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack

from windlass.client.flows import Bound
from windlass.client.options import ALIASES, OPTION_WORDS, Asked, lay_over
from windlass.core.batch import Batched, alone
from windlass.core.context import Ctx
from windlass.core.errors import PayloadInvalid
from windlass.core.job import Job
from windlass.core.status import Status
from windlass.core.upgrading import make_upgrade

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.client.client import Client
    from windlass.client.handle import Handle
    from windlass.core.draft import Draft, Options
    from windlass.core.handler import Declaration

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D")
_OPTIONS = frozenset({*OPTION_WORDS, *ALIASES, "tx"})


class JobFunction(Generic[P, R]):
    """A handler, ready to be enqueued with the parameters and the result its function declares."""

    def __init__(
        self,
        client: Client,
        declaration: Declaration,
        options: Options,
        tx: object | None = None,
    ) -> None:
        self._client = client
        self.options = options
        self._tx = tx
        self.declaration = declaration
        self.__name__ = declaration.name
        self.__doc__ = declaration.call.__doc__
        self.__wrapped__ = declaration.call

    @property
    def name(self) -> str:
        """The type stored on its jobs."""
        return self.declaration.name

    @property
    def client(self) -> Client:
        """Whose job it is."""
        return self._client

    @property
    def tx(self) -> object | None:
        """The transaction it joins, where `using` named one."""
        return self._tx

    def using(self, tx: object | None = None, **asked: Unpack[Asked]) -> JobFunction[P, R]:
        """The same handler with other options for what is enqueued next; `tx` joins the caller's transaction."""
        options = lay_over(self.options, asked)
        return JobFunction(self._client, self.declaration, options, tx if tx is not None else self._tx)

    def upgrade(self, *, from_: type[D] | Any) -> Callable[[Callable[[D], Any]], Callable[[D], Any]]:
        """Declare a function that makes the arguments of this handler, by name, of a payload of an older form.

        `from_` is the type of that form: a TypedDict, a dataclass or a model of the whole payload. It is called when a
        job that waited does not fit any more, in the worker; what is stored stays as it is. What a class handler's
        upgrade returns is its data.
        """

        def declare(function: Callable[[D], Any]) -> Callable[[D], Any]:
            seals = self.declaration.codec.seals
            self.declaration.upgrades.append(make_upgrade(self.name, from_, function, seals))
            return function

        return declare

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Bound[R]:
        """The job these arguments make, checked but not enqueued."""
        return Bound(self.name, self._encoded(args, kwargs), self.options, self._client, self.declaration)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Enqueue a job; returns when it is durable. A duplicate gives the handle of the job already there."""
        return await self._client.enqueue(self._draft(args, kwargs), self.declaration.codec, self._tx)

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """The same from code without an event loop; inside a transaction it runs on this very thread."""
        return self._client.enqueue_sync(self._draft(args, kwargs), self.declaration.codec, self._tx)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Run the handler here and now without a store, as a test would: what it returns or raises is the caller's.

        An `async def` handler gives its coroutine to await. A batch handler does a batch of this one job.
        """
        declaration = self.declaration
        # Without a store there is nothing to be sealed for, and no key is needed.
        payload_json = self._encoded(args, kwargs, plainly=True)
        arguments = declaration.codec.decode_plain(payload_json)
        if declaration.codec.holds_secrets:
            payload_json = declaration.codec.masked(arguments)
        if declaration.batch is not None:
            one = Batched[Any, Any](_detached(declaration, payload_json), arguments["data"])
            return alone(declaration.call, one, awaits=declaration.mode == "coroutine")
        first = (_detached(declaration, payload_json),) if declaration.wants_ctx else ()
        return declaration.call(*first, **arguments)

    def _draft(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Draft:
        return self._client.draft(self.declaration, self._encoded(args, kwargs), self.options)

    def _encoded(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, plainly: bool = False) -> str:
        codec = self.declaration.codec
        try:
            return codec.encode(args, kwargs, plainly=plainly)
        except PayloadInvalid as error:
            word = next((word for word in kwargs if word in _OPTIONS and word not in codec.names), None)
            if word is None:
                raise
            raise PayloadInvalid(f"{error}; {word} is an option: {self.name}.using({word}=…).enqueue(…)") from None

    def __repr__(self) -> str:
        return f"<job {self.declaration.name} from {self.declaration.source}>"


def _detached(declaration: Declaration, payload_json: str) -> Ctx:
    never = datetime(1970, 1, 1, tzinfo=UTC)
    options = declaration.options
    job = Job(
        id="00000000-0000-7000-8000-000000000000",
        type=declaration.name,
        queue=options.queue,
        payload_json=payload_json,
        status=Status.PROCESSING,
        priority=options.priority,
        run_at=never,
        attempts=1,
        max_attempts=options.max_attempts,
        crashes=0,
        max_crashes=options.max_crashes,
        timeout=options.timeout,
        created_at=never,
        updated_at=never,
        queued_at=never,
    )
    return Ctx(job, lambda _: None, lambda: False)
