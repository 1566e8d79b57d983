"""The line of a search as the page shows it: its terms with what each means, and lines that differ by one of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from windlass.client.grammar import OTHER_NAMES, How, understood
from windlass.core.errors import SettingsError
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.grammar import Query, Term


@dataclass(frozen=True, slots=True)
class Token:
    """One term as it was typed."""

    text: str
    meaning: str
    problem: str | None
    walks: bool
    """whether jobs are looked at one by one because of it"""
    rest: str
    """the line without it"""


class Line:
    """A line of a search, understood as far as it can be."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        self.query: Query | None = None
        self.trouble: str | None = None
        """what is wrong with all of it"""
        try:
            self.query = understood(self.text)
        except SettingsError as error:
            self.trouble = str(error)

    @cached_property
    def tokens(self) -> list[Token]:
        """Its terms, in order."""
        return [
            Token(
                text=self.text[term.start : term.end],
                meaning=term.meaning,
                problem=term.problem,
                walks=term.how is How.WALK and term.problem is None,
                rest=self.without([term]),
            )
            for term in self._terms
        ]

    @property
    def good(self) -> bool:
        """Whether it can be searched by."""
        return self.query is not None and not self.query.problems

    @property
    def walks(self) -> bool:
        """Whether some of it has no index."""
        return any(token.walks for token in self.tokens)

    @property
    def oldest_first(self) -> bool:
        """Whether the oldest come first."""
        return self.query is not None and bool(self.query.oldest_first)

    @property
    def statuses(self) -> frozenset[Status]:
        """Those it asks for; none where it leaves them open."""
        return frozenset(() if self.query is None else self.query.search.get("status", ()))

    @property
    def words(self) -> dict[str, str]:
        """For `find` and `count`."""
        return {"where": self.text} if self.text else {}

    def without(self, terms: Sequence[Term]) -> str:
        """The line without these."""
        kept = [self.text[one.start : one.end] for one in self._terms if one not in terms]
        return " ".join(kept)

    def put(self, word: str, value: str | None) -> str:
        """The line with this value of a word and no other; with None, without the word."""
        names = {word, *(other for other, name in OTHER_NAMES.items() if name == word)}
        rest = self.without([term for term in self._terms if term.word in names])
        return rest if value is None else f"{rest} {word}:{value}".strip()

    @property
    def _terms(self) -> Sequence[Term]:
        return () if self.query is None else self.query.terms
