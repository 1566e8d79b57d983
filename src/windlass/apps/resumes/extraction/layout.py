"""From words with coordinates to lines in reading order: which words make a line, which lines stand in one column."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from windlass.apps.resumes.extraction.columns import Segment, reading_order
from windlass.apps.resumes.extraction.extracted import Line
from windlass.apps.resumes.vocabulary.dates import is_date

BULLETS = "•◦▪▫■□●○‣⁃∙·➢➤►▶▸✓✔✗❖◆◇★☆*§¢Ø➔→»o–-—"
_MARK = frozenset(BULLETS)
_LETTERS = re.compile(r"^(?:\S ){3,}\S$|^(?:\S ){2,}\S(?:  +(?:\S ){1,}\S)+$")


@dataclass(slots=True)
class Placed:
    """A word with what laying out needs of it."""

    text: str
    left: float
    right: float
    base: float
    size: float
    bold: bool
    apart: bool = True


def lay_out(words: list[Placed], width: float) -> tuple[list[Line], int]:
    """The lines of a page in reading order, and how many columns stand side by side at most."""
    segments = [piece for row in _rows(words) for piece in _segments(row)]
    blocks, columns = reading_order(segments, width)
    lines: list[Line] = []
    for number, block in enumerate(blocks):
        lines += [_line(row, number) for row in _grouped(block)]
    return [line for line in lines if line.text], columns


def _rows(words: list[Placed]) -> list[list[Placed]]:
    """Words by base line; a smaller one beside a larger one belongs to it."""
    rows: list[tuple[float, float, list[Placed]]] = []
    for word in sorted(words, key=lambda one: (one.base, one.left)):
        for at in range(len(rows) - 1, max(-1, len(rows) - 4), -1):
            base, size, row = rows[at]
            if abs(word.base - base) <= 0.25 * max(min(size, word.size), 6.0):
                row.append(word)
                break
        else:
            rows.append((word.base, word.size, [word]))
    return [sorted(row, key=lambda one: one.left) for _, _, row in rows]


def _segments(row: list[Placed]) -> list[Segment]:
    """Words that belong together; a wide gap parts them."""
    groups: list[list[Placed]] = []
    gaps = sorted(after.left - before.right for before, after in pairwise(row))
    usual = gaps[len(gaps) // 2] if len(gaps) > 2 else 0.0
    for word in row:
        wide = max(word.size, 5.0)
        if 0 < usual < 0.4 * wide:
            wide = max(0.6 * wide, 1.9 * usual)
        if (groups and word.left - groups[-1][-1].right < wide) or (
            groups and len(groups[-1]) == 1 and groups[-1][0].text in _MARK and word.left - groups[-1][0].right < 30
        ):
            groups[-1].append(word)
        else:
            groups.append([word])
    return [_segment(group) for group in groups]


def _segment(group: list[Placed]) -> Segment:
    letters = sum(len(word.text) for word in group)
    return Segment(
        text=_spaced_out(group) or " ".join(word.text for word in group),
        left=group[0].left,
        right=max(word.right for word in group),
        base=group[0].base,
        size=max(group, key=lambda word: len(word.text)).size,
        bold=sum(len(word.text) for word in group if word.bold) * 10 >= letters * 6,
    )


def _spaced_out(group: list[Placed]) -> str | None:
    """Words whose letters are set apart, put together again: E X P E R I E N C E."""
    if len(group) < 4 or sum(len(word.text) == 1 for word in group) * 10 < len(group) * 8:
        return None
    gaps = [after.left - before.right for before, after in pairwise(group)]
    usual = median(gaps)
    said = group[0].text
    for gap, word in zip(gaps, group[1:], strict=True):
        said += (" " if gap > 1.7 * usual + 0.8 else "") + word.text
    return said if len(said) > said.count(" ") * 2 + 3 or " " not in said else None


def _grouped(segments: list[Segment]) -> list[list[Segment]]:
    """The segments of one block as rows."""
    rows: list[list[Segment]] = []
    for one in sorted(segments, key=lambda segment: (segment.base, segment.left)):
        if rows and abs(rows[-1][0].base - one.base) <= 0.3 * max(min(rows[-1][0].size, one.size), 6.0):
            rows[-1].append(one)
        else:
            rows.append([one])
    return [sorted(row, key=lambda segment: segment.left) for row in rows]


def _line(row: list[Segment], number: int) -> Line:
    text = row[0].text
    for before, after in pairwise(row):
        lone = before is row[0] and before.text in _MARK
        wide = after.left - before.right > 1.5 * max(min(before.size, after.size), 5.0)
        wide = wide or (is_date(before.text) and before is row[0]) or (is_date(after.text) and after is row[-1])
        text += ("\t" if wide and not lone else " ") + after.text
    return Line(
        text=tidy(text),
        x=round(row[0].left, 1),
        y=round(row[0].base, 1),
        size=round(row[0].size, 1),
        bold=row[0].bold,
        block=number,
    )


def tidy(text: str) -> str:
    """One space between words, tabs kept, letters that are set apart put together."""
    cells = [
        " ".join(cell.split()) if not _LETTERS.match(cell.strip()) else _together(cell) for cell in text.split("\t")
    ]
    return "\t".join(cell for cell in cells if cell)


def _together(cell: str) -> str:
    letters = cell.strip()
    if not all(one.isupper() or not one.isalpha() for one in letters) and letters.count(" ") < 5:
        return " ".join(letters.split())
    if sum(one.isalpha() for one in letters) * 3 < len(letters):
        return " ".join(letters.split())
    return " ".join(word.replace(" ", "") for word in re.split(r"\s{2,}", letters))
