"""Series: texts that are kept under a name and an instant, for as long as minutes are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

SERIES_KEPT = timedelta(days=30)


class Series(Protocol):
    """What is noted from time to time, such as how much there is to do. Instants have milliseconds."""

    async def put(self, name: str, at: datetime, text: str) -> None:
        """Keep this text, in place of one that is kept under the same name and instant."""
        ...

    async def read(self, name: str, first: datetime, until: datetime | None = None) -> Sequence[tuple[datetime, str]]:
        """What is kept under the name from this instant on, and before the other if one is given, oldest first.

        Pruned once it is older than minutes are.
        """
        ...

    async def last(self, name: str) -> datetime | None:
        """The last instant under which something is kept; None where there is nothing."""
        ...
