"""How the text of a DOCX is set: by its runs, or by the styles that they have, each of which is read once.

What python-docx gives is Any here: much of it has no types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from docx.oxml.ns import qn

_DEEPEST = 8
_OFF = frozenset(("0", "false", "off", "none"))


@dataclass(frozen=True, slots=True)
class Look:
    """What a style, or a run, says; None where it says nothing."""

    name: str = ""
    size: float | None = None
    bold: bool | None = None
    hidden: bool | None = None
    base: str | None = None


class Styles:
    """The styles of one document. python-docx looks each up anew for each run, which takes a hundred times as long."""

    def __init__(self, document: Any) -> None:
        self._looks: dict[str, Look] = {}
        self._usual: str | None = None
        for style in document.styles.element.iterchildren(qn("w:style")):
            name, base = style.find(qn("w:name")), style.find(qn("w:basedOn"))
            said = _said(style.find(qn("w:rPr")))
            identity = style.get(qn("w:styleId")) or ""
            self._looks[identity] = Look(
                name=(name.get(qn("w:val")) or "").lower() if name is not None else "",
                size=said.size,
                bold=said.bold,
                hidden=said.hidden,
                base=base.get(qn("w:val")) if base is not None else None,
            )
            if style.get(qn("w:type")) == "paragraph" and style.get(qn("w:default")) not in {None, *_OFF}:
                self._usual = identity

    def name(self, paragraph: Any) -> str:
        """The name of a paragraph's style, in small letters."""
        return self._looks.get(self._of(paragraph) or "", Look()).name

    def size(self, run: Any, paragraph: Any) -> float:
        """In points; 0 where nothing says."""
        return float(self._found(run, paragraph, "size") or 0.0)

    def bold(self, run: Any, paragraph: Any) -> bool:
        return bool(self._found(run, paragraph, "bold"))

    def hidden(self, run: Any, paragraph: Any) -> bool:
        return bool(self._found(run, paragraph, "hidden"))

    def _found(self, run: Any, paragraph: Any, what: str) -> Any:
        properties = run._r.find(qn("w:rPr"))  # noqa: SLF001  # its public names look styles up
        own = getattr(_said(properties), what)
        if own is not None:
            return own
        style = properties.find(qn("w:rStyle")) if properties is not None else None
        for first in (style.get(qn("w:val")) if style is not None else None, self._of(paragraph)):
            identity = first
            for _ in range(_DEEPEST):
                look = self._looks.get(identity or "")
                if look is None:
                    break
                if getattr(look, what) is not None:
                    return getattr(look, what)
                identity = look.base
        return None

    def _of(self, paragraph: Any) -> str | None:
        properties = paragraph._p.find(qn("w:pPr"))  # noqa: SLF001  # the same
        style = properties.find(qn("w:pStyle")) if properties is not None else None
        return style.get(qn("w:val")) if style is not None else self._usual


def _said(properties: Any) -> Look:
    if properties is None:
        return Look()
    size = properties.find(qn("w:sz"))
    value = size.get(qn("w:val")) if size is not None else None
    return Look(
        size=float(value) / 2 if value is not None and value.isdigit() else None,
        bold=_switch(properties.find(qn("w:b"))),
        hidden=_switch(properties.find(qn("w:vanish"))),
    )


def _switch(element: Any) -> bool | None:
    if element is None:
        return None
    return str(element.get(qn("w:val"), "1")).lower() not in _OFF
