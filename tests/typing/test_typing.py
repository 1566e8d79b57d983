"""The public calls as a user's type checker sees them: every right one accepted, every wrong one reported."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RIGHT, WRONG = HERE / "right_calls.py", HERE / "wrong_calls.py"
Found: TypeAlias = dict[str, dict[int, str]]
"""messages by file and line"""
# One process checks both, after the other: each holds a processor for many seconds.
pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("typing")]


def _mypy(_: Path) -> Found:
    config = ROOT / "pyproject.toml"
    options = ["--config-file", config, "--no-error-summary", "--hide-error-context"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, RIGHT, WRONG], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    told = re.findall(r"(\w+\.py):(\d+): error: (.*)", done.stdout)
    assert {name for name, _, _ in told} <= {RIGHT.name, WRONG.name}, f"elsewhere: {done.stdout}"
    assert len(told) == done.stdout.count(": error: "), done.stdout
    return by_file((name, int(line), message) for name, line, message in told)


def _pyright(folder: Path) -> Found:
    # Copies, because a project's own settings leave this folder out and include nothing above theirs.
    for path in (RIGHT, WRONG):
        shutil.copy(path, folder)
    config = {
        "include": ["."],
        "extraPaths": [str(ROOT / "src"), str(ROOT)],
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] >= 2
    errors = [one for one in report["generalDiagnostics"] if one["severity"] == "error"]
    return by_file((Path(one["file"]).name, one["range"]["start"]["line"] + 1, one["message"]) for one in errors)


def by_file(told: Iterable[tuple[str, int, str]]) -> Found:
    found: Found = {RIGHT.name: {}, WRONG.name: {}}
    for name, line, message in told:
        found[name][line] = message
    return found


CHECKERS = {"mypy": _mypy, "pyright": _pyright}


@pytest.fixture(scope="module", params=CHECKERS)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What a checker finds in both files, which it reads once."""
    return CHECKERS[request.param](tmp_path_factory.mktemp("typing"))


def test_right_calls_are_accepted(found: Found) -> None:
    assert found[RIGHT.name] == {}


def test_wrong_calls_are_reported_and_nothing_else(found: Found, request: pytest.FixtureRequest) -> None:
    lines = WRONG.read_text(encoding="utf-8").splitlines()
    marks = ("# wrong", f"# wrong for {request.node.callspec.params['found']}")
    marked = {number for number, line in enumerate(lines, 1) if line.endswith(marks)}
    told = found[WRONG.name]
    assert len(marked) > 30
    assert {n: lines[n - 1] for n in marked - told.keys()} == {}, "not reported"
    assert {n: told[n] for n in told.keys() - marked} == {}, "reported though right"
