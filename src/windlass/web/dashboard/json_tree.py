"""JSON as people read it: a tree that folds, every digit as it is kept, and nothing in it that is not text."""

from __future__ import annotations

import json
from typing import Any, cast

from markupsafe import Markup, escape

from windlass.web.dashboard.words import visible

MOST = 2_000
"""values that are shown; of the rest it is said that there are more"""
_OPEN_TO = 2
"""levels that are unfolded at first"""
_LONG = 2_000
"""characters of one text"""


def json_tree(value: Any) -> Markup:
    """A value as a tree; numbers are those of Python, so none is rounded on its way through a browser."""
    left = [MOST]
    tree = _node(value, 0, left)
    more = Markup("") if left[0] > 0 else Markup('<p class="muted">… and more: the API has all of it</p>')
    return Markup('<div class="json">') + tree + more + Markup("</div>")


def _node(value: Any, level: int, left: list[int]) -> Markup:
    left[0] -= 1
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return _folded([(str(name), one) for name, one in members.items()], "{}", level, left)
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        return _folded([(None, one) for one in items], "[]", level, left)
    return _scalar(value)


def _folded(members: list[tuple[str | None, Any]], signs: str, level: int, left: list[int]) -> Markup:
    if not members:
        return Markup('<span class="json-sign">{}</span>').format(signs)
    lines: list[Markup] = []
    for name, value in members:
        if left[0] <= 0:
            break
        key = Markup("") if name is None else Markup('<span class="json-key">{}</span>: ').format(visible(name))
        lines.append(Markup("<li>") + key + _node(value, level + 1, left) + Markup("</li>"))
    word = "member" if signs == "{}" else "item"
    count = f"{len(members):,} {word}{'' if len(members) == 1 else 's'}"
    shown = Markup(" open") if level < _OPEN_TO else Markup("")
    head = Markup('<details{}><summary><span class="json-sign">{}</span> <span class="muted">{}</span></summary><ul>')
    return head.format(shown, signs, count) + Markup("").join(lines) + Markup("</ul></details>")


def _scalar(value: Any) -> Markup:
    if isinstance(value, str):
        text = visible(value[:_LONG])
        more = f"… {len(value) - _LONG:,} characters more" if len(value) > _LONG else ""
        return Markup('<span class="json-text">“{}”</span>{}').format(text, more)
    kind = "json-word" if value is None or isinstance(value, bool) else "json-number"
    return Markup('<span class="{}">{}</span>').format(kind, escape(json.dumps(value)))
