"""Types: what can be enqueued, and with which payloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter

from windlass.core.errors import HandlerNotFound
from windlass.core.keys import shown
from windlass.web.asking import App, Reader
from windlass.web.given import Name
from windlass.web.shapes import Shape

if TYPE_CHECKING:
    from windlass.core.declared import Declared
    from windlass.web.callers import Caller

router = APIRouter(tags=["types"])


class TypeShape(Shape):
    """One type: where its jobs wait, and how they are run unless they are told otherwise."""

    type: str
    queue: str
    version: str | None
    fingerprint: str
    options: dict[str, Any]


class TypeSchemasShape(TypeShape):
    """The same with the JSON Schemas of its payload and result; null where they cannot be said."""

    payload_schema: dict[str, Any] | None
    result_schema: dict[str, Any] | None


class TypesShape(Shape):
    """All types."""

    items: list[TypeShape]


@router.get("/types", summary="All types")
async def types(app: App, caller: Reader) -> TypesShape:
    """Every type that is handled here or that a worker has told of lately; of a limited key's those it may enqueue."""
    return TypesShape(items=[TypeShape(**_facts(one)) for one in await app.types.known() if _allowed(caller, one)])


@router.get("/types/{type:path}", summary="One type")
async def one_type(type: Name, app: App, caller: Reader) -> TypeSchemasShape:
    """The type with the schemas of its payload and its result."""
    found = next((one for one in await app.types.known() if one.type == type and _allowed(caller, one)), None)
    if found is None:
        raise HandlerNotFound(f"no handler is known of the type {shown(type)}")
    schemas: dict[str, Any] = {"payload_schema": found.payload_schema, "result_schema": found.result_schema}
    return TypeSchemasShape(**_facts(found), **schemas)


def _allowed(caller: Caller, one: Declared) -> bool:
    return caller.grants.allow(type_=one.type, queue=one.queue)


def _facts(one: Declared) -> dict[str, Any]:
    same = ("type", "queue", "version", "fingerprint")
    return {name: getattr(one, name) for name in same} | {"options": dict(one.options)}
