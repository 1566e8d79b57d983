"""Deploys: when new versions of types were seen for the first time, as marks on the axis of time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.wording import plural
from windlass.web.dashboard.charts import Mark
from windlass.web.dashboard.words import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.charts import Charts
    from windlass.stores.contract import TypeInfo

_TOGETHER = timedelta(minutes=2)
"""what comes so soon after another is of the same deploy: workers of many machines start one after the other"""


def deploys(types: Sequence[TypeInfo], charts: Charts) -> tuple[Mark, ...]:
    """Those within the time of the charts, oldest first."""
    groups: list[list[TypeInfo]] = []
    for one in sorted(types, key=lambda info: info.first_seen):
        if one.declared.type.startswith("windlass."):
            continue
        if groups and one.first_seen - groups[-1][-1].first_seen <= _TOGETHER:
            groups[-1].append(one)
        else:
            groups.append([one])
    marks = (Mark(group[0].first_seen, _words(group)) for group in groups)
    return tuple(mark for mark in marks if charts.steps[0] <= mark.at <= charts.at)


def _words(group: Sequence[TypeInfo]) -> str:
    """`2.4.0, 12 types`."""
    versions = sorted({visible(one.declared.version) for one in group if one.declared.version})
    types = plural(len({one.declared.type for one in group}), "type")
    return f"{', '.join(versions[-3:])}, {types}" if versions else types
