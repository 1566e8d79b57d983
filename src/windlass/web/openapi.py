"""The OpenAPI document of the routes: what FastAPI finds in them, and beside it everything else that may be answered.

What refusals a route has follows from what it is: it is closed, it has a body, it changes something. So a new route is
documented in full without a word. What only one route answers it declares itself, with `responses=`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from fastapi.openapi.utils import get_openapi

from windlass.core import errors
from windlass.web.envelope import LONG, SLOW
from windlass.web.problems import (
    FORBIDDEN,
    INVALID,
    KINDS,
    MEDIA_TYPE,
    TOO_LARGE,
    TOO_MANY,
    UNAUTHENTICATED,
    UNREADABLE,
    WRONG_TYPE,
    Kind,
    body,
)
from windlass.web.samples import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastapi import FastAPI
    from fastapi.routing import APIRoute

SCHEMAS = "#/components/schemas/"
TAGS = {
    "jobs": "Enqueue, look at and operate on single jobs. Who asks for one user sees that user's jobs only.",
    "dead letters": "Jobs that failed for good, by what is alike in them, and running them again.",
    "queues": "What waits where; holding a queue, and letting it go on. For keys of everybody.",
    "statistics": "How many jobs stand where, and how those that ended lately did. For keys of everybody.",
    "workers": "Who runs jobs. For keys of everybody.",
    "types": "What workers handle.",
    "schedules": "Jobs that are made again and again, by the clock.",
    "keys": "Who may ask. For administrators.",
    "audit": "Who did what to what. For administrators.",
    "checks": "Whether all is well, for operators.",
    "live": "What happens, while it happens.",
    "health": "Alive and ready: for probes of load balancers and orchestrators. Open.",
    "document": "This document.",
}
_REFUSALS: Mapping[int, Kind] = {
    400: UNREADABLE,
    401: UNAUTHENTICATED,
    403: FORBIDDEN,
    404: KINDS[errors.JobNotFound],
    408: SLOW,
    409: KINDS[errors.DuplicateJob],
    413: TOO_LARGE,
    414: LONG,
    415: WRONG_TYPE,
    422: INVALID,
    429: TOO_MANY,
    503: KINDS[errors.StoreUnavailable],
}
_SAID = {
    400: "It cannot be read: no JSON, or its length is told twice",
    401: "No key was given, or none that is good",
    403: "The key has not got the scope, or is one user's",
    404: "There is no such thing, or it is not the caller's",
    408: "The body came too slowly",
    409: "What is there already does not allow it: a status, a duplicate, an earlier signal",
    413: "It is too large",
    414: "The address is too long",
    415: "The body is no JSON, or is compressed",
    422: "A value does not fit: `errors` says which",
    429: "Too many requests, or the queue holds as many jobs as it may",
    503: "The store does not answer",
}
_FACTS: Mapping[int, Mapping[str, object]] = {409: {"existing": "01a1eef7-f35e-7000-8009-6eb526efee66", "key": "k"}}
_IRREGULAR = {
    "bulk": "order_jobs",
    "find": "list_jobs",
    "forget": "forget_workers",
    "health": "get_health",
    "healthz": "get_alive",
    "history": "get_history",
    "queue_stats": "get_queue_stats",
    "readyz": "get_ready",
    "replay": "replay_dead_letters",
    "stats": "get_stats",
    "charts": "get_charts",
    "ticks": "list_ticks",
    "trail": "list_audit",
    "document": "get_document",
}
"""what functions are called over the wire whose own names say it in another way"""
_CHANGES = frozenset({"post", "put", "patch", "delete"})
PROBLEM = {
    "type": "object",
    "description": "An error, as RFC 9457 has it. Further members depend on its type: a duplicate has `existing`.",
    "properties": {
        "type": {"type": "string", "pattern": "^urn:windlass:problem:"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "requestId": {"type": "string", "description": "Under it operators find what happened."},
        "errors": {
            "type": "array",
            "description": "What does not fit, and where.",
            "items": {
                "type": "object",
                "properties": {"at": {"type": "string"}, "message": {"type": "string"}},
                "required": ["at", "message"],
            },
        },
    },
    "required": ["type", "title", "status", "detail", "requestId"],
}


def operation_id(route: APIRoute) -> str:
    """What clients call it: `list_queues`, `pause_queue`. Made of the function's name and the tag."""
    name, tag = route.name, str((route.tags or [""])[0]).replace(" ", "_")
    if name in _IRREGULAR:
        return _IRREGULAR[name]
    if name == tag:
        return f"list_{name}"
    if name.startswith("one_"):
        return f"get_{name.removeprefix('one_')}"
    return name if "_" in name else f"{name}_{tag.removesuffix('s')}"


