"""PDF files: page by page, what can be seen of their text, and what cannot."""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import replace
from itertools import groupby
from typing import Any

from windlass.apps.resumes.extraction.extracted import Extracted, Facts, Hidden, Line, Page
from windlass.apps.resumes.extraction.layout import Placed, lay_out
from windlass.apps.resumes.extraction.limits import Limits
from windlass.apps.resumes.extraction.pdfium import pdf
from windlass.apps.resumes.extraction.pdfium import raw as pdfium
from windlass.apps.resumes.extraction.recognising import Recognised, recognise
from windlass.apps.resumes.extraction.refused import DocumentRefused
from windlass.apps.resumes.extraction.seen import mark_hidden
from windlass.apps.resumes.extraction.words import Word, WordReader

_LINKS = 100
_OBJECTS = 20_000
_REASONS = {
    pdfium.FPDF_ERR_PASSWORD: "it is protected with a password: save it without one",
    pdfium.FPDF_ERR_SECURITY: "it is protected in a way that cannot be read: save it without protection",
}


def read_pdf(data: bytes, limits: Limits) -> Extracted:
    """What a person sees of a PDF; DocumentRefused says why it cannot be read."""
    document = _open(data)
    try:
        return _Reading(document, limits).read()
    finally:
        document.close()


def _open(data: bytes) -> Any:
    try:
        return pdf.PdfDocument(data)
    except pdf.PdfiumError as error:
        code = getattr(error, "err_code", None)
        raise DocumentRefused(_REASONS.get(code, "it is a broken PDF: open it and save it anew")) from None


class _Reading:
    def __init__(self, document: Any, limits: Limits) -> None:
        self._document, self._limits = document, limits
        self._hidden: list[Hidden] = []
        self._links: list[str] = []
        self._notes: list[str] = []
        self._left = limits.characters
        self._unreadable = self._pictures = self._scanned = self._recognised = 0
        self._columns = 1

    def read(self) -> Extracted:
        count = len(self._document)
        if count == 0:
            raise DocumentRefused("it has no pages")
        if count > self._limits.pages:
            self._notes.append(f"only the first {self._limits.pages} of {count} pages were read")
        pages: list[Page] = []
        for number in range(min(count, self._limits.pages)):
            try:
                page = self._document[number]
            except pdf.PdfiumError:
                self._notes.append(f"page {number + 1} is broken and was not read")
                continue
            try:
                pages.append(self._page(page, number + 1))
            finally:
                page.close()
        if not pages:
            raise DocumentRefused("none of its pages can be read: open it and save it anew")
        if self._left <= 0:
            self._notes.append(f"only the first {self._limits.characters:,} characters were read")
        pages = _margins_marked(pages)
        said = " ".join(line.text for page in pages for line in page.lines)
        facts = Facts(
            kind="pdf",
            pages=count,
            characters=len(said),
            words=len(said.split()),
            columns=self._columns,
            pictures=self._pictures,
            scanned=self._scanned > 0,
            recognised=self._recognised > 0,
            unreadable=self._unreadable,
            hidden=sum(one.characters for one in self._hidden),
            notes=tuple(self._notes),
        )
        return Extracted(
            pages=tuple(pages), facts=facts, hidden=tuple(self._hidden), links=tuple(dict.fromkeys(self._links))
        )

    def _page(self, page: Any, number: int) -> Page:
        width, height = page.get_size()
        text = pdfium.FPDFText_LoadPage(page.raw)
        if not text:
            self._notes.append(f"page {number} has text that cannot be read")
            return Page(lines=(), width=width, height=height)
        try:
            found = WordReader(page.raw, text, width, height).read(max(self._left, 0))
            self._left -= found.characters
            self._unreadable += found.unreadable
            mark_hidden(page.raw, found.words, width, height)
            self._report(found.words, number)
            seen = [_placed(word) for word in found.words if word.hidden is None]
        finally:
            pdfium.FPDFText_ClosePage(text)
        pictures, covered = _pictures(page.raw, width * height)
        self._pictures += pictures
        if sum(len(word.text) for word in seen) < 30 and covered > 0.3:
            seen = self._recognise(page, number, len(found.words)) or seen
        self._links += _links(self._document.raw, page.raw)
        lines, columns = lay_out(seen, width)
        self._columns = max(self._columns, columns)
        return Page(lines=tuple(lines), width=round(width, 1), height=round(height, 1))

    def _report(self, words: list[Word], number: int) -> None:
        unseen = [word for word in words if word.hidden]
        for why, group in groupby(unseen, key=lambda word: word.hidden or ""):
            said = " ".join(word.text for word in group)
            self._hidden.append(Hidden(why=why, page=number, characters=len(said), beginning=said[:80]))

    def _recognise(self, page: Any, number: int, unseen: int) -> list[Placed]:
        """What Tesseract reads of a page that is a picture."""
        self._scanned += 1
        if unseen:
            self._notes.append(f"page {number} is a picture; the text behind it, which cannot be seen, was not used")
        if self._recognised >= self._limits.recognised:
            self._notes.append(f"page {number} is a picture and was not read: {self._limits.recognised} pages may be")
            return []
        found = recognise(page, self._limits.seconds)
        if isinstance(found, Recognised):
            self._recognised += 1
            self._notes.append(f"page {number} is a picture and was read by Tesseract ({found.languages})")
            return found.words
        self._notes.append(f"page {number} is a picture and was not read: {found}")
        return []


