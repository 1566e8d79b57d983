"""Words: figures, instants and names as pages show them."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from windlass.core.wording import span

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.stores.contract import Count

NOTHING = "–"
_UNSEEN = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_STEPS = ((1, "s"), (60, "min"), (3600, "h"), (86400, "d"))


def visible(text: object) -> str:
    """A text in which nothing hides: what controls, turns round or shows nothing is told by its number."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", unicodedata.normalize("NFC", str(text)))


def number(value: float | None) -> str:
    """`12,345`."""
    if value is None:
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def short(value: float | None) -> str:
    """`950`, `12.3k`, `4.5M`: for where there is no room."""
    if value is None:
        return NOTHING
    for bound, word in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= bound:
            scaled = value / (1e3 if word == "k" else bound)
            return f"{scaled:.0f}{word}" if scaled >= 100 else f"{scaled:.1f}{word}"
    rounded = round(value, 1)
    return number(int(rounded) if rounded == int(rounded) else rounded)


def counted(count: Count) -> str:
    """A count, with a plus where there are more."""
    return f"{count.n:,}{'' if count.exact else '+'}"


def capped(count: Count) -> str:
    """A count where there is no room: `950`, `12.3k`, `100k+`."""
    return (
        f"{count.n // 1000}k+"
        if not count.exact and count.n >= 1000
        else f"{short(count.n)}{'' if count.exact else '+'}"
    )


def share(value: float | None) -> str:
    """`0.4 %`."""
    if value is None:
        return NOTHING
    percent = value * 100
    return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{percent:.1f} %"


def ago(at: datetime | None) -> str:
    """`12 s ago`, `in 3 min`."""
    if at is None:
        return NOTHING
    seconds = (datetime.now(UTC) - at).total_seconds()
    n, word = next((abs(seconds) // size, word) for size, word in reversed(_STEPS) if abs(seconds) >= size or size == 1)
    return f"{n:.0f} {word} ago" if seconds >= 0 else f"in {n:.0f} {word}"


def moment(at: datetime | None, *, focus: bool = False) -> Markup:
    """An instant: how long ago it was, or when, as the viewer has chosen; the exact one is its title.

    With `focus` it can be reached with the keyboard and then shows the exact one; not for rows of many.
    """
    if at is None:
        return Markup('<span class="muted">–</span>')
    exact = at.astimezone(UTC)
    told = exact.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    title = f"{exact:%Y-%m-%d %H:%M:%S}.{exact.microsecond // 1000:03d} UTC"
    reached = Markup(' tabindex="0"') if focus else Markup("")
    return Markup('<time datetime="{}" title="{}"{}>{}</time>').format(told, title, reached, ago(at))


def clock(at: datetime | None) -> Markup:
    """An instant by the clock, whatever the viewer has chosen for others: the end of a stretch of time."""
    if at is None:
        return Markup('<span class="muted">–</span>')
    exact = at.astimezone(UTC)
    told = exact.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Markup('<time datetime="{}" title="{}" data-form="full">{}</time>').format(
        told, f"{exact:%Y-%m-%d %H:%M:%S} UTC", f"{exact.day} {exact:%b, %H:%M} UTC"
    )


def size(n: int) -> str:
    """How large something is: `412 B`, `12.3 KiB`."""
    return f"{n} B" if n < 10_000 else f"{n / 1024:,.1f} KiB"


def figure(value: float) -> str:
    """A figure of whatever is counted: `1,234`, `0.5`."""
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:,.1f}"


def exact(at: datetime) -> str:
    """An instant to the millisecond, in UTC."""
    return f"{at:%Y-%m-%d} {clock_ms(at)}"


def clock_ms(at: datetime) -> str:
    """The time of day of an instant, in UTC."""
    return f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}"


def lasting(value: float | timedelta | None) -> str:
    """A duration: `0.8 s`, `4 m 3 s`."""
    return span(value)


def quoted_word(text: str) -> str:
    """A value as the search grammar has it: in quotes where it is more than one word."""
    if re.fullmatch(r"[\w.:/@-]+", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


FILTERS: dict[str, Callable[..., Any]] = {
    "visible": visible,
    "number": number,
    "short": short,
    "counted": counted,
    "capped": capped,
    "share": share,
    "moment": moment,
    "clock": clock,
    "lasting": lasting,
    "size": size,
    "figure": figure,
    "exact": exact,
    "clock_ms": clock_ms,
}
