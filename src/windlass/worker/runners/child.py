"""Inside a job's own process: take orders from the pipe, run the named handler, answer with its result or outcome."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import math
import os
import queue
import select
import signal
import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NoReturn, cast

from pydantic import TypeAdapter

from windlass.client.calls import JobFunction
from windlass.core import outcome as outcomes
from windlass.core.context import Ctx, enter
from windlass.core.errors import HandlerError, PayloadInvalid, PayloadUnfit
from windlass.core.job import Job
from windlass.worker.execution import described, hiding, outcome_of, unreadable
from windlass.worker.runners.asking import Asking
from windlass.worker.runners.lines import forward, wanted

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from windlass.core.handler import Declaration
    from windlass.core.job import Progress
    from windlass.core.spans import Spans

_jobs: TypeAdapter[Job] = TypeAdapter(Job)
_MOMENT = 0.05  # seconds
_WRITTEN: set[Spans] = set()
"""what has written spans here: of a process that ends nothing else would send them"""
_LONGEST_WAIT = 3600.0  # seconds: a wait without end is more than a clock can count


def order(declaration: Declaration, job: Job, trace: str | None = None) -> dict[str, Any]:
    """What the parent sends: the handler's place in the parent's own code, the job, and where it is in its trace."""
    function, told = declaration.call, _jobs.dump_python(job, mode="json")
    place = {"module": function.__module__, "name": function.__qualname__}
    return {**place, "job": told, "trace": trace, "log_from": wanted()}


def outcome_from(message: dict[str, Any]) -> outcomes.Outcome:
    """The outcome a child told of."""
    kind = getattr(outcomes, message["outcome"])
    return cast("outcomes.Outcome", TypeAdapter(kind).validate_python(message["told"]))


class _Speaking:
    """What is said to the parent; a handler's own threads may report progress, too."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()

    def say(self, message: dict[str, Any]) -> None:
        text = json.dumps(message).encode()
        with self._lock:
            self._pipe.send_bytes(text)

    def say_if_heard(self, message: dict[str, Any]) -> None:
        """Say it unless that could take long: somebody is speaking, or the parent does not read."""
        if self._lock.acquire(timeout=_MOMENT) and select.select([], [self._pipe], [], 0)[1]:
            self._pipe.send_bytes(json.dumps(message).encode())


class _Watch:
    """Ends this process, and all that it started, when its job's lease is over and no word came that it goes on."""

    def __init__(self, speaking: _Speaking) -> None:
        self._speaking = speaking
        self._changed = threading.Condition()
        self._lease: str | None = None
        self._until = math.inf

    def begin(self, lease: str, until: float) -> None:
        """A job begins that may run so long, by the monotonic clock."""
        with self._changed:
            self._lease, self._until = lease, until
            self._changed.notify()

    def renew(self, lease: str, until: float) -> None:
        """It may run longer; a late word about an earlier job says nothing."""
        with self._changed:
            if lease == self._lease:
                self._until = until
                self._changed.notify()

    def end(self) -> None:
        """Nothing runs here."""
        with self._changed:
            self._lease, self._until = None, math.inf

    def run(self) -> None:
        """Watch for ever."""
        with self._changed:
            while (left := self._until - time.monotonic()) > 0:
                self._changed.wait(min(left, _LONGEST_WAIT))
        self._speaking.say_if_heard({"fenced": True})
        end_all()


def serve(pipe: Connection) -> None:
    """Run jobs until the parent goes away."""
    # A session of its own: it can be ended with all that it starts, and Ctrl-C at the parent's terminal does not reach
    # it, of which the parent decides; nor may it before the session is there.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setsid()
    orders: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    cancelled = threading.Event()
    speaking = _Speaking(pipe)
    watch = _Watch(speaking)
    asking = Asking(speaking.say)
    threading.Thread(target=_listen, args=(pipe, orders, cancelled, watch, asking), daemon=True).start()
    threading.Thread(target=watch.run, daemon=True).start()
    while True:
        answer = _run(orders, speaking.say, cancelled, asking)
        watch.end()
        if answer is not None:
            speaking.say(answer)


