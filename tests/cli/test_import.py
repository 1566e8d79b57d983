"""`windlass import`: rows into a table, the first errors on the screen, the refused rows in a workbook."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]  # it has no types
import pytest

from tests.apps.imports.workbooks import CUSTOMERS, customers, workbook
from tests.support.until import until_sync


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
    assert "read as xlsx, sheet Sheet1: email, name, phone, company" in done.stdout
    assert "22   Email   bad    not a valid address" in done.stdout
    assert "the refused rows are in out.xlsx" in done.stdout
    assert list((tmp_path / "uploads").iterdir()) == []
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
    assert list((tmp_path / "uploads").iterdir()) == []


@pytest.mark.timeout(60)
def test_what_was_broken_off_goes_on_and_text_is_shown_as_it_was_read(tmp_path: Path) -> None:
    lines = [f"c{n}@example.org;Jürgen {n};;" for n in range(30_000)]
    (tmp_path / "c.csv").write_bytes("\n".join(["Mail;Who;Tel;Firm", *lines, "bad;x"]).encode("cp1252"))
    words = ("import", "c.csv", "--as", "customers", "--map", "name=Who")
    command = [sys.executable, "-m", "windlass", "--store", "sqlite:///jobs.db", *words]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until_sync(lambda: written(tmp_path) > 0, "the first rows are there", within=30)
    process.kill()
    process.communicate()
    done = windlass(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert "which was broken off" in done.stderr
    assert "30,001 rows  inserted 30,000  updated 0 (0 alike)  failed 1" in done.stdout
    assert "read as csv, cp1252, cells between semicolons: email from Mail, name from Who" in done.stdout
    assert written(tmp_path) == 30_000
    assert list((tmp_path / "uploads").iterdir()) == []


def written(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "jobs.db")) as connection:
        try:
            [(n,)] = connection.execute("SELECT count(*) FROM customers")
        except sqlite3.OperationalError:  # not yet made
            return 0
        return int(n)
