"""Projects and unpaid work: entries whose head is a name."""

from __future__ import annotations

import re

from windlass.apps.resumes.resume import Project, Volunteer
from windlass.apps.resumes.structuring.entries import Entry, entries_of, told
from windlass.apps.resumes.structuring.rows import Row
from windlass.apps.resumes.structuring.work import assign, head_of
from windlass.apps.resumes.vocabulary.dates import find

_LINK = re.compile(
    r"https?://[^\s|,;()<>\"{}\\^`]+|(?:www\.|github\.com/|gitlab\.com/)[^\s|,;()<>\"{}\\^`]+", re.IGNORECASE
)
_STACK = re.compile(
    r"^(?:technologies|tech stack|stack|tools|built with|technologien|technologies utilisées|tecnologías|environment)\s*(?:used)?\s*:\s*(.+)$",
    re.IGNORECASE,
)
_NAME = re.compile(r"\t|\s+[|–—·•-]\s+|:\s+|\s*\|\s*")


def projects_of(rows: list[Row]) -> list[Project]:
    """Projects with what is told of them."""
    entries = entries_of(rows, dates_only=False)
    if entries and not any(entry.head for entry in entries):
        entries = [Entry(head=[row]) for entry in entries for row in _points(entry.body)]
    return [project for entry in entries if (project := _project(entry)) is not None][:100]


def _points(rows: list[Row]) -> list[Row]:
    kept: list[Row] = []
    for row in rows:
        if kept and not row.bullet:
            kept[-1].text += f" {row.text}"
        else:
            kept.append(row)
    return kept


def _project(entry: Entry) -> Project | None:
    span = entry.span
    texts: list[str] = []
    url: str | None = None
    for row in [*entry.head, *entry.body]:
        found = _LINK.search(row.text)
        if found is not None and url is None:
            address = found.group().rstrip(".")
            url = address if "://" in address else f"https://{address}"
    for row in entry.head:
        text = _LINK.sub(" ", row.text)
        date = find(text)
        if date is not None:
            text = f"{text[: date.begin]}\t{text[date.end :]}"
        texts.append(text)
    pieces = [piece.strip(" ,()[]–—-|•:\t") for text in texts for piece in _NAME.split(text)]
    pieces = [piece for piece in pieces if piece]
    if not pieces:
        return None
    summary, points = told(entry.body)
    words: list[str] = []
    kept: list[str] = []
    for point in points:
        stack = _STACK.match(point)
        if stack is None:
            kept.append(point)
        else:
            words += [word.strip(" .") for word in re.split(r"[,;|]", stack[1]) if word.strip(" .")]
    rest = " ".join(pieces[1:])
    if rest and rest.count(",") >= 1 and all(len(word.split()) <= 3 for word in rest.split(",")):
        words += [word.strip() for word in rest.split(",") if word.strip()]
        rest = ""
    description = " ".join(one for one in (rest, summary) if one) or None
    first, last = (span.first, span.last) if span is not None else (None, None)
    return Project(
        name=pieces[0][:300], description=description, highlights=kept, keywords=words[:50], start_date=first,
        end_date=last, url=url,
    )  # fmt: skip


def volunteer_of(rows: list[Row]) -> list[Volunteer]:
    """Unpaid work; lines without dates are entries, too."""
    entries = entries_of(rows, dates_only=False)
    if entries and not any(entry.head for entry in entries):
        entries = [Entry(head=[row]) for entry in entries for row in _points(entry.body)]
    found: list[Volunteer] = []
    for entry in entries:
        position, name = assign(head_of(entry.head), 0.0)
        if position is None and name is None:
            continue
        summary, points = told(entry.body)
        span = entry.span
        found.append(
            Volunteer(
                organization=name, position=position, start_date=span.first if span else None,
                end_date=span.last if span else None, summary=summary, highlights=points,
            )
        )  # fmt: skip
    return found[:100]
