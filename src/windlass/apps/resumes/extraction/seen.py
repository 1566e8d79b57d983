"""Which words a person sees: those without which the page looks different."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from typing import Any

from windlass.apps.resumes.extraction.pdfium import raw as pdfium
from windlass.apps.resumes.extraction.words import Style, Word

_PIXELS = 1_500_000
_FAINTEST = 14
"""of 255: how much darker or lighter ink must be than what is behind it"""
_ALONE = 12
"""words on top of others that are looked at one by one"""


def mark_hidden(page: Any, words: list[Word], width: float, height: float) -> None:
    """Give each word that cannot be seen its reason. The page is drawn with its text and without."""
    shown = [word for word in words if word.hidden is None]
    if not shown or width <= 0 or height <= 0:
        return
    styles = list({id(word.style): word.style for word in shown}.values())
    artist = _Artist(page, width, height)
    whole = artist.draw()
    _judge(shown, whole, artist.without(styles), artist)
    light = [style for style in styles if style.light]
    if light and len(light) < len(styles):
        _judge([word for word in shown if word.style.light and not word.hidden], whole, artist.without(light), artist)
    upon = _upon_each_other([word for word in shown if not word.hidden])
    for count, word in enumerate(upon):
        if count >= _ALONE or not artist.differs(word, whole, artist.without([word.style])):
            word.hidden = "behind others"


def _judge(words: list[Word], whole: bytes, without: bytes, artist: _Artist) -> None:
    for word in words:
        if not artist.differs(word, whole, without):
            word.hidden = "white" if word.style.light else "behind a picture or of its ground's colour"


class _Artist:
    def __init__(self, page: Any, width: float, height: float) -> None:
        self._page = page
        self._scale = min(1.0, (_PIXELS / (width * height)) ** 0.5)
        self._across, self._down = max(1, int(width * self._scale)), max(1, int(height * self._scale))

    def draw(self) -> bytes:
        bitmap = pdfium.FPDFBitmap_CreateEx(self._across, self._down, pdfium.FPDFBitmap_Gray, None, self._across)
        try:
            pdfium.FPDFBitmap_FillRect(bitmap, 0, 0, self._across, self._down, 0xFFFFFFFF)
            flags = pdfium.FPDF_GRAYSCALE | pdfium.FPDF_ANNOT
            pdfium.FPDF_RenderPageBitmap(bitmap, self._page, 0, 0, self._across, self._down, 0, flags)
            start = pdfium.FPDFBitmap_GetBuffer(bitmap)
            stride = pdfium.FPDFBitmap_GetStride(bitmap)
            held = (ctypes.c_ubyte * (stride * self._down)).from_address(start)
            drawn = bytes(held)
        finally:
            pdfium.FPDFBitmap_Destroy(bitmap)
        if stride == self._across:
            return drawn
        return b"".join(drawn[row * stride : row * stride + self._across] for row in range(self._down))

    def without(self, styles: list[Style]) -> bytes:
        for style in styles:
            if style.handle:
                pdfium.FPDFPageObj_SetIsActive(style.handle, False)
        try:
            return self.draw()
        finally:
            for style in styles:
                if style.handle:
                    pdfium.FPDFPageObj_SetIsActive(style.handle, True)

    def differs(self, word: Word, one: bytes, other: bytes) -> bool:
        """Whether enough ink of a word can be told from its ground."""
        scale = self._scale
        left, right = max(0, int(word.left * scale)), min(self._across, int(word.right * scale) + 1)
        top, bottom = max(0, int(word.top * scale)), min(self._down, int(word.bottom * scale) + 1)
        needed = max(1.0, 0.015 * (right - left) * (bottom - top))
        found = 0
        for row in range(top, bottom):
            start, end = row * self._across + left, row * self._across + right
            here, there = one[start:end], other[start:end]
            if here != there:
                found += sum(1 for a, b in zip(here, there, strict=True) if a - b >= _FAINTEST or b - a >= _FAINTEST)
                if found >= needed:
                    return True
        return False


def _upon_each_other(words: list[Word]) -> list[Word]:
    """Words that lie mostly within others. The same word twice in one place is one that is printed fat."""
    rows: dict[int, list[Word]] = defaultdict(list)
    for word in words:
        rows[int(word.base // 8)].append(word)
    found: list[Word] = []
    for row, here in rows.items():
        near = sorted([*here, *rows.get(row + 1, ())], key=lambda word: word.left)
        for at, word in enumerate(near):
            for other in near[at + 1 :]:
                if other.left >= word.right:
                    break
                if _covers(word, other) and not word.hidden and not other.hidden:
                    if word.text == other.text:
                        other.hidden = ""
                    else:
                        found += [word, other]
    return list({id(word): word for word in found}.values())


def _covers(word: Word, other: Word) -> bool:
    across = min(word.right, other.right) - max(word.left, other.left)
    down = min(word.bottom, other.bottom) - max(word.top, other.top)
    if across <= 0 or down <= 0:
        return False
    smaller = min((one.right - one.left) * (one.bottom - one.top) for one in (word, other))
    return across * down > 0.6 * smaller
