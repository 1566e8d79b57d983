"""Inside a job's own process: take orders from the pipe, run the named handler, answer with its result or outcome."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import queue
import signal
import threading
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter

from windlass.client.calls import JobFunction
from windlass.core import outcome as outcomes
from windlass.core.context import Ctx, enter
from windlass.core.errors import HandlerError, PayloadInvalid
from windlass.core.job import Job
from windlass.worker.execution import described, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from windlass.core.handler import Declaration
    from windlass.core.job import Progress

_jobs: TypeAdapter[Job] = TypeAdapter(Job)


def order(declaration: Declaration, job: Job) -> dict[str, Any]:
    """What the parent sends: the handler's place in the parent's own code, and the job."""
    function = declaration.call
    return {"module": function.__module__, "name": function.__qualname__, "job": _jobs.dump_python(job, mode="json")}


def outcome_from(message: dict[str, Any]) -> outcomes.Outcome:
    """The outcome a child told of."""
    kind = getattr(outcomes, message["outcome"])
    return cast("outcomes.Outcome", TypeAdapter(kind).validate_python(message["told"]))


def serve(pipe: Connection) -> None:
    """Run jobs until the parent goes away."""
    # Ctrl-C reaches the whole group; the parent decides what becomes of its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orders: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    cancelled = threading.Event()
    threading.Thread(target=_listen, args=(pipe, orders, cancelled), daemon=True).start()
    speaking = threading.Lock()  # a handler's own threads may report progress, too

    def send(message: dict[str, Any]) -> None:
        text = json.dumps(message).encode()
        with speaking:
            pipe.send_bytes(text)

    while True:
        answer = _run(orders, send, cancelled)
        if answer is not None:
            send(answer)


def _listen(pipe: Connection, orders: queue.SimpleQueue[dict[str, Any]], cancelled: threading.Event) -> None:
    while True:
        try:
            message = json.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            # The parent is gone, and with it the lease: what runs here must not go on.
            os._exit(1)
        if "cancel" in message:
            cancelled.set()
            continue
        if "job" in message:
            # Cleared here and not by the one who takes the order: a cancel that follows at once must not be lost.
            cancelled.clear()
        orders.put(message)


def _run(
    orders: queue.SimpleQueue[dict[str, Any]], send: Callable[[dict[str, Any]], None], cancelled: threading.Event
) -> dict[str, Any] | None:
    """Run what is ordered next; None if the parent has no use for it any more when it could begin."""
    told = orders.get()
    job = _jobs.validate_python(told["job"])

    def report(progress: Progress) -> None:
        send({"progress": {"done": progress.done, "of": progress.of, "note": progress.note}})

    ctx = Ctx(job, report, cancelled.is_set)
    enter(ctx)
    try:
        declaration = _find(told["module"], told["name"])
    except Exception as error:  # noqa: BLE001  # the module is the user's code and may raise anything
        return _told(outcomes.Failed(described(error), again=True))
    # To start and to load the code may take longer than a lease, and only the parent knows what has become of that.
    send({"ready": True})
    if not orders.get()["go"]:
        return None
    try:
        arguments = declaration.codec.decode(job.payload_json)
        positional = (ctx,) if declaration.wants_ctx else ()
        result = declaration.call(*positional, **arguments)
        if inspect.isawaitable(result):
            result = asyncio.run(_awaited(result))
        return {"result": declaration.codec.encode_result(result)}
    except PayloadInvalid as error:
        return _told(outcomes.Failed(described(error), again=False))
    except BaseException as error:  # noqa: BLE001  # the handler is the user's code and may raise anything
        return _told(outcome_of(declaration, error))


async def _awaited(result: Any) -> Any:
    return await result


def _find(module: str, name: str) -> Declaration:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not isinstance(found, JobFunction):
        raise HandlerError(
            f"{module}.{name} is not a job there: a process=True handler must keep its name in its module"
        )
    return found.declaration


def _told(outcome: outcomes.Outcome) -> dict[str, Any]:
    kind = type(outcome)
    told = TypeAdapter(kind).dump_python(outcome, mode="json")
    return {"outcome": kind.__name__, "told": told}