def end_all() -> NoReturn:
    """End this process and every one it started that is still of its group."""
    os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def _listen(
    pipe: Connection,
    orders: queue.SimpleQueue[dict[str, Any]],
    cancelled: threading.Event,
    watch: _Watch,
    asking: Asking,
) -> None:
    while True:
        try:
            message = json.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            # The parent is gone, and with it the lease: what runs here must not go on.
            end_all()
        if "end" in message:
            for spans in _WRITTEN:
                spans.flush()
            os._exit(0)
        if "cancel" in message:
            cancelled.set()
            continue
        if "answer" in message:
            asking.hear(message)
            continue
        if message.get("go"):
            watch.begin(message["lease"], message["until"])
        elif "until" in message:
            watch.renew(message["lease"], message["until"])
            continue
        if "job" in message:
            # Cleared here and not where the order is taken: a cancel that follows at once must not be lost.
            cancelled.clear()
        orders.put(message)


def _run(
    orders: queue.SimpleQueue[dict[str, Any]],
    send: Callable[[dict[str, Any]], None],
    cancelled: threading.Event,
    asking: Asking,
) -> dict[str, Any] | None:
    """Run what is ordered next; None if the parent has no use for it any more when it could begin."""
    told = orders.get()
    job = _jobs.validate_python(told["job"])

    def report(progress: Progress) -> None:
        send({"progress": {"done": progress.done, "of": progress.of, "note": progress.note}})

    ctx = Ctx(job, report, cancelled.is_set, remembers=asking)
    try:
        found = _find(told["module"], told["name"])
        forward(send, told["log_from"])  # not before: the module may set up logging by itself
        enter(ctx)
    except Exception as error:  # noqa: BLE001  # the module is the user's code and may raise anything
        return _told(outcomes.Failed(described(error), again=True))
    # To start and to load the code may take longer than a lease, and only the parent knows what has become of that.
    send({"ready": True})
    if not orders.get()["go"]:
        return None
    declaration, spans = found.declaration, found.client.registry.spans
    try:
        with nullcontext() if spans is None else _written(spans).going_on(told["trace"]):
            return {"result": declaration.codec.encode_result(_called(declaration, ctx))}
    except PayloadUnfit as error:
        return _told(unreadable(job, error))
    except PayloadInvalid as error:
        return _told(outcomes.Failed(described(error, hiding(declaration, ctx.job)), again=False))
    except BaseException as error:  # noqa: BLE001  # the handler is the user's code and may raise anything
        return _told(outcome_of(declaration, error, hiding(declaration, ctx.job)))


def _called(declaration: Declaration, ctx: Ctx) -> Any:
    arguments = declaration.arguments(ctx.job.payload_json)
    positional = (ctx,) if declaration.wants_ctx else ()
    try:
        result = declaration.call(*positional, **arguments)
        if inspect.isawaitable(result):
            result = asyncio.run(_awaited(result))
    except BaseException as error:
        ctx.left(error)
        raise
    ctx.left()
    return result


async def _awaited(result: Any) -> Any:
    return await result


def _find(module: str, name: str) -> JobFunction[..., Any]:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not isinstance(found, JobFunction):
        raise HandlerError(
            f"{module}.{name} is not a job there: a process=True handler must keep its name in its module"
        )
    return cast("JobFunction[..., Any]", found)


def _written(spans: Spans) -> Spans:
    _WRITTEN.add(spans)
    return spans


def _told(outcome: outcomes.Outcome) -> dict[str, Any]:
    kind = type(outcome)
    told = TypeAdapter(kind).dump_python(outcome, mode="json")
    return {"outcome": kind.__name__, "told": told}
