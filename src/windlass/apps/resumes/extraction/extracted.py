"""What was read of a document: its visible text line by line as it is laid out, and what was found on the way."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["pdf", "docx", "txt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line as a reader sees it. A wide gap within it is one tab."""

    text: str
    x: float = 0.0
    """where it begins, in points from the left"""
    y: float = 0.0
    """its baseline, in points from the top of its page"""
    size: float = 0.0
    """of its letters, in points; 0 where the document does not say"""
    bold: bool = False
    block: int = 0
    """lines of one column or cell have the same number on a page; -1: a header or footer of pages"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page with its lines in reading order: column after column."""

    lines: tuple[Line, ...]
    width: float = 0.0
    height: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """Text that is in the document and cannot be seen. It is left out of everything that follows."""

    why: str
    """white, tiny, off the page, invisible, hidden"""
    page: int
    characters: int
    beginning: str
    """its first characters, for a person to judge"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What can be said of a document without its text: kept beside a resume, and given to its score."""

    kind: Kind
    pages: int
    characters: int
    words: int
    columns: int = 1
    """the most that stand side by side"""
    tables: int = 0
    pictures: int = 0
    scanned: bool = False
    """its pages are pictures of text"""
    recognised: bool = False
    """its text was read from pictures by Tesseract"""
    unreadable: int = 0
    """characters that have no meaning as text"""
    hidden: int = 0
    """characters that cannot be seen"""
    in_margins: bool = False
    """something stands in headers or footers only"""
    notes: tuple[str, ...] = ()
    """what a person should know of how it was read"""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def of(given: dict[str, Any]) -> Facts:
        """The facts that `as_json` gave."""
        told: dict[str, Any] = {**given, "notes": tuple(given.get("notes", ()))}
        return Facts(**told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """One document. `as_json` is what a durable step keeps."""

    pages: tuple[Page, ...]
    facts: Facts
    hidden: tuple[Hidden, ...] = field(default=())
    links: tuple[str, ...] = field(default=())
    """addresses behind the text, which a reader reaches by a click"""

    @property
    def text(self) -> str:
        """All that can be seen, in reading order; pages are parted by a form feed."""
        return "\n\f".join("\n".join(line.text for line in page.lines) for page in self.pages)

    def as_json(self) -> dict[str, Any]:
        """JSON, a short list for each line."""
        pages = [
            {
                "width": page.width,
                "height": page.height,
                "lines": [[one.text, one.x, one.y, one.size, int(one.bold), one.block] for one in page.lines],
            }
            for page in self.pages
        ]
        hidden = [asdict(one) for one in self.hidden]
        return {"pages": pages, "facts": self.facts.as_json(), "hidden": hidden, "links": list(self.links)}

    @staticmethod
    def of(given: dict[str, Any]) -> Extracted:
        """The document that `as_json` gave."""
        return Extracted(
            pages=tuple(_page(page) for page in given["pages"]),
            facts=Facts.of(given["facts"]),
            hidden=tuple(Hidden(**one) for one in given["hidden"]),
            links=tuple(given["links"]),
        )


def _page(given: dict[str, Any]) -> Page:
    lines = (
        Line(text=text, x=x, y=y, size=size, bold=bool(bold), block=block)
        for text, x, y, size, bold, block in given["lines"]
    )
    return Page(lines=tuple(lines), width=given["width"], height=given["height"])
