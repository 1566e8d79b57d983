"""`windlass import`: rows into a table, the first errors on the screen, the refused rows in a workbook."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]  # it has no types

from tests.apps.imports.workbooks import CUSTOMERS, customers, workbook


def windlass(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "windlass", "--store", "sqlite:///jobs.db", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_file_is_imported_and_its_refused_rows_come_back(tmp_path: Path) -> None:
    workbook(tmp_path / "c.xlsx", [CUSTOMERS, *customers(20), ("bad", "Eve")])
    tried = windlass(tmp_path, "import", "c.xlsx", "--as", "customers", "--dry-run", "--json")
    assert tried.returncode == 0, tried.stderr
    facts = json.loads(tried.stdout)
    assert (facts["dryRun"], facts["inserted"], facts["failed"]) == (True, 20, 1)

    done = windlass(tmp_path, "import", "c.xlsx", "--as", "customers", "--corrections", "out.xlsx")
    assert done.returncode == 0, done.stderr
    assert "21 rows  inserted 20  updated 0 (0 alike)  failed 1" in done.stdout
    assert "Row 22: email: not a valid address  (bad)" in done.stdout
    book: Any = openpyxl.load_workbook(tmp_path / "out.xlsx")
    rows = list(book.active.values)
    assert rows[1] == ("bad", "Eve", None, None, "Row 22: email: not a valid address")

    again = windlass(tmp_path, "import", "c.xlsx", "--as", "customers")
    assert again.returncode == 5
    assert "--force" in again.stderr


def test_what_cannot_be_imported_is_told_in_a_line(tmp_path: Path) -> None:
    workbook(tmp_path / "c.xlsx", [("Only",), ("x",)])
    for words, code, told in (
        (["c.xlsx", "--as", "nope"], 2, "known are ap, budgetForecast, customers"),
        (["c.xlsx"], 2, "give --as"),
        (["c.xlsx", "--as", "customers"], 6, "no column for email, name"),
        (["c.xlsx", "--as", "customers", "--map", "email"], 2, "expected FIELD=HEADER"),
    ):
        done = windlass(tmp_path, "import", *words)
        assert told in done.stderr, done.stderr
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
