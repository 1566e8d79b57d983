"""The document: what can be asked here, for those who may ask."""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from windlass.web.asking import AnyCaller, App
from windlass.web.typed import with_types

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.declared import Declared
    from windlass.core.grants import Grants

router = APIRouter(tags=["document"])
FRESH = 5.0
"""seconds for which the types that workers told of are not read again"""
_MOST_KEPT = 20


class Documents:
    """The documents of one server: one for each set of types that a caller may know of, made anew when these change."""

    def __init__(self, fresh: float = FRESH) -> None:
        self._fresh = fresh
        self._routes: dict[str, Any] | None = None
        self._until = 0.0
        self._types: Sequence[Declared] = ()
        self._made: dict[tuple[object, ...], tuple[str, bytes]] = {}

    async def get(self, request: Request, app: App, grants: Grants) -> tuple[str, bytes]:
        """The document and its tag, for a caller with these limits."""
        now = time.monotonic()
        if now >= self._until:
            self._types = await app.types.known()
            self._until = now + self._fresh
        declared = [one for one in self._types if grants.allow(type_=one.type, queue=one.queue)]
        place = str(request.scope.get("root_path", ""))
        key = place, *((one.type, one.fingerprint) for one in declared)
        if key not in self._made:
            if len(self._made) >= _MOST_KEPT:
                self._made.clear()
            self._made[key] = self._make(request, place, declared)
        return self._made[key]

    def _make(self, request: Request, place: str, declared: Sequence[Declared]) -> tuple[str, bytes]:
        routes = self._routes = self._routes or request.app.openapi()
        # Where it is mounted, but no host: a header Host is whatever its sender wrote.
        document = {**with_types(routes, declared), "servers": [{"url": place or "/"}]}
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        return f'"{hashlib.sha256(text).hexdigest()[:32]}"', text


@router.get(
    "/openapi.json",
    summary="What can be asked",
    response_class=Response,
    responses={
        200: {"content": {"application/json": {"schema": {"type": "object"}}}},
        304: {"description": "It has not changed"},
    },
)
async def document(request: Request, app: App, caller: AnyCaller) -> Response:
    """The document of this API, with the payloads of the types that the caller may enqueue; it has an `ETag`."""
    tag, text = await request.app.state.documents.get(request, app, caller.grants)
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return Response(text, media_type="application/json", headers={"ETag": tag})
