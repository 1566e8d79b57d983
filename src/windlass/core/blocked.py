"""What blocks a job: a kind of thing that it waits for, and the key of the one that it waits for.

Stores keep it as one text, kind and key with a colon between them. All jobs that are blocked by the same form a line.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from windlass.core.errors import StoreError


class Kind(StrEnum):
    """What a job can wait for as blocked. The words are stored: they never change."""

    LIMIT = "limit"
    """a slot of its limit"""
    UNIQUE = "unique"
    """the holder of its running key"""
    RATE = "rate"
    """room in its rate"""
    FLOW = "flow"
    """other jobs; the key is its own id"""
    PAYLOAD = "payload"
    """a worker that can read its payload"""
    SIGNAL = "signal"
    """a signal"""

    prefix: str
    """what texts of this kind begin with"""
    end: str
    """a text that sorts behind all of this kind, and before those of the next"""

    def __init__(self, word: str) -> None:
        """Make both once: they are asked for with every job that is put aside."""
        self.prefix, self.end = f"{word}:", f"{word};"  # the character after the colon

    def blocks(self, text: str | None) -> bool:
        """Whether a text is of this kind."""
        return text is not None and text.startswith(self.prefix)


class BlockedBy(NamedTuple):
    """What blocks a job, or a line of jobs."""

    kind: Kind
    key: str

    @property
    def text(self) -> str:
        """As stores keep it."""
        return self.kind.prefix + self.key

    @staticmethod
    def of(text: str) -> BlockedBy:
        """The value of a stored text. Only the first colon parts it: keys may have some of their own."""
        kind, colon, key = text.partition(":")
        if not colon or kind not in _KINDS:
            raise StoreError(
                f"a job is blocked by {text!r}: expected {', '.join(kind.prefix for kind in Kind)} and a key;"
                " if a newer windlass wrote it, upgrade this one"
            )
        return BlockedBy(_KINDS[kind], key)


_KINDS = {kind.value: kind for kind in Kind}


def lines(
    *, limit: str | None = None, unique: str | None = None, rate: str | None = None, flow: str | None = None
) -> list[str]:
    """The texts of the lines of these keys, of those that there are."""
    keys = {Kind.LIMIT: limit, Kind.UNIQUE: unique, Kind.RATE: rate, Kind.FLOW: flow}
    return [BlockedBy(kind, key).text for kind, key in keys.items() if key is not None]
