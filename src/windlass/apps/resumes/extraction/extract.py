"""The one door into reading documents: by what a file is, not by what it is called. Runs in a limited child."""

from __future__ import annotations

from pathlib import Path

from windlass.apps.resumes.extraction.extracted import Extracted
from windlass.apps.resumes.extraction.limits import Limits
from windlass.apps.resumes.extraction.refused import DocumentRefused

_OTHERS = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "it is an old Word document, or has a password: save it as DOCX without"),
    (b"{\\rtf", "it is an RTF document: save it as DOCX or PDF"),
    (b"\x89PNG", "it is a picture: save it as PDF"),
    (b"\xff\xd8\xff", "it is a picture: save it as PDF"),
    (b"%!PS", "it is a PostScript file: save it as PDF"),
    (b"\x1f\x8b", "it is an archive: unpack it first"),
    (b"Rar!", "it is an archive: unpack it first"),
    (b"7z\xbc\xaf", "it is an archive: unpack it first"),
    (b"II*\0", "it is a picture: save it as PDF"),
    (b"MM\0*", "it is a picture: save it as PDF"),
    (b"GIF8", "it is a picture: save it as PDF"),
)  # fmt: skip
_MARKUP = ("<!doctype html", "<html", "<?xml")


def extract(source: Path | bytes, media_type: str, limits: Limits | None = None) -> Extracted:
    """Read a document; DocumentRefused says why it never can be.

    The media type is what the sender says: it decides only where the content does not.
    """
    bounds = limits if limits is not None else Limits()
    data = source if isinstance(source, bytes) else source.read_bytes()
    if len(data) > bounds.largest:
        raise DocumentRefused(f"it has {len(data):,} bytes: {bounds.largest:,} may be")
    if not data.strip():
        raise DocumentRefused("it is empty")
    found = _read(data, media_type, bounds)
    if found.facts.words == 0 and not found.facts.scanned:
        hidden = ": what there is cannot be seen" if found.hidden else ""
        raise DocumentRefused(f"it has no text{hidden}")
    return found


def _read(data: bytes, media_type: str, limits: Limits) -> Extracted:
    # Each reader is loaded when it is first needed: a child that reads PDF files alone stays small.
    if b"%PDF-" in data[:1024]:
        from windlass.apps.resumes.extraction.pdf import read_pdf

        return read_pdf(data, limits)
    if data.startswith(b"PK\x03\x04"):
        from windlass.apps.resumes.extraction.word import read_docx

        return read_docx(data, limits)
    for beginning, reason in _OTHERS:
        if data.startswith(beginning):
            raise DocumentRefused(reason)
    said = media_type.partition(";")[0].strip().lower()
    if said == "application/pdf":
        raise DocumentRefused("it is called a PDF and is none")
    if said.startswith("application/vnd.openxmlformats"):
        raise DocumentRefused("it is called a DOCX and is none")
    if data[:200].lstrip().lower().startswith(tuple(one.encode() for one in _MARKUP)):
        raise DocumentRefused("it is a page of markup: save it as PDF")
    from windlass.apps.resumes.extraction.plain import read_text

    return read_text(data, limits)
