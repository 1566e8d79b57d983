"""The time that a page with charts is about: so long until now, or between two instants."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.core.wording import duration

if TYPE_CHECKING:
    from windlass.client.charts import Charts
    from windlass.web.dashboard.visit import Visit

SPANS = {
    "1h": "1 h",
    "15m": "15 m",
    "3h": "3 h",
    "12h": "12 h",
    "24h": "24 h",
    "7d": "7 d",
    "30d": "30 d",
}
"""how far back, the usual one first"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """From when to when."""

    name: str
    span: timedelta
    until: datetime | None = None

    @property
    def words(self) -> str:
        """As a sentence has it: `in 1 h`."""
        return f"in {SPANS[self.name]}" if self.until is None else "in this time"

    @property
    def first(self) -> datetime | None:
        """When it begins, if that does not move."""
        return None if self.until is None else self.until - self.span

    async def charts(self, visit: Visit, queue: str | None = None) -> Charts:
        """What there is to draw of it."""
        return await visit.stats.charts(self.span, until=self.until, queue=queue, max_age=visit.age)

    def segments(self, visit: Visit) -> list[tuple[str, str, bool]]:
        """The choice of others: word, address, whether it is this one."""
        ordered = sorted(SPANS, key=lambda name: duration(name, "since"))
        return [
            (
                SPANS[name],
                visit.here(**{"since": name, "from": None, "until": None}),
                self.until is None and name == self.name,
            )
            for name in ordered
        ]


def window_of(visit: Visit) -> Window:
    """The one that is asked for: `since=3h`, or `from` and `until`."""
    name = visit.asked_one_of("since", tuple(SPANS))
    first, until = visit.asked("from"), visit.asked("until")
    if not first and not until:
        return Window(name=name, span=duration(name, "since"))
    begin, end = _instant("from", first), _instant("until", until)
    if end - begin < timedelta(minutes=1):
        raise SettingsError(f"from {shown(first)} until {shown(until)}: expected a minute or more between them")
    return Window(name=name, span=end - begin, until=end)


def _instant(of: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(f"{of} is {shown(text)}: expected an instant such as 2026-03-01T09:00Z") from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
