"""Taking a file from a form: its name, media type and beginning are checked, its bytes counted while they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.apps.uploads.kept import NotThere, Sent, TooLarge, Uploads
from windlass.web import NOT_FOUND, TOO_LARGE, Caller, Kind, Refused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from fastapi import UploadFile

    from windlass.apps.uploads.names import Accepted

FILE_REFUSED = Kind(422, "file-refused", "The file is refused")
AROUND = 64 * 1024
"""bytes of a form beside its file: `Upload(largest=largest + AROUND)` is what a route declares"""
_PIECE = 256 * 1024


def name_of(file: UploadFile, accepted: Accepted) -> str:
    """What its sender calls it, without the path that some browsers send; SettingsError or Refused says why not."""
    name = accepted.check_name((file.filename or "").replace("\\", "/").rpartition("/")[2])
    kind = (file.content_type or "application/octet-stream").partition(";")[0].strip().lower()
    if kind not in accepted.media:
        raise Refused(FILE_REFUSED, f"the file is sent as {kind[:60]}: expected {accepted.what}")
    return name


async def pieces(file: UploadFile, name: str, accepted: Accepted) -> AsyncGenerator[bytes, None]:
    """Its content; Refused where it begins with what no file of this name begins with."""
    first = True
    while piece := await file.read(_PIECE):
        if first and not accepted.fits(name, piece):
            raise Refused(
                FILE_REFUSED, f"its content is not that of a {accepted.suffix(name)} file, whatever its name says"
            )
        first = False
        yield piece


async def receive(uploads: Uploads, file: UploadFile, *, owner: str, largest: int) -> Sent:
    """Keep the file of a form. Whatever goes wrong, nothing of it stays."""
    name = name_of(file, uploads.accepted)
    try:
        parts = pieces(file, name, uploads.accepted)
        return await uploads.take(parts, owner=owner, filename=name, largest=largest)
    except TooLarge:
        raise Refused(TOO_LARGE, f"a file may have {largest:,} bytes") from None


def sent_by(uploads: Uploads, token: str, caller: Caller) -> Sent:
    """What this caller has sent; not found where it was somebody else."""
    try:
        sent = uploads.about(token)
    except NotThere as error:
        raise Refused(NOT_FOUND, str(error)) from None
    if not caller.sees_all and sent.owner != caller.owner:
        raise Refused(NOT_FOUND, "the file that was sent is not there any more: send it again")
    return sent
