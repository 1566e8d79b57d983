"""Naming: from whatever a caller names a job by to its draft. A name, a declared job, a bound one, a class handler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from windlass.client.calls import JobFunction
from windlass.client.flows import Bound
from windlass.client.options import Asked, lay_over
from windlass.core.errors import HandlerError, HandlerNotFound, PayloadInvalid, SettingsError
from windlass.core.handler import Handler, name_of
from windlass.core.keys import shown

if TYPE_CHECKING:
    from windlass.client.catalogue import Published
    from windlass.client.client import Client
    from windlass.core.draft import Draft
    from windlass.core.handler import Declaration
    from windlass.core.payload import Codec

Named: TypeAlias = "str | JobFunction[..., Any] | Bound[Any] | Handler[Any, Any] | type[Handler[Any, Any]]"


class Made(NamedTuple):
    """A job about to be enqueued, and the transaction it was told to join."""

    draft: Draft
    codec: Codec | None
    tx: object | None = None


def make(client: Client, job: Named, payload: Any, asked: Asked, published: Published | None = None) -> Made:
    """The draft of a job, however it is named; HandlerError where nothing here goes by that name."""
    if isinstance(job, str):
        return Made(*client.draft_by_name(job, payload, asked, published))
    if isinstance(job, JobFunction):
        return _declared(client, job, payload, asked)
    if isinstance(job, Bound):
        return _bound(client, job, payload, asked)
    declaration = _class_handler(client, job)
    text = declaration.codec.encode((payload,), {})
    return Made(client.draft(declaration, text, lay_over(declaration.options, asked)), declaration.codec)


def _declared(client: Client, job: JobFunction[..., Any], payload: Any, asked: Asked) -> Made:
    _check_home(client, job.client, job.name)
    if job.declaration.handler is not None:
        bound = job.using(**asked).bind(payload)
    elif payload is None or isinstance(payload, Mapping):
        bound = job.using(**asked).bind(**cast("Mapping[str, Any]", payload or {}))
    else:
        raise PayloadInvalid(
            f"{job.name} was given {_told(job, payload)}: expected its arguments by name, as a dict;"
            f" {job.name}.enqueue(…) takes them as the function does"
        )
    return Made(client.draft(job.declaration, bound.payload_json, bound.options), job.declaration.codec, job.tx)


def _told(job: JobFunction[..., Any], payload: Any) -> str:
    return f"a {type(payload).__name__}" if job.declaration.codec.holds_secrets else shown(payload)


def _bound(client: Client, job: Bound[Any], payload: Any, asked: Asked) -> Made:
    _check_home(client, job.client, job.type)
    if payload is not None:
        raise SettingsError(f"a bound {job.type} has its arguments, and was given others beside them")
    made = replace(job, options=lay_over(job.options, asked))
    return Made(client.draft(made.declaration, made.payload_json, made.options), made.declaration.codec)


def _class_handler(client: Client, job: Handler[Any, Any] | type[Handler[Any, Any]]) -> Declaration:
    kind = job if isinstance(job, type) else type(job)
    if not issubclass(cast("type[object]", kind), Handler):
        raise HandlerError(
            f"{shown(job)} is no job: expected a name, a function declared with @app.job, one bound to its arguments,"
            " or a class handler"
        )
    name = name_of(kind)
    known = client.registry.get(name) if name in client.registry else None
    if known is not None and isinstance(known.handler, kind):
        return known
    taken = "" if known is None else f" ({name} is the name of {known.source})"
    raise HandlerNotFound(
        f"{kind.__qualname__} was not added to this application: app.add({kind.__name__}(…)) first, or enqueue by the"
        f" name of its jobs{taken}"
    )


def _check_home(client: Client, its: Client, name: str) -> None:
    # By a door's client the same registry is meant: it is the application that counts.
    if its.registry is not client.registry:
        raise HandlerError(f"{name} belongs to another application, with a store of its own: enqueue it there")