def document_of(web: FastAPI) -> dict[str, Any]:
    """The document of the routes; of types of jobs it knows nothing."""
    document = get_openapi(title=web.title, version=web.version, description=web.description, routes=web.routes)
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for methods in document["paths"].values():
        for method, operation in methods.items():
            _complete(method, operation)
    # As clients want them: Job, Page.
    short = {name: name.removesuffix("Shape") for name in schemas if name.removesuffix("Shape") not in schemas}
    document = cast("dict[str, Any]", _renamed(document, short))
    schemas = document["components"]["schemas"]
    schemas["Problem"] = PROBLEM
    for name, example in EXAMPLES.items():
        if name in schemas:
            schemas[name]["examples"] = [example]
    document["components"]["responses"] = {_name(status): _problem(status) for status in _REFUSALS}
    used = {tag for methods in document["paths"].values() for one in methods.values() for tag in one.get("tags", [])}
    tags = {**TAGS, **getattr(web.state, "tags", {})}
    document["tags"] = [{"name": name, "description": tags[name]} for name in tags if name in used]
    return document


def _complete(method: str, operation: dict[str, Any]) -> None:
    responses: dict[str, Any] = operation["responses"]
    if "HTTPValidationError" in str(responses.get("422")):
        del responses["422"]
    for status in _statuses(method, operation):
        responses.setdefault(str(status), {"$ref": f"#/components/responses/{_name(status)}"})
    operation["responses"] = dict(sorted(responses.items()))
    for parameter in operation.get("parameters", []):
        parameter["schema"] = _given(parameter["schema"])


def _statuses(method: str, operation: Mapping[str, Any]) -> Iterator[int]:
    """What a route may answer besides what it is there for."""
    if "requestBody" in operation:
        yield from (400, 408, 413, 415)
    if "requestBody" in operation or "parameters" in operation:
        yield 422
    if "security" in operation:
        yield from (401, 403, 429, 503)
    places = {one["in"] for one in operation.get("parameters", [])}
    if "path" in places:
        yield 404
    if "query" in places:
        yield 414
    if method in _CHANGES:
        yield from (400, 409)


def _given(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter's: there is no null in a query, it is left out."""
    branches = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
    if len(branches) == 1:
        [only] = branches
        schema = {**{name: part for name, part in schema.items() if name != "anyOf"}, **only}
    return {name: part for name, part in schema.items() if name != "title"}


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """With other names of components, and without titles, which only repeat names."""
    if isinstance(value, list):
        return [_renamed(one, names) for one in cast("Sequence[Any]", value)]
    if isinstance(value, str) and value.startswith(SCHEMAS):
        name = value.removeprefix(SCHEMAS)
        return SCHEMAS + names.get(name, name)
    if not isinstance(value, dict):
        return value
    made: dict[str, Any] = {}
    for name, part in cast("dict[str, Any]", value).items():
        if name == "schemas":
            made[name] = {names.get(one, one): _untitled(schema, names) for one, schema in part.items()}
        elif name == "properties":
            made[name] = {one: _untitled(schema, names) for one, schema in part.items()}
        else:
            made[name] = _renamed(part, names)
    return made


def _untitled(schema: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {name: part for name, part in _renamed(schema, names).items() if name != "title"}


def _name(status: int) -> str:
    return "".join(word.capitalize() for word in _REFUSALS[status].slug.split("-"))


def _problem(status: int) -> dict[str, Any]:
    kind = _REFUSALS[status]
    example = body(kind, _SAID[status], "2b7e151628aed2a6", _FACTS.get(status, {}))
    headers: dict[str, Any] = {"X-Request-Id": {"required": True, "schema": {"type": "string"}}}
    if status == 401:
        headers["WWW-Authenticate"] = {"required": True, "schema": {"type": "string"}}
    if kind.retry_after is not None:
        headers["Retry-After"] = {"description": "Seconds.", "required": True, "schema": {"type": "string"}}
    content = {MEDIA_TYPE: {"schema": {"$ref": f"{SCHEMAS}Problem"}, "example": example}}
    return {"description": _SAID[status], "headers": headers, "content": content}
