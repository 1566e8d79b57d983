"""Positions: which words of an entry's head are the title, the company, the place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from windlass.apps.resumes.resume import Work
from windlass.apps.resumes.structuring.entries import Entry, entries_of, told
from windlass.apps.resumes.structuring.rows import Row
from windlass.apps.resumes.vocabulary.dates import Span, find
from windlass.apps.resumes.vocabulary.places import is_place, split_place, sure_place
from windlass.apps.resumes.vocabulary.titles import company_worth, title_worth

_MARKS = re.compile(
    r"\s+[|•·‖¦]\s+|\s+[–—―－-]{1,2}\s+|\s*[|•·]\s*|\s+/{1,2}\s+|\s*;\s+|(?<=[\w)])\s*[–—]\s*(?=[^\W\d])|:\s+(?=[A-ZÄÖÜÉ])"
)
_AT = re.compile(
    r"^(.{3,70}?)(?:\s+(?:at|bei|beim|chez|with|bij|presso)\s+|\s*@\s*)(?:der |dem |die |the (?=[a-z]))?(.{2,80})$"
)
_KIND = re.compile(
    r"^\(?(?:full[- ]?time|part[- ]?time|contract|contractor|permanent|temporary|seasonal|vollzeit|teilzeit|befristet|unbefristet|festanstellung|"
    r"cdi|cdd|intérim|alternance|temps plein|temps partiel|jornada completa|media jornada|temporal|indefinido|hybrid|on-?site|\d{1,3} ?%)\)?$",
    re.IGNORECASE,
)
_LASTED = re.compile(
    r"\(?\b(?:\d+|one|two|three)\s*(?:yrs?|years?|mos?|months?|jahre?n?|monate?n?|ans?|mois|años?|meses|j\.|m\.)\b\.?(?:[\s,]*(?:and|und|et|y)?\s*\d+\s*(?:mos?|months?|monate?n?|mois|meses)\b\.?)?\)?",
    re.IGNORECASE,
)
_LABELS = re.compile(
    r"^(?:company|employer|position|designation|title|job title|role|post|location|firma|arbeitgeber|unternehmen|funktion|rolle|ort|entreprise|poste|lieu|empresa|puesto|cargo|dates?|duration|project|period|zeitraum|client)\s*:\s*",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Piece:
    """Some words of a head: what they may be."""

    text: str
    cell: int
    row: int
    title: float
    company: float


@dataclass(slots=True)
class Head:
    pieces: list[Piece]
    cells: list[str]
    """the texts between tabs, whole"""
    place: str | None


def work_of(rows: list[Row]) -> list[Work]:
    """The positions of a section, in its order."""
    entries = entries_of(rows)
    heads = [head_of(entry.head) for entry in entries]
    order = _order(heads)
    found: list[Work] = []
    company: tuple[str, str | None] | None = None
    for index, (entry, head) in enumerate(zip(entries, heads, strict=True)):
        position, name = assign(head, order)
        if position is None and name is not None and _heads_others(entry, entries, heads, index, order):
            company = name, head.place
            continue
        if name is None and position is not None and company is not None:
            name, inherited = company
            place = head.place or inherited
        else:
            place = head.place
        if name is not None:
            name, place = _parted(name, place)
            company = name, place
        if position is None and name is None and not entry.body:
            continue
        summary, points = told([*_left_over(entry.head, position, name, head.place), *entry.body])
        first, last = _dates(entry.span)
        found.append(
            Work(
                name=name, position=position, location=place, start_date=first, end_date=last, summary=summary,
                highlights=points,
            )
        )  # fmt: skip
    return found


def _left_over(rows: list[Row], *used: str | None) -> list[Row]:
    """Lines of a head, below its date, that are none of what was found in it: they tell of the position."""
    at = next((number for number, row in enumerate(rows) if row.span is not None), len(rows))
    below = rows[at + 1 :]
    return [row for row in below if row.text.count(" ") > 5 and not any(one and one in row.text for one in used)]


def _parted(name: str, place: str | None) -> tuple[str, str | None]:
    """A company and a place whose name is not known: "Octopode, Villeurbanne"."""
    said, _, rest = name.partition(", ")
    named = rest and "," not in rest and all(word[:1].isupper() for word in rest.split()) and len(rest.split()) <= 3
    if place is None and named and rest.isprintable() and company_worth(rest) < 0.15 and title_worth(rest) < 0.5:
        return said, rest
    return name, place


def _dates(span: Span | None) -> tuple[str | None, str | None]:
    if span is None:
        return None, None
    if span.ranged:
        return span.first, span.last
    return span.first, span.last


def _heads_others(entry: Entry, entries: list[Entry], heads: list[Head], index: int, order: float) -> bool:
    """Whether an entry is a company alone, whose positions follow."""
    if entry.body or index + 1 >= len(entries):
        return False
    position, name = assign(heads[index + 1], order)
    return position is not None and (name is None or heads[index + 1].pieces == [])


def head_of(rows: list[Row]) -> Head:
    """The pieces of a head, without its dates, and its place."""
    pieces: list[Piece] = []
    cells: list[str] = []
    place: str | None = None
    for number, row in enumerate(rows):
        text = row.text
        span = find(text)
        if span is not None and (span.ranged or number < 4):
            text = text[: span.begin] + "\t" + text[span.end :]
            again = find(text)
            if again is not None and not again.ranged and not text[again.end :].strip(" ).\t"):
                text = text[: again.begin] + "\t" + text[again.end :]
        for raw in text.split("\t"):
            said = _LASTED.sub(" ", raw) if re.search(r"\d", raw) else raw
            said = clean(_LABELS.sub("", said.strip(" ,|–—－-•·:;/").strip()))
            if not said:
                continue
            if is_place(said) and title_worth(said) < 0.7:
                place = place or said
                continue
            cells.append(said)
            for piece in _MARKS.split(said):
                kept = clean(piece)
                if not kept or _KIND.match(kept):
                    continue
                if is_place(kept) and title_worth(kept) < 0.7:
                    place = place or kept
                    continue
                kept, aside = _place_aside(kept)
                place = place or aside
                parted = _AT.match(kept)
                if (
                    parted is not None
                    and title_worth(parted[1]) >= 0.65
                    and (parted[2][:1].isupper() or parted[2][:1].isdigit())
                ):
                    texts = [(parted[1], 0.6, 0.0), (parted[2], 0.0, 0.6)]
                else:
                    texts = [(kept, 0.0, 0.0)]
                for one, titled, owned in texts:
                    split = split_place(one)
                    if split is not None:
                        one, place = split[0], place or split[1]  # noqa: PLW2901  # the same, without its place
                    pieces.append(
                        Piece(one, len(cells) - 1, number, title_worth(one) + titled, company_worth(one) + owned)
                    )
    pieces = _commas(pieces)
    titles_alone = not any(piece.title < 0.65 for piece in pieces)
    if place is not None and titles_alone and not sure_place(place) and "," in place:
        said, _, place = (part.strip() for part in place.partition(","))  # "Acme, Germany": a company and where it is
        cells.append(said)
        pieces.append(Piece(said, len(cells) - 1, len(rows), title_worth(said), company_worth(said)))
    return Head(pieces=pieces, cells=cells, place=place)


def clean(text: str) -> str:
    """Without marks at its ends, and without half a pair of parentheses."""
    said = re.sub(r"\(\s*\)|\[\s*\]", "", text).strip(" ,|–—-•·:;/").strip()
    if said.count("(") > said.count(")"):
        said = said.removesuffix("(").strip() if said.endswith("(") else said + ")" * said.startswith("(")
    if said.endswith(")") and "(" not in said:
        said = said[:-1].strip()
    if said.startswith("(") and (")" not in said or said.endswith(")")):
        said = said[1:].removesuffix(")").strip()
    return said


def _place_aside(text: str) -> tuple[str, str | None]:
    """A place in parentheses at the end."""
    found = re.match(r"^(.+?)\s*\(([^()]{2,40})\)$", text)
    if found is None:
        return text, None
    if is_place(found[2]):
        return found[1], found[2]
    return (found[1], None) if _KIND.match(found[2]) else (text, None)


def _commas(pieces: list[Piece]) -> list[Piece]:
    """Where one piece has both title and company, with a comma between them, two."""
    titled = [piece for piece in pieces if piece.title >= 0.7]
    if len(pieces) >= 2 and (len(titled) != len(pieces)):
        return pieces
    found: list[Piece] = []
    for piece in pieces:
        parts = piece.text.split(", ")
        best: tuple[float, str, str] | None = None
        for at in range(1, len(parts)):
            left, right = ", ".join(parts[:at]), ", ".join(parts[at:])
            worth = abs((title_worth(left) - company_worth(left)) - (title_worth(right) - company_worth(right)))
            one_title = (title_worth(left) >= 0.65) != (title_worth(right) >= 0.65)
            if (
                one_title
                and not re.fullmatch(r"(?:inc|ltd|llc|gmbh|co|s\.a|corp)\.?", right, re.IGNORECASE)
                and (best is None or worth > best[0])
            ):
                best = worth, left, right
        if best is None or (len(pieces) > 1 and best[0] < 1.2):
            found.append(piece)
        else:
            found += [Piece(text, piece.cell, piece.row, title_worth(text), company_worth(text)) for text in best[1:]]
    return found


def _order(heads: list[Head]) -> float:
    """Whether titles stand first in this document: 1 always, -1 never, 0 unknown."""
    votes: list[float] = []
    for head in heads:
        best = _best(head, 0.0)
        if best is not None and best[3] >= 0.5:
            votes.append(1.0 if best[1] < best[2] else -1.0)
    return sum(votes) / len(votes) if votes else 0.0


def _best(head: Head, order: float) -> tuple[float, int, int, float] | None:
    """The best pair: its worth, which piece is the title, which the company, how much better than the other way round."""
    best: tuple[float, int, int, float] | None = None
    pieces = head.pieces[:6]
    for i, title in enumerate(pieces):
        for j, company in enumerate(pieces):
            if i == j:
                continue
            worth = title.title - 0.7 * title.company - 0.8 * company.title + company.company
            worth += (0.6 * order if i < j else -0.6 * order) - 0.12 * (abs(i - j) - 1) - 0.05 * (i + j)
            other = company.title - 0.7 * company.company - 0.8 * title.title + title.company
            if best is None or worth > best[0]:
                best = worth, i, j, abs(worth - other)
    return best


def assign(head: Head, order: float) -> tuple[str | None, str | None]:
    """Title and company of a head."""
    if not head.pieces:
        return None, None
    if len(head.pieces) == 1:
        piece = head.pieces[0]
        return (piece.text, None) if piece.title >= 0.65 and piece.title >= piece.company - 0.3 else (None, piece.text)
    best = _best(head, order or 0.15)
    if best is None:
        return None, None
    _, i, j, _ = best
    title, company = head.pieces[i], head.pieces[j]
    return _whole(title, company, head), _whole(company, title, head)


def _whole(piece: Piece, other: Piece, head: Head) -> str:
    """A piece with what stood beside it in its cell, unless the other stands there: "Engineer - Platform"."""
    if other.cell == piece.cell:
        return piece.text
    beside = [one for one in head.pieces if one.cell == piece.cell]
    cell = head.cells[piece.cell]
    if len(beside) < 2:
        return piece.text
    split = split_place(cell)
    return split[0] if split is not None else cell
