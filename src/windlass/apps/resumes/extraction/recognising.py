"""Pages that are pictures of text: read by Tesseract, where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from typing import Any

from windlass.apps.resumes.extraction.layout import Placed

_WANTED = ("eng", "deu", "fra", "spa")
_SURE = 30.0
"""percent: less certain words are left out"""
_WIDEST = 2_600
"""pixels of a page's picture"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """What Tesseract read."""

    words: list[Placed]
    languages: str


def recognise(page: Any, seconds: float) -> Recognised | str:
    """The words in a picture of a page; or why there are none."""
    program, languages = installed()
    if program is None:
        return "Tesseract is not installed here"
    if not languages:
        return "Tesseract has no languages here"
    width, height = page.get_size()
    scale = min(3.0, _WIDEST / max(width, height, 1.0))
    bitmap = page.render(scale=scale, grayscale=True)
    picture = b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + _rows(bitmap)
    command = [program, "stdin", "stdout", "-l", languages, "--dpi", str(round(72 * scale)), "--psm", "1", "tsv"]
    if not _has_orientation(program):
        command[command.index("1")] = "3"
    try:
        done = subprocess.run(  # noqa: S603  # our own words; the picture is its input
            command,
            input=picture,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
            env={"OMP_THREAD_LIMIT": "1", "PATH": os.defpath, "LANG": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired:
        return f"Tesseract took more than {seconds:g} seconds"
    if done.returncode != 0:
        return "Tesseract failed on it"
    return Recognised(words=_words(done.stdout.decode("utf-8", "replace"), scale), languages=languages)


@cache
def installed() -> tuple[str | None, str]:
    """The program, and which of the languages that are wanted it knows."""
    program = shutil.which("tesseract", path=os.defpath + ":/usr/local/bin:/opt/homebrew/bin")
    if program is None:
        return None, ""
    known = _known(program)
    return program, "+".join(one for one in _WANTED if one in known) or (known[0] if known else "")


def _has_orientation(program: str) -> bool:
    return "osd" in _known(program)


@cache
def _known(program: str) -> list[str]:
    told = subprocess.run(  # noqa: S603  # our own words
        [program, "--list-langs"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=10, check=False
    )
    return told.stdout.decode("utf-8", "replace").split("\n")[1:]


def _rows(bitmap: Any) -> bytes:
    held = bytes(bitmap.buffer)
    if bitmap.stride == bitmap.width:
        return held
    return b"".join(held[row * bitmap.stride : row * bitmap.stride + bitmap.width] for row in range(bitmap.height))


def _words(table: str, scale: float) -> list[Placed]:
    """The rows of Tesseract's table that are words; those of one line share its base."""
    words: list[Placed] = []
    lines: dict[tuple[str, ...], list[tuple[float, float, float, float, str]]] = {}
    for row in table.split("\n")[1:]:
        cells = row.split("\t")
        if len(cells) < 12 or cells[0] != "5" or not cells[11].strip() or float(cells[10]) < _SURE:
            continue
        left, top, width, height = (float(cell) / scale for cell in cells[6:10])
        lines.setdefault(tuple(cells[1:5]), []).append((left, top, width, height, cells[11].strip()))
    for line in lines.values():
        tall = max(height for _, _, _, height, _ in line)
        base = sorted(top + height for _, top, _, height, _ in line)[len(line) // 2]
        words += [Placed(text, left, left + width, base, tall * 1.05, False) for left, _, width, _, text in line]
    return words
