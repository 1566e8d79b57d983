"""What a job description asks for: its words, and which of them are a must."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from windlass.apps.resumes.scoring.words import Said, idle, language_of, same_as, stem, tokens
from windlass.apps.resumes.vocabulary.skills import GROUPS

MOST = 40
"""keywords of one description"""
_LONGEST = 50_000
_NICE = re.compile(
    r"nice[- ]to[- ]have|preferred|preferably|a plus\b|is a bonus|bonus points|desirable|advantage|optional|ideally|good to have|von vorteil|wünschenswert|idealerweise|optional|"
    r"gerne auch|pluspunkt|idéalement|souhait|serait un plus|est un plus|apprécié|un atout|deseable|valorable|se valora|plus si|preferible|gradit|pref",
    re.IGNORECASE,
)
_MUST = re.compile(
    r"must[- ]have|required|requirements?|minimum|essential|mandatory|you have|you bring|what you need|qualifications|you must|voraussetzung|anforderung|erforderlich|zwingend|unbedingt|"
    r"das bringst du mit|das bringen sie mit|ihr profil|dein profil|muss|exigé|requis|indispensable|impératif|profil recherché|votre profil|imprescindible|requisitos|obligatorio|necesario|richiest",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"^\W*(?:benefits|we offer|what we offer|our offer|perks|about us|about the company|who we are|equal opportunity|how to apply|compensation|wir bieten|unser angebot|was wir bieten|das bieten wir|über uns|benefits|"
    r"nous offrons|avantages|à propos|qui sommes|ofrecemos|beneficios|sobre nosotros|quiénes somos|cosa offriamo)\b.{0,40}$",
    re.IGNORECASE,
)
_TASKS = re.compile(
    r"^\W*(?:responsibilities|your role|what you.ll do|tasks|duties|the role|aufgaben|ihre aufgaben|deine aufgaben|das erwartet|missions?|vos missions|funciones|tareas|responsabilidades)\b.{0,40}$",
    re.IGNORECASE,
)
_NAMES = re.compile(
    r"(?<![\w.])(?:[A-Z]{2,6}(?:/[A-Z]{2,6})?|[A-Za-z]+[A-Z][A-Za-z]*|[A-Z][\w]*[+#]+|[A-Za-z]+\.(?:js|io|net)|[A-Z]\d\b|[A-Z][a-z]+\d+)(?![\w])"
)
_NO_NAMES = frozenset(
    [
        "US",
        "USA",
        "UK",
        "EU",
        "DE",
        "FR",
        "ES",
        "CEO",
        "CTO",
        "HR",
        "OR",
        "AND",
        "THE",
        "WE",
        "YOU",
        "M/W/D",
        "M/F/D",
        "W/M/D",
        "F/H",
        "H/F",
        "GmbH",
        "AG",
        "SE",
        "KG",
        "LLC",
        "II",
        "III",
        "IV",
        "TBD",
        "FAQ",
        "OK",
        "NO",
        "YES",
        "PDF",
        "CV",
    ]
)


@dataclass(frozen=True, slots=True)
class Wanted:
    word: str
    needed: bool


def wanted_in(description: str) -> list[Wanted]:
    """The keywords in the order in which they matter."""
    text = description[:_LONGEST]
    language = language_of(text)
    lines = _lines(text)
    any_marked = any(kind == "must" for kind, _ in lines)
    found: dict[str, list[bool]] = {}
    for kind, line in lines:
        if kind == "aside":
            continue
        needed = kind == "must" or (not any_marked and kind != "nice")
        for word in _words_in(line, language):
            key = next((one for one in found if word.lower() in same_as(one)), word)
            found.setdefault(key, []).append(needed)
    _add_frequent(found, lines, language, any_marked=any_marked)
    ranked = sorted(found.items(), key=lambda one: (-any(one[1]), -len(one[1])))
    return [Wanted(word, any(needed)) for word, needed in ranked[:MOST]]


def _lines(text: str) -> list[tuple[str, str]]:
    """Each line with what it is for: must, nice, task, aside, other."""
    kind = "other"
    lines: list[tuple[str, str]] = []
    for raw in re.split(r"[\n\r]+|(?<=[.!;])\s+(?=[A-ZÄÖÜÉ])", text):
        line = raw.strip()
        if not line:
            continue
        short = len(line) < 60 and (line.endswith(":") or line.count(" ") < 5)
        if _ASIDE.match(line):
            kind = "aside"
        elif short and _NICE.search(line) and not re.search(r"[a-z]{3,}.*:.+\w", line):
            kind = "nice"
        elif short and _MUST.search(line):
            kind = "must"
        elif _TASKS.match(line):
            kind = "task"
        own = "nice" if _NICE.search(line) else "must" if _MUST.search(line) else kind
        lines.append(("aside" if kind == "aside" else own, line))
    return lines


def _words_in(line: str, language: str) -> list[str]:
    """Skills that have names, and other names."""
    said = Said.of([line], (language,))
    hits: list[str] = []
    for group in GROUPS:
        hit = next(
            (name for name in sorted(group, key=len, reverse=True) if said.has(name) and not _only_a_word(name, line)),
            None,
        )
        if hit is not None:
            hits.append(hit)
    found: list[str] = []
    taken: set[str] = set()
    for hit in sorted(hits, key=lambda one: -len(tokens(one))):  # "API" is a part of "REST API"
        roots = {stem(word, "english") for word in tokens(hit)}
        if not roots <= taken:
            found.append(_as_written(hit, line))
            taken |= roots
    for name in _NAMES.findall(line):
        known = any(name.lower() in same_as(one) for one in found) or stem(name.lower(), "english") in taken
        if name not in _NO_NAMES and not known and not idle(name) and not line.isupper():
            found.append(name)
            taken.add(stem(name.lower(), "english"))
    return found


def _as_written(name: str, line: str) -> str:
    written = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line, re.IGNORECASE)
    return written.group() if written is not None else name


_COMMON = {"go": "Go", "rest": "REST", "express": "Express", "spring": "Spring", "ai": "AI", "ki": "KI", "bi": "BI", "ts": "TS", "ui": "UI", "ux": "UX", "hr": "HR", "node": "Node", "swift": "Swift", "rust": "Rust", "lean": "Lean", "spark": "Spark", "react": "React", "containers": "containers", "promotion": "Promotion", "licence": "Licence", "master": "Master", "grado": "Grado", "ml": "ML", "ci": "CI", "js": "JS"}  # fmt: skip


def _only_a_word(name: str, line: str) -> bool:
    """Whether a name that is a word, too, is meant as one: "go to market"."""
    written = _COMMON.get(name)
    return written is not None and re.search(rf"(?<!\w){re.escape(written)}(?!\w)", line) is None


def _add_frequent(
    found: dict[str, list[bool]], lines: list[tuple[str, str]], language: str, *, any_marked: bool
) -> None:
    """Words that are said more than once and are no one's name for a skill yet."""
    forms: dict[str, str] = {}
    counts: Counter[str] = Counter()
    needed: dict[str, bool] = {}
    known = {stem(part, language) for word in found for part in tokens(word)}
    for kind, line in lines:
        if kind == "aside":
            continue
        for word in dict.fromkeys(tokens(line)):
            root = stem(word, language)
            if len(word) < 4 or idle(word) or not word.isalpha() or root in known or idle(root):
                continue
            forms.setdefault(root, word)
            counts[root] += 1
            needed[root] = needed.get(root, False) or (kind == "must")
    for root, count in counts.most_common(8):
        if count >= 2:
            found.setdefault(forms[root], []).append(needed[root] and any_marked)
