"""Text files: which encoding, which lines."""

from __future__ import annotations

import re

from windlass.apps.resumes.extraction.extracted import Extracted, Facts, Line, Page
from windlass.apps.resumes.extraction.layout import tidy
from windlass.apps.resumes.extraction.limits import Limits
from windlass.apps.resumes.extraction.refused import DocumentRefused

_INDENT = 5.0
"""points that a leading space stands for"""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_GAP = re.compile(r"(?<=\S)(?: {3,}| *\t[ \t]*)(?=\S)")


def read_text(data: bytes, limits: Limits) -> Extracted:
    """The lines of a text file; a form feed begins a page."""
    text, encoding = _decoded(data)
    notes: list[str] = []
    if len(text) > limits.characters:
        text = text[: limits.characters]
        notes.append(f"only the first {limits.characters:,} characters were read")
    if encoding != "utf-8":
        notes.append(f"its letters were read as {encoding}")
    unseen = _CONTROL.findall(text)
    pages = tuple(_page(page) for page in text.replace("\r\n", "\n").replace("\r", "\n").split("\f") if page.strip())
    said = " ".join(line.text for page in pages for line in page.lines)
    facts = Facts(
        kind="txt",
        pages=max(1, len(pages)),
        characters=len(said),
        words=len(said.split()),
        unreadable=text.count("\ufffd"),
        hidden=len(unseen),
        notes=tuple(notes),
    )
    return Extracted(pages=pages, facts=facts)


def _page(text: str) -> Page:
    lines: list[Line] = []
    for at, raw in enumerate(text.split("\n")):
        kept = _CONTROL.sub("", raw).expandtabs(8) if raw[:1] == "\t" else _CONTROL.sub("", raw)
        said = tidy(_GAP.sub("\t", kept.strip()))
        if said:
            indent = len(kept) - len(kept.lstrip())
            lines.append(Line(text=said, x=indent * _INDENT, y=12.0 * (at + 1)))
    return Page(lines=tuple(lines))


def _decoded(data: bytes) -> tuple[str, str]:
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(encoding, "replace").lstrip("\ufeff"), encoding
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _guessed(data)
    if _binary(text):
        return _guessed(data)
    return text, "utf-8"


def _guessed(data: bytes) -> tuple[str, str]:
    sides = [data[start:4000:2].count(0) for start in (0, 1)]
    if max(sides) * 4 > min(len(data), 4000) and max(sides) > 3 * min(sides):
        encoding = "utf-16-le" if sides[1] > sides[0] else "utf-16-be"
        text = data.decode(encoding, "replace")
        if not _binary(text):
            return text, encoding
    if b"\0" in data:
        raise DocumentRefused("it is neither a PDF nor a DOCX nor a text file")
    from charset_normalizer import from_bytes

    western = data.decode("cp1252", "replace")
    if _western(western):
        return western, "cp1252"
    best = from_bytes(data[:64_000]).best()
    if best is None:
        raise DocumentRefused("its letters are in no encoding that is known: save it as UTF-8")
    text = data.decode(best.encoding, "replace")
    if _binary(text):
        raise DocumentRefused("it is neither a PDF nor a DOCX nor a text file")
    return text, best.encoding


def _western(text: str) -> bool:
    """Whether all that is not ASCII are letters and marks of Western Europe, among words of ASCII."""
    strange = [one for one in text if one > "\x7f"]
    usual = "äöüßÄÖÜéèêëàâáãåæçîïíìñôóòõøœùûúÿÉÈÊÀÂÁÇÎÍÑÔÓÚ€–—‘’“”„…•·«»°§®™ª º¿¡\xa0"
    return (
        not _binary(text)
        and sum(one in usual for one in strange) * 10 >= len(strange) * 9
        and len(strange) * 4 < len(text)
    )


def _binary(text: str) -> bool:
    return sum(one < " " and one not in "\t\n\r\f\x0b" for one in text[:4000]) > min(len(text), 4000) * 0.02
