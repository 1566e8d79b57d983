"""Receiving: what a request asks for: whose file, on which version it is based, and its content."""

from __future__ import annotations

import base64
import binascii
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from starlette.routing import Match

from windlass import SettingsError
from windlass.apps.blobs.blobs import BlobError, BlobMissing, BlobTooLarge, NoSpace
from windlass.apps.files.disk import PathRefused
from windlass.apps.files.files import NoSuchFile, QuotaExceeded
from windlass.apps.files.names import Name, Space, name_of, space_of
from windlass.apps.files.records.records import PathTaken
from windlass.apps.files.state import ANYTHING, TooManyWait, Unmet
from windlass.web import INVALID, NOT_FOUND, TOO_LARGE, UNREADABLE, Caller, Kind, Refused, Uploading

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, MutableMapping

    from fastapi import Request, UploadFile

    from windlass.apps.files.shapes import WriteFile

MULTIPART = "multipart/form-data"
UNMET = Kind(412, "precondition-failed", "The file is not at the version that this is based on")
PATH = Kind(400, "disk-path-refused", "The diskPath breaks a rule")
TAKEN = Kind(409, "disk-path-taken", "Another file has that place on disk")
QUOTA = Kind(413, "quota-exceeded", "The project holds as much as it may")
CROWDED = Kind(429, "too-many-waiting", "Too many writes of this file wait", retry_after=2)
FULL = Kind(503, "no-space", "There is no room for it", retry_after=30)
BLOBS = Kind(503, "blobs-unavailable", "The store of contents cannot be used", retry_after=5)
_KINDS: tuple[tuple[type[Exception], Kind], ...] = (
    (NoSuchFile, NOT_FOUND),
    (Unmet, UNMET),
    (PathRefused, PATH),
    (PathTaken, TAKEN),
    (QuotaExceeded, QUOTA),
    (BlobTooLarge, TOO_LARGE),
    (TooManyWait, CROWDED),
    (NoSpace, FULL),
    (BlobMissing, NOT_FOUND),
)
_TAG = re.compile(r'(?:W/)?"([!#-~]*)"')
_PIECE = 256 * 1024


class Sending(Uploading):
    """Takes the requests of its path that are forms; others go on to the route behind it."""

    def matches(self, scope: MutableMapping[str, Any]) -> tuple[Match, MutableMapping[str, Any]]:
        """Whether it is for this route."""
        kind = next((value for name, value in scope.get("headers", ()) if name == b"content-type"), b"")
        if kind.split(b";")[0].strip().lower() != MULTIPART.encode():
            return Match.NONE, {}
        return super().matches(scope)


@contextmanager
def told() -> Generator[None]:
    """What files refuse, as answers."""
    try:
        yield
    except tuple(error for error, _ in _KINDS) as error:
        kind = next(kind for known, kind in _KINDS if isinstance(error, known))
        raise Refused(kind, str(error)) from None
    except BlobError:
        raise Refused(BLOBS, f"{BLOBS.title}: operators find it in the log") from None


def file_of(caller: Caller, project: str, file: str, owner: str | None) -> Name:
    """The file that a caller means: its own, unless it sees those of all and names another owner."""
    return name_of(_owner(caller, owner), project, file)


def project_of(caller: Caller, project: str, owner: str | None) -> Space:
    """The project that a caller means."""
    return space_of(_owner(caller, owner), project)


def _owner(caller: Caller, owner: str | None) -> str | None:
    if not caller.sees_all:
        return caller.owner
    if owner is not None and (not owner.isprintable() or len(owner) > 200):
        raise SettingsError("owner: expected up to 200 printable characters")
    return owner


def tags(headers: list[str], name: str) -> list[str]:
    """The versions that If-Match or If-None-Match names, or `*`."""
    text = ",".join(headers).strip()
    if text == ANYTHING:
        return [ANYTHING]
    parts = [_TAG.fullmatch(part.strip()) for part in text.split(",") if part.strip()]
    if not parts or None in parts:
        raise Refused(UNREADABLE, f'the header {name} is not understood: expected "hash", several of them, or *')
    return [part[1] for part in parts if part is not None]


def conditions(request: Request) -> dict[str, Any]:
    """On which version a write is based."""
    based = request.headers.getlist("if-match")
    none = request.headers.getlist("if-none-match")
    if none and tags(none, "If-None-Match") != [ANYTHING]:
        raise Refused(INVALID, "If-None-Match: a write takes * alone, for a file that is not there yet")
    return {"if_match": tags(based, "If-Match") if based else (), "if_none_match": bool(none)}


def content_of(body: WriteFile) -> bytes:
    """The bytes that are to be written."""
    if body.encoding == "utf-8":
        return body.content.encode()
    try:
        return base64.b64decode(body.content, validate=True)
    except (binascii.Error, ValueError):
        raise Refused(INVALID, "content: it is said to be base64 and is not") from None


async def pieces(file: UploadFile) -> AsyncIterator[bytes]:
    """The content of a form's file."""
    while piece := await file.read(_PIECE):
        yield piece
