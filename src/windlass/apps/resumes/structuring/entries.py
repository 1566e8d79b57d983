"""Entries of a section: which lines are the head of one, which tell of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from windlass.apps.resumes.structuring.contact import joined
from windlass.apps.resumes.structuring.rows import Row
from windlass.apps.resumes.vocabulary.dates import Span
from windlass.apps.resumes.vocabulary.places import is_place, split_place
from windlass.apps.resumes.vocabulary.titles import company_worth, title_worth

_ACTION = re.compile(
    r"^(?:responsib|led|built|wrote|drove|ran|grew|oversaw|spearhead|managing|working|developing|designing|creating|leading|building|key |main |"
    r"tasks|duties|aufgaben|verantwort|entwicklung |konzeption |betreuung |durchf|erstellung |planung |mitarbeit |unterstützung |einführung |"
    r"analyse |optimierung |umsetzung |aufbau |implementierung |koordination |gestion d|développement |mise en |conception |suivi |encadrement |"
    r"participation |réalisation |création |animation |desarroll|gestión d|diseño |implementación |coordinación |análisis |elaboración |apoyo )",
    re.IGNORECASE,
)
_PAST = re.compile(r"^(?!Bed\b|Red\b)[A-Z][a-z]{2,}(?:ed|ized|ised)\b(?!\s*[,|–-])")
_LABEL = re.compile(
    r"^(?:technologies|tech stack|stack|tools|environment|skills|skills used|technologien|technik|environnement|outils|tecnologías|key achievements|achievements|responsibilities|aufgaben|tätigkeiten|schwerpunkte|projects?|relevant coursework|coursework|courses|thesis|gpa|description|missions?|tareas|logros|funciones)\b.{0,12}:",
    re.IGNORECASE,
)


_HANGING = re.compile(r"(?:,|&|\b(?:and|und|et|y|the|of|in|for|with|de|der|die|das|von|la|le|mit|für|des|du))$")


_POINTS = 200
"""of one entry"""


@dataclass(slots=True)
class Entry:
    """Lines of one position, project, or the like."""

    head: list[Row]
    body: list[Row] = field(default_factory=list[Row])

    @property
    def span(self) -> Span | None:
        spans = [row.span for row in self.head if row.span is not None]
        return next((span for span in spans if span.ranged), spans[0] if spans else None)


def entries_of(rows: list[Row], *, dates_only: bool = True) -> list[Entry]:
    """The entries of a section. With `dates_only`, an entry without a date must look like a position."""
    kinds = _kinds(rows)
    entries: list[Entry] = []
    at = 0
    while at < len(rows):
        end = at
        body = kinds[at] == "body"
        while end < len(rows) and (kinds[end] == "body") == body:
            end += 1
        group = rows[at:end]
        if body:
            if entries:
                entries[-1].body += group
            elif not any(kind != "body" for kind in kinds):
                entries.append(Entry(head=[], body=group))
        else:
            _add(entries, group, [kind == "dated" for kind in kinds[at:end]], dates_only=dates_only)
        at = end
    return entries


def _kinds(rows: list[Row]) -> list[str]:
    """Of each row: dated, head, body."""
    ranged = [row for row in rows if _dates(row)]
    marked = sum(row.bullet for row in ranged) * 2 > len(ranged)
    heads = [row for row in ranged if row.bullet == marked]
    bare = [row for row in rows if not row.bullet and not _dates(row)]
    tabled = sum(_begins_with_date(row) for row in heads) * 2 > len(heads)
    margins: dict[int, float] = {}
    for row in (bare if tabled and bare else heads) or rows:
        key = row.page * 100 + row.block
        margins[key] = min(margins.get(key, row.x), row.x)
    longest = max((len(row.text) for row in rows), default=0)
    kinds: list[str] = []
    for at, row in enumerate(rows):
        above = rows[at - 1] if at else None
        margin = margins.get(row.page * 100 + row.block, row.x)
        kinds.append(_kind(row, above, kinds[-1] if kinds else "", marked=marked, margin=margin, longest=longest))
    return kinds


def _kind(row: Row, above: Row | None, before: str, *, marked: bool, margin: float, longest: int) -> str:
    if _dates(row) and (not row.bullet or marked):
        rest = row.text[: row.span.begin] + row.text[row.span.end :] if row.span else row.text
        if len(rest) <= 110 and not (before == "body" and rest[:1].islower()):
            return "dated"
    if row.bullet:
        return "body"
    text = row.text
    words = text.count(" ") + 1
    if text[0].islower() or len(text) > 115 or _LABEL.match(text):
        return "body"
    if (
        text.endswith((".", ";")) and words > 2 and not re.search(r"(?:Inc|Ltd|Co|Corp|e\.V|S\.A|Dipl|jr)\.$", text)
    ) or text.endswith(":"):
        return "body"
    if row.bold and len(text) < 90:
        return "head"
    if before == "body" and above is not None:
        tight = row.gap == 0 or row.gap < 1.75
        if row.x > margin + 5:
            return "body"
        if tight and len(above.text) > 0.72 * longest > 45 and not above.text.endswith("."):
            return "body"
        if tight and above.bullet and row.x > above.x + 2:
            return "body"
    if (
        before in {"dated", "head"}
        and row.x > margin + 8
        and words > 3
        and "\t" not in text
        and company_worth(text) < 1.2
        and split_place(text) is None
    ):
        return "body"
    if (_ACTION.match(text) and title_worth(text) < 0.9) or (
        _PAST.match(text) and words > 2 and title_worth(text) < 0.65
    ):
        return "body"
    if words > 12 and "\t" not in text and "|" not in text:
        return "body"
    return "head"


def _dates(row: Row) -> bool:
    """Whether a row tells when: a range, or one date that stands by itself or at an end."""
    span = row.span
    if span is None:
        return False
    text = row.text
    if span.ranged:
        return not (row.bullet and len(text) > 90)
    if row.bullet or len(text) > 90:
        return False
    if text.endswith(".") and text.count(" ") > 3:
        return False
    before, after = text[: span.begin], text[span.end :]
    alone = not before.strip(" (,|–-•\t") or not after.strip(" ),.|–-•\t")
    return alone and (not before or before.endswith((" ", "\t", "(", "|", ","))) and not _ACTION.match(text)


def _begins_with_date(row: Row) -> bool:
    return row.span is not None and row.span.begin <= 2 and "\t" in row.text


def _add(entries: list[Entry], group: list[Row], dated: list[bool], *, dates_only: bool) -> None:
    at = [index for index, yes in enumerate(dated) if yes]
    if not at:
        _add_undated(entries, group, dates_only=dates_only)
        return
    starts = [_first_start(entries, group, at[0])]
    lead = at[0] - starts[0]
    for before, after in pairwise(at):
        starts.append(_boundary(group, before, after, lead))
    if starts[0] > 0 and entries:
        entries[-1].body += group[: starts[0]]
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(group)
        date = at[number]
        last = min(end, date + 4)
        entries.append(Entry(head=group[start:last], body=group[last:end]))


def _first_start(entries: list[Entry], group: list[Row], date: int) -> int:
    """Where the head of the first entry of a group begins: not more than three lines above its date."""
    start = max(0, date - 3)
    if entries:
        for index in range(date, start, -1):
            if (
                group[index].gap > 1.9
                and group[index - 1].gap
                and group[index].gap > 1.25 * group[index - 1].gap
                and not group[index - 1].bold
            ):
                return index
    return start


def _boundary(group: list[Row], before: int, after: int, lead: int) -> int:
    """Where, between two dates, the second entry begins."""
    between = list(range(before + 1, after + 1))
    if len(between) == 1:
        return after
    gaps = [group[index].gap for index in between]
    widest = max(gaps)
    if widest > 0 and widest > 1.2 * min(gap for gap in gaps if gap >= 0) and widest - min(gaps) > 0.25:
        return between[gaps.index(widest)]
    if lead:
        first = before + 1
        while first < after and is_place(group[first].text):
            first += 1
        if lead <= after - first <= 3:
            return first  # titles stand above dates: all below the last date and its place is of the next
    wanted = after - lead
    return wanted if before < wanted <= after else after


def _add_undated(entries: list[Entry], group: list[Row], *, dates_only: bool) -> None:
    """Lines without a date: an entry of their own where they look like one, else more of the last."""
    said = " ".join(row.text for row in group)
    looks = (
        title_worth(group[0].text) >= 0.9
        or company_worth(said) >= 0.7
        or (len(group) > 1 and title_worth(group[1].text) >= 0.9)
    )
    strong = group[0].bold or group[0].gap > 1.7 or not entries or group[0].gap == 0
    if (looks or not dates_only) and strong and len(group) <= 5:
        entries.append(Entry(head=group[:3], body=group[3:]))
    elif entries:
        entries[-1].body += group
    else:
        entries.append(Entry(head=group[:3], body=group[3:]))


def told(rows: list[Row]) -> tuple[str | None, list[str]]:
    """What a body says: its running text, and its points."""
    points: list[str] = []
    prose: list[str] = []
    pointed = any(row.bullet for row in rows)
    above: Row | None = None
    for row in rows:
        text = row.text.replace("\t", " ")
        if text.endswith(":") and text.count(" ") < 4 and not row.bullet:
            continue  # "Responsibilities:"
        if row.bullet:
            points.append(text)
        elif pointed and points and (above is not None and (row.x > above.x - 1 or text[:1].islower() or row.gap == 0)):
            points[-1] = joined([points[-1], text])
            continue
        else:
            prose.append(text)
        above = row
    if not pointed and len(prose) > 1:
        return None, _sentences(rows)[:_POINTS]
    said = joined(prose)
    return (said or None), points[:_POINTS]


def _sentences(rows: list[Row]) -> list[str]:
    """Lines without marks: one that begins small, or follows a word that cannot end anything, goes on."""
    points: list[str] = []
    begins: list[str] = []
    for row in rows:
        text = row.text.replace("\t", " ")
        if points and (text[:1].islower() or _HANGING.search(points[-1])):
            points[-1] = joined([points[-1], text])
        else:
            points.append(text)
            begins.append(row.text)
    said = joined(points)
    ended = sum(one.endswith((".", ":", "!", "?")) for one in points[:-1])
    if len(points) > 1 and not ended and said.count(". ") >= 2 and min(len(one) for one in begins[:-1]) > 70:
        return [said]  # running text whose lines happen to begin with capitals
    return points
