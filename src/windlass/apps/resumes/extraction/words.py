"""The words on a page of a PDF: where each stands, how it is set, and whether it may be seen at all."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Any

from windlass.apps.resumes.extraction.pdfium import raw as pdfium

TINIEST = 3.9
"""points: smaller text cannot be read"""
_BLANK = frozenset((32, 160, 13, 10, 9))
_ASLANT = 0.2
"""radians"""
_INVISIBLE = (3, 7)
"""render modes without ink"""
_BOLD = ("bold", "black", "heavy", "semibd", "-demi", "cmbx")
_SYMBOLS = {
    0xF0B7: "•", 0xF0A7: "•", 0xF0D8: "•", 0xF0FC: "•", 0xF076: "•", 0xF0E0: "•", 0xF06C: "•", 0xF02D: "-",
    0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st",
    0x00A0: " ", 0x202F: " ", 0x2007: " ", 0x2009: " ", 0x200A: " ", 0x2002: " ", 0x2003: " ", 0x3000: " ",
    0x0002: "-", 0xFFFE: "-", 0x00AD: "", 0x200B: "", 0x200C: "", 0x200D: "", 0xFEFF: "", 0x2060: "",
}  # fmt: skip


@dataclass(slots=True)
class Style:
    """How a text object is set."""

    size: float
    bold: bool
    light: bool
    angle: float
    hidden: str | None
    handle: Any
    """the object, for as long as its page is open"""
    base: float = 0.0


@dataclass(slots=True)
class Word:
    text: str
    left: float
    right: float
    top: float
    bottom: float
    base: float
    """from the top of the page, as all the others"""
    style: Style
    hidden: str | None = None
    apart: bool = True
    """a space is written before it"""


@dataclass(slots=True)
class Read:
    """What is on a page."""

    words: list[Word]
    characters: int = 0
    unreadable: int = 0


class WordReader:
    """Reads the characters of one page into words."""

    def __init__(self, page: Any, text: Any, width: float, height: float) -> None:
        self._text = text
        self._width, self._height = width, height
        self._turned = pdfium.FPDFPage_GetRotation(page)
        self._paper = pdfium.FS_RECTF()
        pdfium.FPDF_GetPageBoundingBox(page, self._paper)
        self._styles: dict[int, Style] = {}
        self._word: Word | None = None
        self._found = Read(words=[])
        self._begun = self._end = 0.0

    def read(self, most: int) -> Read:
        """The words, in the order in which they stand in the file."""
        text, box = self._text, pdfium.FS_RECTF()
        unicode, handle_of, loose = (
            pdfium.FPDFText_GetUnicode,
            pdfium.FPDFText_GetTextObject,
            pdfium.FPDFText_GetLooseCharBox,
        )
        spaced, made = True, False
        count = min(pdfium.FPDFText_CountChars(text), most)
        for index in range(count):
            code = unicode(text, index)
            if code in _BLANK:
                if pdfium.FPDFText_IsGenerated(text, index) == 1:
                    made = True
                else:
                    spaced = True
                continue
            character = self._character(code)
            if not character:
                spaced = spaced or code >= 0xE000
                continue
            handle = handle_of(text, index)
            style = self._style(handle, index)
            loose(text, index, box)
            self._put(character, style, box, spaced=spaced, made=made)
            spaced = made = False
        self._found.characters = count
        return self._found

    def _character(self, code: int) -> str:
        """What is kept of one: nothing of icons, which have no meaning as text."""
        known = _SYMBOLS.get(code)
        if known is not None:
            return known
        if code < 32 or code == 0xFFFD or 0xD800 <= code < 0xE000:
            self._found.unreadable += 1
            return ""
        if 0xE000 <= code < 0xF900 or code >= 0xF0000:
            return ""
        return chr(code)

    def _style(self, handle: Any, index: int) -> Style:
        address = ctypes.addressof(handle.contents) if handle else 0
        style = self._styles.get(address)
        if style is None:
            style = self._styles[address] = _style(self._text, handle, index)
            style.angle = math.remainder(style.angle - self._turned * math.pi / 2, 2 * math.pi)
            across, down = ctypes.c_double(), ctypes.c_double()
            pdfium.FPDFText_GetCharOrigin(self._text, index, across, down)
            style.base = self._turn(across.value, across.value, down.value, down.value)[3]
        return style

    def _put(self, character: str, style: Style, box: Any, *, spaced: bool, made: bool) -> None:
        left, right, top, bottom = self._turn(box.left, box.right, box.top, box.bottom)
        word = self._word
        if word is not None and self._goes_on(word, style, left, spaced=spaced, made=made):
            aslant = abs(style.angle) > _ASLANT
            word.text += " " + character if aslant and spaced else character
            word.left, word.right = min(word.left, left), max(word.right, right)
            word.top, word.bottom = min(word.top, top), max(word.bottom, bottom)
            self._begun, self._end = left, right
            return
        word = self._word = Word(character, left, right, top, bottom, style.base, style, style.hidden, spaced)
        if word.hidden is None and not self._on_page(left, right, top, bottom):
            word.hidden = "off the page"
        self._found.words.append(word)
        self._begun, self._end = left, right

    def _goes_on(self, word: Word, style: Style, left: float, *, spaced: bool, made: bool) -> bool:
        if abs(style.angle) > _ASLANT:
            return word.style is style
        if spaced or word.style.hidden != style.hidden:
            return False
        size = style.size or 1.0
        if word.style is not style:
            level = abs(style.base - word.base) < 0.35 * size and abs(word.style.angle) <= _ASLANT
            if not level or word.style.light != style.light:  # each word is seen, or not, as a whole
                return False
        if left >= self._begun - 0.05 * size and left < self._end:
            return True  # a ligature: its letters share one box
        return -0.5 * size < left - self._end < (0.12 if made else 0.25) * size

    def _turn(self, left: float, right: float, top: float, bottom: float) -> tuple[float, float, float, float]:
        """A box as the page is looked at: left, right, top, bottom, from the top left."""
        paper = self._paper
        if self._turned == 1:
            return bottom - paper.bottom, top - paper.bottom, left - paper.left, right - paper.left
        if self._turned == 2:
            return paper.right - right, paper.right - left, bottom - paper.bottom, top - paper.bottom
        if self._turned == 3:
            return paper.top - top, paper.top - bottom, paper.right - right, paper.right - left
        return left - paper.left, right - paper.left, paper.top - top, paper.top - bottom

    def _on_page(self, left: float, right: float, top: float, bottom: float) -> bool:
        across, down = (left + right) / 2, (top + bottom) / 2
        return -1 <= across <= self._width + 1 and -1 <= down <= self._height + 1


def _style(text: Any, handle: Any, index: int) -> Style:
    matrix = pdfium.FS_MATRIX()
    pdfium.FPDFText_GetMatrix(text, index, matrix)
    size = abs(pdfium.FPDFText_GetFontSize(text, index)) * math.hypot(matrix.c, matrix.d)
    colour = [ctypes.c_uint() for _ in range(4)]
    known = pdfium.FPDFText_GetFillColor(text, index, *colour)
    red, green, blue, alpha = (one.value for one in colour) if known else (255, 255, 255, 255)
    mode = pdfium.FPDFTextObj_GetTextRenderMode(handle) if handle else 0
    hidden = None
    if mode in _INVISIBLE or (alpha < 16 and mode == 0):
        hidden = "invisible"
    elif size < TINIEST:
        hidden = "tiny"
    return Style(
        size=size,
        bold=_bold(text, index),
        light=0.299 * red + 0.587 * green + 0.114 * blue > 190 or alpha < 128,
        angle=math.atan2(matrix.b, matrix.a),
        hidden=hidden,
        handle=handle,
    )


def _bold(text: Any, index: int) -> bool:
    name, flags = ctypes.create_string_buffer(128), ctypes.c_int()
    pdfium.FPDFText_GetFontInfo(text, index, name, 128, flags)
    lowered = name.value.decode("utf-8", "replace").lower()
    return any(part in lowered for part in _BOLD) or bool(flags.value & 0x40000)
