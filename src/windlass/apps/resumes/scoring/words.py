"""Words and phrases compared as people mean them: stems, and names that mean the same."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import snowballstemmer  # type: ignore[import-untyped]  # it has no types

from windlass.apps.resumes.vocabulary.headings import plain
from windlass.apps.resumes.vocabulary.skills import GROUPS, IDLE

_TOKEN = re.compile(r"\.net\b|[^\W_]+(?:[.'’&/+-](?=[^\W_])[^\W_]+)*[+#]{0,2}", re.IGNORECASE)
_SHORT = 4
"""letters up to which a name is compared as it is written"""
_LANGUAGES = {
    "english": "the and of to with for in is our we you",
    "german": "und der die das mit für wir sie von zu im ist bei",
    "french": "et le la les des de pour vous nous avec une est du",
    "spanish": "y el la los las de para con una en que del por",
    "italian": "e il la di per con una che del gli sono",
    "portuguese": "e o a os as de para com uma que do da em",
    "dutch": "en de het een van voor met wij je is op",
}
_MARKS = {one: set(said.split()) for one, said in _LANGUAGES.items()}


def tokens(text: str) -> list[str]:
    """Words in small letters; those of marks and letters ("C++", "Node.js") are one."""
    return [found.group().lower() for found in _TOKEN.finditer(text.replace("’", "'"))]


def language_of(text: str) -> str:
    """The language a text is most likely in; English where it says too little."""
    said = tokens(text[:20_000])
    counts = {one: sum(word in marks for word in said) for one, marks in _MARKS.items()}
    best = max(counts, key=lambda one: counts[one])
    return best if counts[best] > counts["english"] else "english"


_NOT_STEMMED = frozenset(
    ("excellent", "excellence", "exzellent", "excelente", "swiftly", "rusty", "leaning", "general", "generally")
)
"""words whose stem is the name of something else, such as a program"""


@lru_cache(maxsize=16)
def _stemmer(language: str) -> Any:
    made: Any = snowballstemmer
    return made.stemmer(language)


@lru_cache(maxsize=20_000)
def stem(word: str, language: str) -> str:
    """A word's stem, without accents; words with marks or numbers are names, and have none."""
    if word in _NOT_STEMMED:
        return word
    if not word.isalpha():
        return plain(word) if word.isascii() and "+" not in word and "#" not in word and "." not in word else word
    return plain(_stemmer(language).stemWord(word)) or word


def stems(text: str, language: str) -> tuple[str, ...]:
    return tuple(stem(word, language) for word in tokens(text))


@dataclass(slots=True)
class Said:
    """A text in which phrases are looked for."""

    languages: tuple[str, ...]
    _where: dict[str, dict[str, list[int]]] = field(default_factory=dict[str, dict[str, list[int]]])
    _words: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _raw: set[str] = field(default_factory=set[str])

    @staticmethod
    def of(texts: list[str], languages: tuple[str, ...]) -> Said:
        """Of several texts; no phrase begins in one and ends in another."""
        said = Said(tuple(dict.fromkeys(("english", *languages))))
        for text in texts:
            for word in tokens(text):
                said._raw.update((word, *re.split(r"[/-]", word)))
        for language in said.languages:
            line: list[str] = []
            for text in texts:
                line += [stem(word, language) for word in tokens(text)]
                line += [
                    stem(part, language)
                    for word in tokens(text)
                    if "/" in word or "-" in word
                    for part in re.split(r"[/-]", word)
                ]
                line.append("\n")
            where: dict[str, list[int]] = {}
            for at, word in enumerate(line):
                where.setdefault(word, []).append(at)
            said._words[language], said._where[language] = line, where
        return said

    def has(self, phrase: str) -> bool:
        """Whether a phrase is said, in any form of its words."""
        words = tokens(phrase)
        if len(words) == 1 and len(words[0]) <= _SHORT:  # "Go" is not "going"
            return words[0] in self._raw
        for language in self.languages:
            wanted = list(stems(phrase, language))
            line = self._words[language]
            for at in self._where[language].get(wanted[0], ()) if wanted else ():
                if line[at : at + len(wanted)] == wanted:
                    return True
        return False


_GROUP_OF: dict[str, tuple[str, ...]] = {}
for _group in GROUPS:
    for _name in _group:
        _GROUP_OF.setdefault(_name, _group)


def same_as(word: str) -> tuple[str, ...]:
    """All names of what a word means, itself first."""
    lowered = word.lower()
    return (lowered, *(one for one in _GROUP_OF.get(lowered, ()) if one != lowered))


def idle(word: str) -> bool:
    """Whether a word says nothing by itself."""
    return word.lower() in IDLE or len(word) < 2
