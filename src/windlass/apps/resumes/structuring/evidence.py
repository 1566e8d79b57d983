"""Whether a document says what a model told of it: each value must occur in the visible text, else it is dropped."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, cast

from windlass.apps.resumes.extraction.extracted import Extracted
from windlass.apps.resumes.vocabulary.dates import POINT, RANGE, find, iso
from windlass.apps.resumes.vocabulary.places import COUNTRIES

_DATES = frozenset(("startDate", "endDate", "date", "releaseDate"))
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\s*\n\s*(?=[^\W\d_])")


class Evidence:
    """The visible text of a document, to be asked whether it says something."""

    def __init__(self, extracted: Extracted) -> None:
        text = extracted.text
        self._said = f" {_plain(text)} {_plain(_HYPHENATED.sub('', text))} "
        self._links = " ".join(extracted.links).casefold()
        self._raw = text.casefold()
        self._dates = _dates_in(text)
        self._countries = {code for name, code in COUNTRIES.items() if f" {_plain(name)} " in self._said}

    def keep(self, told: Any) -> tuple[Any, int]:
        """What is told without what the document does not say, and how many values that were."""
        return self._keep(told, "")

    def _keep(self, told: Any, name: str) -> tuple[Any, int]:
        if isinstance(told, dict):
            mapping = cast("dict[str, Any]", told)
            kept: dict[str, Any] = {}
            dropped = 0
            for key, value in mapping.items():
                one, lost = self._keep(value, key)
                dropped += lost
                if one is not None:
                    kept[key] = one
            return kept or None, dropped
        if isinstance(told, list):
            values = cast("list[Any]", told)  # type: ignore[redundant-cast]  # pyright knows less
            several = [self._keep(value, name) for value in values]
            return [one for one, _ in several if one is not None] or None, sum(lost for _, lost in several)
        if told is None:
            return None, 0
        return (told, 0) if isinstance(told, str) and self._says(told, name) else (None, 1)

    def _says(self, value: str, name: str) -> bool:
        if name in _DATES:
            return value in self._dates or any(one.startswith(f"{value}-") for one in self._dates)
        if name == "countryCode":
            return value in self._countries or f" {value.casefold()} " in self._said
        if name in {"url", "email"}:
            bare = re.sub(r"^(?:https?://)?(?:www\.)?", "", value.casefold()).rstrip("/")
            return len(bare) > 3 and (bare in self._raw or bare in self._links)
        said = _plain(value)
        return bool(said) and f" {said} " in self._said


def _plain(text: str) -> str:
    """Words alone, one space between them."""
    return " ".join(re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold()))


def _dates_in(text: str) -> set[str]:
    """All dates of a text in ISO 8601."""
    found: set[str] = set()
    for line in text.split("\n"):
        for pattern in (RANGE, POINT):
            for one in pattern.finditer(line):
                span = find(one.group())
                found.update(date for date in (span.first, span.last) if date) if span is not None else None
        found.update(date for date in (iso(one) for one in re.findall(r"\b(?:19|20)\d\d\b", line)) if date)
    return found
