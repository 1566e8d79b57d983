"""Limits: at most N jobs of one key processing at once, across all workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from windlass.core.errors import SettingsError
from windlass.core.keys import Template, shown, template

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `n` jobs whose key fills in alike are processing at once; the others wait as blocked, first in first out.

    The slot is the running job itself: it is free again the moment the job ends, is handed back or is rescued.
    """

    key: str
    n: int = 1

    def __post_init__(self) -> None:
        """Refuse a limit that would let nothing through or cannot be filled in."""
        n = cast("object", self.n)
        if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST:
            raise SettingsError(f"Limit({shown(self.key)}) allows {shown(n)} at once: expected 1 to {MOST}")
        Template(self.key)

    def key_for(self, arguments: Mapping[str, object]) -> str:
        """The key of one job, from its own arguments."""
        return template(self.key).fill(arguments)
