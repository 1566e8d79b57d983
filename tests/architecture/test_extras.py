"""An extra exists when its feature does: what it installs is imported by windlass itself."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOR_THE_HOUSE = {"all", "dev", "servers"}
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
FEATURES = sorted(EXTRAS.keys() - FOR_THE_HOUSE)
MODULES = {"opentelemetry-api": "opentelemetry", "pyjwt": "jwt", "python-docx": "docx"}
"""packages whose module has another name"""
BEING_BUILT = {
    "anthropic", "docx", "jinja2", "openai", "opentelemetry", "prometheus_client", "pypdfium2", "snowballstemmer",
    "textual", "typst",
}  # fmt: skip
"""what may be installed before the code that imports it is there"""
SERVED_WITH = {"websockets", "python-multipart"}
"""uvicorn takes the one for WebSockets, FastAPI the other for files that are sent, and they have none without"""


@cache
def imported() -> frozenset[str]:
    """The packages that windlass's own code imports, wherever it does."""
    found: set[str] = set()
    for path in (ROOT / "src" / "windlass").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                found.add(node.module.partition(".")[0])
    return frozenset(found)


@pytest.mark.parametrize("extra", FEATURES)
def test_what_an_extra_installs_is_used(extra: str) -> None:
    packages = {re.split(r"[^\w-]", requirement)[0] for requirement in EXTRAS[extra]} - SERVED_WITH
    assert {MODULES.get(package, package.replace("-", "_")) for package in packages} - BEING_BUILT <= imported()


def test_all_is_every_feature() -> None:
    assert [f"windlass[{','.join(one for one in EXTRAS if one not in FOR_THE_HOUSE)}]"] == EXTRAS["all"]
