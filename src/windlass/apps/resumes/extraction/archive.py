"""Checks of the archive that a DOCX is, before anything of it is parsed."""

from __future__ import annotations

import re
import zipfile
import zlib
from io import BytesIO

from windlass.apps.resumes.extraction.limits import Limits
from windlass.apps.resumes.extraction.refused import DocumentRefused

_DECLARED = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_PIECE = 1024 * 1024
_MAIN = "word/document.xml"


def check_archive(data: bytes, limits: Limits) -> None:
    """DocumentRefused where it is too large, lies about its sizes, declares entities, or is no DOCX."""
    try:
        archive = zipfile.ZipFile(BytesIO(data))
        entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, RecursionError):
        raise DocumentRefused("it is a broken DOCX: open it and save it anew") from None
    with archive:
        if len(entries) > limits.entries:
            raise DocumentRefused(f"it has {len(entries):,} parts: {limits.entries:,} may be")
        names = [entry.filename for entry in entries]
        if len(set(names)) < len(names):
            raise DocumentRefused("two of its parts have one name: open it and save it anew")
        if _MAIN not in names:
            raise DocumentRefused(_other(names))
        total = 0
        for entry in entries:
            if entry.flag_bits & 1:
                raise DocumentRefused("it is protected with a password: save it without one")
            if entry.filename.startswith(("/", "\\")) or ".." in entry.filename.replace("\\", "/").split("/"):
                raise DocumentRefused("a part of it has a name that leads elsewhere")
            total = _check_entry(archive, entry, total, limits)


def _check_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, total: int, limits: Limits) -> int:
    """Unpack it once, piece by piece, and count: what it says of its size may be a lie."""
    size, end = 0, b""
    parsed = entry.filename.lower().endswith((".xml", ".rels"))
    try:
        with archive.open(entry) as part:
            while piece := part.read(_PIECE):
                size += len(piece)
                total += len(piece)
                if size > limits.part or total > limits.total:
                    raise DocumentRefused("it is too large when it is unpacked")
                if size > limits.floor and size > limits.ratio * max(entry.compress_size, 1):
                    raise DocumentRefused("a part of it is packed far more than a document's would be")
                if parsed and (_DECLARED.search(end + piece) or (not end and piece[:2] in {b"\xff\xfe", b"\xfe\xff"})):
                    raise DocumentRefused("a part of it declares entities, which no word processor does")
                end = piece[-16:]
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, RuntimeError, zlib.error):
        raise DocumentRefused("it is a broken DOCX: open it and save it anew") from None
    return total


def _other(names: list[str]) -> str:
    if any(name.startswith("xl/") for name in names):
        return "it is a spreadsheet: PDF, DOCX and TXT are read"
    if any(name.startswith("ppt/") for name in names):
        return "it is a presentation: PDF, DOCX and TXT are read"
    if "content.xml" in names:
        return "it is an OpenDocument file: save it as DOCX or PDF"
    return "it is an archive, and no DOCX"
