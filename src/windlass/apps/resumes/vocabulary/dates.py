"""Dates as resumes write them: months in seven languages, ranges, seasons, "today"; as ISO 8601."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MONTHS = """
1 january jan january januar janner jänner jän janvier janv enero ene gennaio gen janeiro januari
2 february feb februar feber février fevrier févr fevr fév febrero febbraio fevereiro fev februari
3 march mar märz maerz mär mrz mars marzo março marco maart mrt
4 april apr avril avr abril abr aprile
5 may mai mayo maggio mag maio mei
6 june jun juni juin junio giugno giu junho
7 july jul juli juillet juil julio luglio lug julho
8 august aug août aout agosto ago augustus
9 september sep sept septembre septiembre set settembre setembro
10 october oct oktober okt octobre octubre ottobre ott outubro out
11 november nov novembre noviembre novembro
12 december dec dezember dez décembre decembre déc diciembre dic dicembre dezembro
"""
MONTHS: dict[str, int] = {
    name: int(line.split()[0]) for line in _MONTHS.strip().splitlines() for name in line.split()[1:]
}
_SEASONS = {
    "spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12, "frühjahr": 3, "frühling": 3, "sommer": 6,
    "herbst": 9, "printemps": 3, "été": 6, "automne": 9, "hiver": 12, "primavera": 3, "verano": 6, "otoño": 9,
    "invierno": 12,
}  # fmt: skip
NOW = (
    "present|current|currently|now|today|ongoing|to date|till date|till now|date|heute|jetzt|aktuell|laufend|dato|gegenwart|"
    "présent|present|aujourd['’]hui|actuel|actuellement|ce jour|en cours|à ce jour|en poste|"
    "actualidad|presente|actual|actualmente|hoy|la fecha|la actualidad|en curso|oggi|attuale|in corso|presente|ad oggi|"
    "atual|atualmente|o momento|hoje|heden|nu|andauernd|noch|maintenant"
)
_M = "|".join(sorted((re.escape(name) for name in MONTHS), key=len, reverse=True))
_S = "|".join(_SEASONS)
_YEAR = r"(?:19[5-9]\d|20[0-4]\d)"
_SHORT = rf"(?:{_YEAR}|['’‘`]\s?\d\d)"
_POINT = (
    rf"(?:(?:(?:0?[1-9]|[12]\d|3[01])(?:\.|st|nd|rd|th|er|º)?\s+(?:de\s+)?)?(?:{_M})\b\.?,?(?:\s+(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?,)?\s*(?:de\s+|del\s+)?[-/]?\s*{_SHORT}"
    rf"|(?:{_S})\s+(?:of\s+)?{_SHORT}"
    rf"|(?:0?[1-9]|[12]\d|3[01])[./](?:0?[1-9]|1[0-2])[./]{_YEAR}"
    rf"|(?:0?[1-9]|1[0-2])/(?:0?[1-9]|[12]\d|3[01])/{_YEAR}"
    rf"|{_YEAR}[-/.](?:0?[1-9]|1[0-2])(?:[-/.](?:[0-2]\d|3[01]))?(?!\d)"
    rf"|(?:0?[1-9]|1[0-2])\s?[./-]\s?{_YEAR}"
    rf"|(?:0[1-9]|1[0-2])/(?:\d\d)(?![\d/])"
    rf"|{_YEAR})"
)
_NOWS = rf"(?:{NOW})(?!\w)"
_TO = r"\s*(?:[-–—‐‑‒―−~→]+|\b(?:to|until|till|through|thru|bis|bis zum|à|a|au|jusqu['’]à|hasta|al|fino a|até|tot|and)\b)\s*(?:\b(?:the|la|l['’]|le|o|zum|oggi)\b\s*)?"
_BEFORE = r"(?:\b(?:from|von|vom|seit|since|depuis|desde|de|du|dal|da|del|van|sinds|ab)\s+)?"
_START_ONLY = rf"(?:{_M})\b\.?(?=\s*(?:[-–—‐‑‒―−~]|\b(?:to|bis|à|a|until)\b)\s*(?:{_M})\b\.?,?\s*{_SHORT})"

RANGE = re.compile(
    rf"(?<![\w/@.])(?P<whole>{_BEFORE}(?P<start>{_POINT}|{_START_ONLY})(?P<to>{_TO})(?P<end>{_POINT}|{_NOWS}|\d\d(?!\d)|(?=\s*\)?$)))(?![\w@])",
    re.IGNORECASE,
)
SINCE = re.compile(
    rf"(?<![\w/@.])(?P<whole>(?:seit|since|depuis|desde|dal|sinds|ab|from)\s+(?:dem\s+|el\s+|le\s+)?(?P<start>{_POINT}))(?![\w@])",
    re.IGNORECASE,
)
POINT = re.compile(
    rf"(?<![\w/@.$€£#,])(?P<whole>(?:(?:expected|anticipated|graduated|graduation|voraussichtlich|prévu|class of|est\.?|obtenu|issued|erworben|in|en|bis|until|hasta|exp\.?|expires|valid until|gültig bis|until)\s*:?\s+)?(?P<start>{_POINT}))(?![\w@%]|[.,]\d)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Span:
    """Dates that were found in a line."""

    begin: int
    end: int
    """where in the text"""
    first: str | None
    last: str | None
    """ISO 8601; both are the same for one date"""
    lasting: bool = False
    ranged: bool = True


def find(text: str, *, points: bool = True) -> Span | None:
    """The first range, or else the first date, in a text."""
    if not any(one.isdigit() for one in text):
        return None
    for found in RANGE.finditer(text):
        span = _span(found)
        if span is not None:
            return span
    since = SINCE.search(text)
    if since is not None:
        first = iso(since["start"])
        if first is not None:
            return Span(since.start("whole"), since.end("whole"), first, None, lasting=True)
    if points:
        for found in POINT.finditer(text):
            value = iso(found["start"])
            if value is not None:
                return Span(found.start("whole"), found.end("whole"), value, value, ranged=False)
    return None


def _span(found: re.Match[str]) -> Span | None:
    ended = found["end"].strip()
    last = None if not ended or re.fullmatch(_NOWS, ended, re.IGNORECASE) else iso(ended)
    start = found["start"]
    if re.fullmatch(r"\d\d", ended):
        year = re.fullmatch(rf"{_YEAR}", start)
        if year is None:
            return None
        last = start[:2] + ended
        if last < start:
            return None
    elif not ended and not re.search(r"[-–—‐‑‒―−~→]\s*$", found["to"]):
        return None
    first = iso(start)
    if first is None and last is not None:  # "Jan - May 2020"
        first = iso(f"{start} {last[:4]}")
    if first is None or (last is not None and last[:4] < first[:4]):
        return None
    return Span(found.start("whole"), found.end("whole"), first, last, lasting=last is None)


def iso(text: str) -> str | None:
    """One date in ISO 8601, as exact as it is written."""
    text = text.strip().lower()
    year = re.search(_YEAR, text)
    if year is not None:
        years = year.group()
    else:
        short = re.search(r"['’‘`]\s?(\d\d)", text) or re.fullmatch(r"(?:0[1-9]|1[0-2])/(\d\d)", text)
        if short is None:
            return None
        years = f"20{short[1]}" if int(short[1]) < 50 else f"19{short[1]}"
    word = re.search(rf"(?<![^\W\d])({_M}|{_S})(?![^\W\d])", text)
    if word is not None:
        month = MONTHS.get(word[1]) or _SEASONS[word[1]]
        if word[1] in _SEASONS and word[1] not in MONTHS:
            return years
        return f"{years}-{month:02}"
    leading = re.match(rf"{_YEAR}[-/.](0?[1-9]|1[0-2])(?!\d)", text)
    if leading is not None:
        return f"{years}-{int(leading[1]):02}"
    full = re.match(rf"(\d\d?)[./](\d\d?)[./]{_YEAR}", text)
    if full is not None:
        first, second = int(full[1]), int(full[2])
        month = second if second <= 12 else first
        return f"{years}-{month:02}" if 1 <= month <= 12 else years
    short = re.match(rf"(0?[1-9]|1[0-2])\s?[./-]\s?(?:{_YEAR}|\d\d)", text)
    if short is not None:
        return f"{years}-{int(short[1]):02}"
    return years


_ALONE = re.compile(r"[\s\d./–—\-|,()•·]*")


def is_date(text: str) -> bool:
    """Whether a text is a date or a range and nothing more."""
    span = find(text)
    if span is None:
        return False
    rest = text[: span.begin] + text[span.end :]
    return (
        _ALONE.fullmatch(
            re.sub(
                r"\(?\b\d+\s*(?:yrs?|years?|mos?|months?|jahre?|monate?|ans?|mois|años?|meses)\b\.?\)?",
                "",
                rest,
                flags=re.IGNORECASE,
            )
        )
        is not None
    )
