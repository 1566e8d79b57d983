"""JSON as people read it: a tree that folds, every digit as it is kept, and nothing in it that is not text.

A secret by its type is `***`; so is a text whose name says that it is one, because others may see the screen.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from markupsafe import Markup, escape

from windlass.core.redaction import MASK, is_called_secret
from windlass.core.sealing import mapped
from windlass.web.dashboard.words import visible

MOST = 2_000
"""values that are shown; of the rest it is said that there are more"""
_OPEN_TO = 2
"""levels that are unfolded at first"""
_LONG = 2_000
"""characters of one text"""


@dataclass(frozen=True, slots=True)
class Hidden:
    """What is not shown, and why not."""

    reason: str


SEALED = Hidden("a secret: its handler alone is given it")
CALLED = Hidden("not shown because of its name")


def shown_json(text: str) -> Any:
    """The values of a stored JSON text as pages show them: without secrets, and without what is called one."""
    return _without_called(mapped(json.loads(text), lambda _, __: SEALED))


def masked_json(text: str) -> Any:
    """The same as JSON can hold it: with `***` for what is not shown."""
    return _masked(shown_json(text))


def _masked(value: Any) -> Any:
    if isinstance(value, Hidden):
        return MASK
    if isinstance(value, dict):
        return {name: _masked(one) for name, one in cast("dict[str, Any]", value).items()}
    return [_masked(one) for one in cast("list[object]", value)] if isinstance(value, list) else value


def _without_called(value: Any) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {
            name: CALLED if isinstance(one, str) and one and is_called_secret(name) else _without_called(one)
            for name, one in members.items()
        }
    if isinstance(value, list):
        return [_without_called(one) for one in cast("list[object]", value)]
    return value


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
    if isinstance(value, Hidden):
        return Markup('<span class="json-hidden">{}</span> <span class="json-why">{}</span>').format(MASK, value.reason)
    if isinstance(value, str):
        text = visible(value[:_LONG])
        more = f"… {len(value) - _LONG:,} characters more" if len(value) > _LONG else ""
        return Markup('<span class="json-text">“{}”</span>{}').format(text, more)
    kind = "json-word" if value is None or isinstance(value, bool) else "json-number"
    return Markup('<span class="{}">{}</span>').format(kind, escape(json.dumps(value)))