def _placed(word: Word) -> Placed:
    if abs(word.style.angle) > 0.2:  # beside the text: a line of its own
        size = max(word.style.size, 1.0)
        return Placed(word.text, word.left, word.left + size * len(word.text) * 0.5, word.bottom, size, word.style.bold)
    return Placed(word.text, word.left, word.right, word.base, word.style.size, word.style.bold)


def _pictures(page: Any, area: float) -> tuple[int, float]:
    """How many pictures are on a page, and which part of it they take."""
    count, covered = 0, 0.0
    sides = [ctypes.c_float() for _ in range(4)]
    for index in range(min(pdfium.FPDFPage_CountObjects(page), _OBJECTS)):
        one = pdfium.FPDFPage_GetObject(page, index)
        if pdfium.FPDFPageObj_GetType(one) in {pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM}:
            count += pdfium.FPDFPageObj_GetType(one) == pdfium.FPDF_PAGEOBJ_IMAGE
            if pdfium.FPDFPageObj_GetBounds(one, *sides):
                left, bottom, right, top = (side.value for side in sides)
                covered += max(0.0, right - left) * max(0.0, top - bottom)
    return count, covered / area if area > 0 else 0.0


def _links(document: Any, page: Any) -> list[str]:
    """The addresses behind a page's text."""
    found: list[str] = []
    position, link = ctypes.c_int(0), pdfium.FPDF_LINK()
    while len(found) < _LINKS and pdfium.FPDFLink_Enumerate(page, position, link):
        action = pdfium.FPDFLink_GetAction(link)
        if not action:
            continue
        length = pdfium.FPDFAction_GetURIPath(document, action, None, 0)
        if 1 < length < 2_000:
            held = ctypes.create_string_buffer(length)
            pdfium.FPDFAction_GetURIPath(document, action, held, length)
            address = held.value.decode("utf-8", "replace").strip()
            if address.lower().startswith(("http://", "https://", "mailto:", "tel:")):
                found.append(address)
    return found


def _margins_marked(pages: list[Page]) -> list[Page]:
    """Lines that stand in the same place on most pages belong to the pages, not to the text."""
    if len(pages) < 2:
        return pages
    where = Counter(key for page in pages for key in {_place(line) for line in page.lines if _in_margin(line, page)})
    return [
        replace(
            page,
            lines=tuple(
                replace(line, block=-1)
                if _in_margin(line, page) and where[_place(line)] * 2 > len(pages) and where[_place(line)] > 1
                else line
                for line in page.lines
            ),
        )
        for page in pages
    ]


def _place(line: Line) -> tuple[int, str]:
    return round(line.y / 4), "".join(one for one in line.text if not one.isdigit())


def _in_margin(line: Line, page: Page) -> bool:
    return line.y < 0.09 * page.height or line.y > 0.92 * page.height
