"""The public calls as a user's type checker sees them: every right one accepted, every wrong one reported."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RIGHT, WRONG = HERE / "right_calls.py", HERE / "wrong_calls.py"
# One process checks both, after the other: each holds a processor for many seconds.
pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("typing")]


def _mypy(path: Path) -> dict[int, str]:
    config = ROOT / "pyproject.toml"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", config, "--no-error-summary", "--hide-error-context", path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(rf"{path.name}:(\d+): error: (.*)", done.stdout)
    assert len(found) == done.stdout.count(": error: "), f"elsewhere: {done.stdout}"
    return {int(line): message for line, message in found}


def _pyright(path: Path, tmp_path: Path) -> dict[int, str]:
    # A copy, because a project's own settings leave this folder out and include nothing above theirs.
    shutil.copy(path, tmp_path)
    config = {
        "include": ["."],
        "extraPaths": [str(ROOT / "src"), str(ROOT)],
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] >= 1
    errors = [one for one in report["generalDiagnostics"] if one["severity"] == "error"]
    return {one["range"]["start"]["line"] + 1: one["message"] for one in errors}


@pytest.fixture(params=["mypy", "pyright"])
def check(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Path], dict[int, str]]:
    return _mypy if request.param == "mypy" else lambda path: _pyright(path, tmp_path)


def test_right_calls_are_accepted(check: Callable[[Path], dict[int, str]]) -> None:
    assert check(RIGHT) == {}


def test_wrong_calls_are_reported_and_nothing_else(
    check: Callable[[Path], dict[int, str]], request: pytest.FixtureRequest
) -> None:
    lines = WRONG.read_text(encoding="utf-8").splitlines()
    marks = ("# wrong", f"# wrong for {request.node.callspec.params['check']}")
    marked = {number for number, line in enumerate(lines, 1) if line.endswith(marks)}
    found = check(WRONG)
    assert len(marked) > 30
    assert {n: lines[n - 1] for n in marked - found.keys()} == {}, "not reported"
    assert {n: found[n] for n in found.keys() - marked} == {}, "reported though right"
