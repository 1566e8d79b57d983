"""From files to the text of a script: of what scripts share, each is sent what it calls and nothing besides.

Lua makes every function and every local anew in each call of a script, and looks for each local that a function uses
among all that others use: with all that the files share, most of a short call would be spent before its first line. So
what nobody calls is left out, and numbers and texts that have a name only for the reader stand where the name stood:
among them the places of a record's fields, which are numbered here.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from windlass.core import kept
from windlass.core.blocked import Kind
from windlass.stores.redis.records import FIELDS, PARTS, REST

_PARTS = {
    "enqueue": ("inserting",),
    "insert": ("inserting",),
    "fire": ("inserting", "ticking", "once"),
    "put": ("ticking",),
    "halt": ("ticking",),
    "due": ("ticking",),
    "operate": ("once", "keeping"),
    "drop": ("ticking", "once"),
    "keep": ("locking",),
    "migrate": ("tokens",),
    "claim": ("tokens", "gate"),
    "promote": ("keeping",),
    "remember": ("keeping",),
    "acquire": ("tokens", "locking"),
    "apply": ("settling",),
    "rescue": ("settling",),
}
"""what scripts share beside records.lua and common.lua"""
SHARED = frozenset({"records", "common"}.union(*_PARTS.values()))
"""files that are no script by themselves"""

_NUMBERS = {
    **{name.upper(): n for n, name in enumerate(FIELDS, 1)},
    "REST": FIELDS.index(REST[0]) + 1,
    **{name.upper(): n for parts in PARTS.values() for n, name in enumerate(parts, 1)},
    "KEPT_LARGEST": kept.LARGEST,
    "KEPT_BYTES": kept.MOST_BYTES,
    "KEPT_NAMES": kept.MOST,
}
PLACES = f"local {', '.join(_NUMBERS)} = {', '.join(map(str, _NUMBERS.values()))}"
"""Lua for the places of a record's fields and of the parts of fields, from 1, for where those begin that moves leave
alone, and for how much a job may keep."""

_BLOCKED_BY = re.compile(r"\bBY\.(\w+)")
_LITERAL = r"(?:-?\d+|'[^']*')"
_CONSTANTS = re.compile(rf"^local ([A-Z_]+(?:, [A-Z_]+)*) = ({_LITERAL}(?:, {_LITERAL})*)$", re.MULTILINE)
_FUNCTION = re.compile(r"^local function (\w+)\(.*?^end$\n?", re.MULTILINE | re.DOTALL)
_MADE = re.compile(r"^local ([A-Z_]+) = .*$", re.MULTILINE)
_TOKEN = re.compile(r"'(?:\\.|[^'\\])*'|[ ]*--[^\n]*|[.:]?\w+")


@cache
def script(name: str) -> tuple[str, str]:
    """The text of a script and its digest."""
    where = files("windlass.stores.redis") / "scripts"
    parts = ("records", "common", *_PARTS.get(name, ()), name)
    whole = "\n".join([PLACES, *((where / f"{part}.lua").read_text(encoding="utf-8") for part in parts)])
    text = trimmed(_BLOCKED_BY.sub(lambda found: f"'{Kind(found[1]).prefix}'", whole))
    return text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def trimmed(text: str) -> str:
    """A script that does the same without comments, named constants and functions that nobody calls."""
    return _without_unused(_with_constants(_without_comments(text)))


def _each_token(text: str, change: Callable[[str], str]) -> str:
    """The text with its names, texts and comments changed. The name of a field keeps its dot."""
    return _TOKEN.sub(lambda found: change(found[0]), text)


def _without_comments(text: str) -> str:
    return _each_token(text, lambda token: "" if token.lstrip().startswith("--") else token)


def _with_constants(text: str) -> str:
    values: dict[str, str] = {}
    for names, literals in _CONSTANTS.findall(text):
        values.update(zip(names.split(", "), literals.split(", "), strict=True))
    return _each_token(_CONSTANTS.sub("", text), lambda token: values.get(token, token))


def _without_unused(text: str) -> str:
    functions = {found[1]: found[0] for found in _FUNCTION.finditer(text)}
    used: set[str] = set()
    reached = [_FUNCTION.sub("", text)]
    while reached:
        called = set(_TOKEN.findall(reached.pop())) & functions.keys()
        reached += [functions[name] for name in called - used]
        used |= called
    text = _FUNCTION.sub(lambda found: found[0] if found[1] in used else "", text)
    words = Counter(_TOKEN.findall(text))
    return _MADE.sub(lambda found: found[0] if words[found[1]] > 1 else "", text)
