"""The documentation is complete and points only at what is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from pydantic import BaseModel

import windlass
from tests.docs.pages import PAGES, ROOT, name_of
from windlass import events, settings
from windlass.apps.files.settings import FilesSettings
from windlass.apps.imports.settings import ImportsSettings
from windlass.apps.resumes.settings import ResumesSettings
from windlass.cli.commands import COMMANDS
from windlass.cli.output import EXIT_CODES
from windlass.core import errors
from windlass.core.errors import WindlassError

DOCS = ROOT / "docs"
SOURCES: tuple[Any, ...] = vars(settings)["_SOURCES"]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the usual Markdown renderers make them."""
    heads = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


def broken_links(page: Path) -> Iterator[str]:
    for link in _LINK.findall(prose(page)):
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=name_of)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_every_page_is_reached_from_the_index() -> None:
    seen: set[Path] = set()
    waiting = [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        links = [(page.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(prose(page))]
        waiting += [link for link in links if link.suffix == ".md" and DOCS in link.parents]
    assert {page for page in PAGES if DOCS in page.parents} - seen == set()


def test_every_setting_is_documented_with_its_aliases_and_default() -> None:
    rows = (DOCS / "settings.md").read_text(encoding="utf-8").splitlines()
    for source in SOURCES:
        row = next(line for line in rows if line.startswith(f"| `{source.names[0]}` |"))
        assert [name for name in source.names if f"`{name}`" not in row] == []
        default = getattr(settings.Settings(), source.field)
        shown = "none" if default in (None, ()) else default
        if isinstance(default, tuple) and default:
            shown = ",".join(cast("tuple[str, ...]", default))
        if isinstance(default, bool):
            shown = "on" if default else "off"
        if isinstance(default, timedelta):
            shown = default // timedelta(milliseconds=1)
        assert str(shown) in row.split("|")[3]
        assert all(number in row for number in re.findall(r"\d+", source.expected)), row


def test_no_setting_is_documented_that_does_not_exist() -> None:
    known = {name for source in SOURCES for name in source.names} | {"WINDLASS_FILE"}
    known |= {f"WINDLASS_IMPORTS_{name}".upper() for name in ImportsSettings.model_fields}
    known |= {f"WINDLASS_FILES_{name}".upper() for name in FilesSettings.model_fields}
    known |= {f"WINDLASS_RESUMES_{name}".upper() for name in ResumesSettings.model_fields}
    for page in PAGES:
        named = set(re.findall(r"\bWINDLASS_[A-Z_]*[A-Z]\b", page.read_text(encoding="utf-8")))
        # Of the shop, which is the example of an application with settings of its own.
        assert {name for name in named if not name.startswith("WINDLASS_SHOP_")} <= known


def test_every_command_is_documented() -> None:
    text = (DOCS / "operations.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`windlass {name}" not in text] == []


def test_every_exit_code_of_an_error_is_documented() -> None:
    text = (DOCS / "operations.md").read_text(encoding="utf-8").partition("## Exit codes")[2]
    assert [code for code in sorted(set(EXIT_CODES.values())) if f"| {code} |" not in text] == []


def test_every_error_is_documented() -> None:
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    public = [getattr(windlass, name) for name in windlass.__all__]
    found = [one for one in public if isinstance(one, type) and issubclass(one, WindlassError)]
    assert len(found) > 10
    assert [one.__name__ for one in found if one is not WindlassError and f"| `{one.__name__}` |" not in text] == []


def test_the_tree_of_errors_is_the_one_in_the_code() -> None:
    def tree(text: str) -> list[str]:
        lines = re.findall(r"^[│├└─ ]*(?:├|└)── \w+|^WindlassError$", text, re.MULTILINE)
        return [line.rstrip() for line in lines]

    assert tree((DOCS / "errors.md").read_text(encoding="utf-8")) == tree(errors.__doc__ or "")


def test_every_event_is_documented_with_its_name_and_fields() -> None:
    rows = (DOCS / "events.md").read_text(encoding="utf-8").splitlines()
    kinds = get_args(events.Event)
    assert len({kind.name for kind in kinds}) == len(kinds)
    assert {kind.__name__ for kind in kinds} | {"Event"} == set(events.__all__)
    for kind in kinds:
        [row] = [line for line in rows if line.startswith(f"| `{kind.__name__}` | `{kind.name}` |")]
        named = re.findall(r"`(\w+)`", row.split("|")[3])
        given = [field.name for field in fields(kind)]
        assert [name for name in named if name not in given and not hasattr(kind, name)] == []
        assert [name for name in given if name not in named] == []
    assert len([line for line in rows if re.match(r"\| `\w+` \| `\w+\.\w+` \|", line)]) == len(kinds)


def test_every_test_that_is_named_exists() -> None:
    named = set(re.findall(r"\btest_\w+", (DOCS / "guarantees.md").read_text(encoding="utf-8")))
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert named
    assert {name for name in named if f"def {name}(" not in sources} == set()


@pytest.mark.parametrize(
    ("page", "settings"), [("imports", ImportsSettings), ("files", FilesSettings), ("resumes", ResumesSettings)]
)
def test_every_setting_of_an_application_is_documented(page: str, settings: type[BaseModel]) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8").partition("## Settings")[2]
    assert [name for name in settings.model_fields if f"_{name.upper()}`" not in text] == []
