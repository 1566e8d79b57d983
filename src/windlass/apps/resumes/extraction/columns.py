"""Columns on a page: text that stands side by side and is read one after the other."""

from __future__ import annotations

import re
from dataclasses import dataclass

from windlass.apps.resumes.vocabulary.dates import is_date
from windlass.apps.resumes.vocabulary.headings import section_of

_GUTTER = 5.0
"""points between two columns, at least"""
_PLACE = re.compile(r"^[^\W\d_][\w .'’-]{1,24},\s?[^\W\d_][\w .'’-]{1,20}$")
_DEEPEST = 6


@dataclass(slots=True)
class Segment:
    """Words on one line without a wide gap."""

    text: str
    left: float
    right: float
    base: float
    size: float
    bold: bool


def reading_order(segments: list[Segment], width: float) -> tuple[list[list[Segment]], int]:
    """The blocks in the order in which they are read, and how many stand side by side at most."""
    return _cut(segments, width, 0)


def _cut(segments: list[Segment], width: float, deep: int) -> tuple[list[list[Segment]], int]:
    found = _columns(segments, width) if deep < _DEEPEST and len(segments) > 5 else None
    if found is None:
        return ([segments] if segments else []), 1
    above, left, right, below = found
    blocks: list[list[Segment]] = []
    most = 1
    sides = 0
    for part, beside in ((above, False), (left, True), (right, True), (below, False)):
        if not part:
            continue
        inner, across = _cut(part, width, deep + 1)
        blocks += inner
        if beside:
            sides += across
        else:
            most = max(most, across)
    return blocks, max(most, sides)


_Parts = tuple[list[Segment], list[Segment], list[Segment], list[Segment]]


def _columns(segments: list[Segment], width: float) -> _Parts | None:
    """The best place at which a part of the page falls into a left and a right column."""
    rows = _rows(segments)
    start = min(one.left for one in segments)
    end = max(one.right for one in segments)
    if end - start < 0.25 * width:
        return None
    best: tuple[int, _Parts] | None = None
    for x in _edges(segments, start, end):
        for first, last in _bands(rows, x):
            band = rows[first:last]
            left = [one for row in band for one in row if one.left < x - 2]
            right = [one for row in band for one in row if one.left >= x - 2]
            if len(left) < 3 or len(right) < 3 or _one_table(left, right):
                continue
            worth = min(sum(len(one.text) for one in left), sum(len(one.text) for one in right)) + 10 * len(right)
            if best is None or worth > best[0]:
                above = [one for row in rows[:first] for one in row]
                below = [one for row in rows[last:] for one in row]
                best = worth, (above, left, right, below)
    return None if best is None else best[1]


def _rows(segments: list[Segment]) -> list[list[Segment]]:
    rows: list[list[Segment]] = []
    for one in sorted(segments, key=lambda segment: (segment.base, segment.left)):
        if rows and abs(rows[-1][0].base - one.base) < 2.5:
            rows[-1].append(one)
        else:
            rows.append([one])
    return rows


def _edges(segments: list[Segment], start: float, end: float) -> list[float]:
    """Where several lines begin, away from the left margin; the most frequent first."""
    lefts = sorted(one.left for one in segments if one.left > start + 0.12 * (end - start))
    groups: list[list[float]] = []
    for left in lefts:
        if groups and left - groups[-1][0] <= 3.5:
            groups[-1].append(left)
        else:
            groups.append([left])
    frequent = sorted((group for group in groups if len(group) >= 4), key=len, reverse=True)
    return [group[0] for group in frequent[:8]]


def _bands(rows: list[list[Segment]], x: float) -> list[tuple[int, int]]:
    """Rows that follow each other and none of which crosses a place."""
    bands: list[tuple[int, int]] = []
    first: int | None = None
    for at, row in enumerate(rows):
        crossed = any(one.left < x - 2 and one.right > x - _GUTTER for one in row)
        if crossed:
            if first is not None:
                bands.append((first, at))
            first = None
        elif first is None:
            first = at
    if first is not None:
        bands.append((first, len(rows)))
    return [band for band in (_trimmed(rows, x, *band) for band in bands) if band[1] - band[0] >= 3]


def _trimmed(rows: list[list[Segment]], x: float, first: int, last: int) -> tuple[int, int]:
    """Without larger rows at the top that stand on one side only, such as a name: they are for all columns."""
    usual = sorted(one.size for row in rows[first:last] for one in row)[sum(len(row) for row in rows[first:last]) // 2]
    while first < last:
        row = rows[first]
        both = any(one.left >= x - 2 for one in row) and any(one.left < x - 2 for one in row)
        if both or not (row[0].size > 1.45 * usual and row[0].left < x - 2):
            break
        first += 1
    return first, last


def _one_table(left: list[Segment], right: list[Segment]) -> bool:
    """Whether what stands side by side is read line by line: dates beside what they date, labels beside values."""
    few, many = (
        (left, right) if sum(len(one.text) for one in left) <= sum(len(one.text) for one in right) else (right, left)
    )
    bases = [one.base for one in many]
    titles = [one for one in few if section_of(one.text) is not None]
    others = [one for one in few if section_of(one.text) is None]
    beside = sum(1 for one in others if any(abs(one.base - base) < 0.3 * one.size for base in bases))
    dates = sum(1 for one in others if is_date(one.text))
    places = sum(1 for one in others if _PLACE.match(one.text))
    labels = sum(1 for one in others if one.text.endswith(":"))
    total = len(others)
    if beside * 10 < total * 7:
        return False
    if dates >= 2 and (dates + places) * 10 >= total * 5:
        return True
    if titles:
        return (dates + places) * 10 >= total * 6
    if labels * 10 >= total * 5:
        return True
    return beside * 10 >= total * 8 and sum(len(one.text) for one in few) <= 25 * total
