"""Keys: what lets programs and people in. A secret is answered once, when it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter
from pydantic import Field, WithJsonSchema

from windlass.stores.contract import Scope
from windlass.web.asking import Admin, App
from windlass.web.auditing import Audit
from windlass.web.given import Asked, Key, Name, Span
from windlass.web.problems import NOT_FOUND, Refused
from windlass.web.routing import Route
from windlass.web.shapes import Instant, Shape

if TYPE_CHECKING:
    from windlass.stores.contract import Key as KeptKey

router = APIRouter(route_class=Route, tags=["keys"])
Word = Annotated[str, WithJsonSchema({"type": "string", "enum": [*Scope]})]
Names = Annotated[list[Name] | None, Field(max_length=100)]


class NewKey(Asked):
    """A key to be made: whose it is, what it may, and for how long."""

    name: Key
    owner: Key
    scopes: Annotated[
        list[Annotated[str, WithJsonSchema({"type": "string", "enum": [*Scope]})]], Field(min_length=1, max_length=4)
    ]
    expires: Span | None = None
    """seconds; without it, until it is revoked"""
    queues: Names = None
    types: Names = None
    attributes: dict[str, Any] | None = None


class KeyShape(Shape):
    """A key without what would pass for it."""

    id: str
    kind: str
    name: str
    owner: str
    scopes: list[str]
    queues: list[str] | None
    types: list[str] | None
    attributes: dict[str, Any]
    """what applications read of its holder"""
    created_at: Instant
    expires_at: Instant | None
    used_at: Instant | None
    revoked_at: Instant | None


class CreatedKeyShape(KeyShape):
    """A key that was just made, with its secret: nobody can read it later."""

    secret: str


class KeysShape(Shape):
    """All keys."""

    items: list[KeyShape]


@router.get("/keys", summary="All keys")
async def keys(app: App, _: Admin) -> KeysShape:
    """Every key, the newest first, also those that let nobody in any more."""
    return KeysShape(items=[KeyShape(**_facts(key)) for key in await app.keys.list()])


@router.post("/keys", status_code=201, summary="Make a key")
async def create(body: NewKey, app: App, caller: Admin, audit: Audit) -> CreatedKeyShape:
    """Make a key. Its secret is in this answer and nowhere else."""
    caller.check_unlimited()
    made = await app.keys.create(
        body.name,
        owner=body.owner,
        scopes=body.scopes,
        lasts=body.expires,
        queues=body.queues,
        types=body.types,
        attributes=body.attributes,
    )
    await audit.record("key.create", f"key:{made.key.id}", after=_audited(made.key))
    return CreatedKeyShape(**_facts(made.key), secret=made.secret)


@router.delete("/keys/{key_id}", status_code=204, summary="Revoke a key")
async def revoke(key_id: str, app: App, caller: Admin, audit: Audit) -> None:
    """Let it in no more; it is still listed."""
    caller.check_unlimited()
    before = next((key for key in await app.keys.list() if key.id == key_id), None)
    if before is None:
        raise Refused(NOT_FOUND, "there is no such key")
    await app.keys.revoke(key_id)
    await audit.record("key.revoke", f"key:{key_id}", before=_audited(before), after={"revoked": True})


def _facts(key: KeptKey) -> dict[str, Any]:
    same = ("id", "name", "owner", "created_at", "expires_at", "used_at", "revoked_at")
    queues, types = key.grants.queues, key.grants.types
    return {name: getattr(key, name) for name in same} | {
        "kind": key.kind.value,
        "scopes": sorted(key.scopes),
        "queues": None if queues is None else sorted(queues),
        "types": None if types is None else sorted(types),
        "attributes": key.grants.attributes,
    }


def _audited(key: KeptKey) -> dict[str, Any]:
    shown = KeyShape(**_facts(key)).model_dump(mode="json", by_alias=True)
    return {name: shown[name] for name in ("name", "owner", "scopes", "queues", "types", "expiresAt")} | {
        "revoked": key.revoked_at is not None
    }
