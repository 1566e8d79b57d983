"""Assets: scripts, sheets and drawings, under an address that changes whenever one of them does.

So they are kept by browsers for ever, and a new version is never mixed with an older one. They are read and compressed
once, when the dashboard is made.
"""

from __future__ import annotations

import gzip
import hashlib
from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.requests import Request

KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"


class Asset(NamedTuple):
    """One file."""

    kind: str
    plain: bytes
    packed: bytes


class Assets:
    """Those of the frame and of every room, by `room/file`."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._files = {
            f"{room}/{path.name}": Asset(KINDS[path.suffix], text := path.read_bytes(), gzip.compress(text, 9, mtime=0))
            for room, folder in folders.items()
            for path in sorted(folder.iterdir())
            if path.suffix in KINDS
        }
        mark = hashlib.sha256()
        for name, asset in self._files.items():
            mark.update(f"{name}\n{len(asset.plain)}\n".encode() + asset.plain)
        self.mark = mark.hexdigest()[:12]

    def has(self, name: str) -> bool:
        """Whether there is this one."""
        return name in self._files

    @property
    def weight(self) -> int:
        """Bytes of all scripts and sheets together, as they go over the wire."""
        return sum(len(one.packed) for name, one in self._files.items() if not name.endswith(".svg"))

    async def serve(self, request: Request) -> Response:
        """One of them; of another version there is none."""
        asset = self._files.get(f"{request.path_params['room']}/{request.path_params['file']}")
        if asset is None or request.path_params["mark"] != self.mark:
            return Response("there is no such file", 404, media_type="text/plain")
        headers = {"Cache-Control": _FOREVER, "Content-Type": asset.kind, "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(asset.packed, headers=headers | {"Content-Encoding": "gzip"})
        return Response(asset.plain, headers=headers)
