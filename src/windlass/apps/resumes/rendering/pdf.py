"""A resume as PDF, set by typst. Its markup is a file of ours; data comes as JSON, and no file can be reached."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import typst

from windlass.apps.resumes.extraction.pdfium import pdf as pdfium
from windlass.apps.resumes.rendering.outline import Outline

_compile: Any = typst.compile
"""its stub wants markup and root to be of one type"""
_PAGE = Path(__file__).with_name("page.typ")
_SCALES = ((1.0, 1.3), (1.0, 1.1), (0.96, 1.0), (0.9, 0.95), (0.84, 0.9))
"""how large letters are and how far apart lines: the first with which all fits on one page"""
_LOOSE = (0.96, 1.05)
"""on several pages"""
_LANGUAGES = {"english": "en", "german": "de", "french": "fr", "spanish": "es"}


def pdf(shown: Outline) -> bytes:
    """The file: one page where that can be read, else as many as it takes."""
    data = json.dumps({**asdict(shown), "lang": _LANGUAGES.get(shown.language, "en")})
    for scale, air in _SCALES:
        made = _set(data, scale, air)
        pages = _pages(made)
        if pages == 1:
            return made
        if pages > 2:
            break  # no size makes one page of it
    return _set(data, *_LOOSE)


def _set(data: str, scale: float, air: float) -> bytes:
    with tempfile.TemporaryDirectory(prefix="windlass-") as root:  # nothing is in it, and nothing else can be read
        made = _compile(
            _markup(),
            root=root,
            format="pdf",
            sys_inputs={"resume": data, "scale": str(scale), "air": str(air)},
        )
    if not isinstance(made, bytes):
        raise TypeError("typst gave no file")
    return made


@cache
def _markup() -> bytes:
    return _PAGE.read_bytes()


def _pages(made: bytes) -> int:
    document = pdfium.PdfDocument(made)
    try:
        return len(document)
    finally:
        document.close()
