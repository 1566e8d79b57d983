"""A resume as Markdown. What it says is text: no mark in it means anything."""

from __future__ import annotations

import re

from windlass.apps.resumes.rendering.outline import Item, Outline

_MARKS = re.compile(r"([\\`*_{}\[\]#|~])")
_LEADING = re.compile(r"^(\s*)([-+>]|\d+[.)])(?=\s)")


def markdown(shown: Outline) -> bytes:
    """The file, in UTF-8."""
    lines = [f"# {_plain(shown.name)}"] if shown.name else []
    if shown.label:
        lines += ["", f"**{_plain(shown.label)}**"]
    if shown.contact:
        lines += ["", " · ".join(_plain(text) for text, _ in shown.contact)]
    for group in shown.groups:
        lines += ["", f"## {_plain(group.title)}"]
        if group.text:
            lines += ["", _plain(group.text)]
        for label, said in group.lines:
            lines += ["", f"**{_plain(label)}:** {_plain(said)}" if label else _plain(said)]
        short = all(not item.text and not item.points for item in group.items)
        for item in group.items:
            lines += _short(item) if short else _long(item)
    return ("\n".join(_tight(lines)).strip() + "\n").encode()


def _short(item: Item) -> list[str]:
    return ["- " + ", ".join(_plain(one) for one in (item.title, item.beside, item.when) if one)]


def _long(item: Item) -> list[str]:
    beside = " — ".join(_plain(one) for one in (item.title, item.beside) if one)
    lines = ["", f"### {beside}"]
    when = " · ".join(_plain(one) for one in (item.when, item.place, item.link) if one)
    if when:
        lines += ["", f"*{when}*"]
    if item.text:
        lines += ["", _plain(item.text)]
    return [*lines, "", *(f"- {_plain(point)}" for point in item.points)]


def _plain(text: str) -> str:
    """Text in one line in which nothing is markup."""
    said = _MARKS.sub(r"\\\1", " ".join(text.split()))
    said = said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LEADING.sub(r"\1\\\2", said)


def _tight(lines: list[str]) -> list[str]:
    """One empty line at a time, and one before a list."""
    kept: list[str] = []
    for line in lines:
        begins = line.startswith("- ") and kept and kept[-1] and not kept[-1].startswith("- ")
        if begins:
            kept.append("")
        if line or (kept and kept[-1]):
            kept.append(line)
    return kept
