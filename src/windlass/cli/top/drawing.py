"""Drawing with characters: bars and sparklines that also say what they say without colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEVELS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(share: float, width: int) -> str:
    """Filled up to a share of its width."""
    full = round(min(max(share, 0.0), 1.0) * width)
    return "█" * full + "░" * (width - full)


def thin_bar(share: float, width: int) -> str:
    """As long as its share, to an eighth of a character; whatever is more than nothing can be seen."""
    if share <= 0:
        return ""
    eighths = max(round(min(share, 1.0) * width * 8), 1)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def sparkline(values: Sequence[float], width: int, top: float | None = None) -> str:
    """The last `width` values, each by its height below the largest; nothing is the lowest, and only nothing."""
    shown = [0.0] * max(width - len(values), 0) + list(values[-width:] if width > 0 else ())
    highest = max([top or 0.0, *shown], default=0.0)
    if highest <= 0:
        return _LEVELS[0] * len(shown)
    steps = len(_LEVELS) - 1
    return "".join(_LEVELS[0 if value <= 0 else max(round(value / highest * steps), 1)] for value in shown)
