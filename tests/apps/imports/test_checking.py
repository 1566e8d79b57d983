"""Checking column by column gives what checking cell by cell does."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from windlass.apps.imports.cells import Reading
from windlass.apps.imports.checking import Checked, Checker
from windlass.apps.imports.mapping import guess
from windlass.apps.imports.shipped import AccountsPayable

HEADER = ["Invoice Number", "Vendor", "Amount", "Due Date", "Status"]
TEXTS = st.sampled_from(["INV-1", " INV-2 ", "Vendor", "#REF!", "", " ", "1,5", "2026-01-02"])
NUMBERS = st.sampled_from([0.0, 5.0, 1.25, -7.0, 2.0**53, 1e300])
DAYS = st.sampled_from([{"d": "2026-01-02"}, {"t": "2026-01-02T03:04:05"}, {"e": "#REF!"}])


def checker() -> Checker:
    handler = AccountsPayable()
    return Checker(handler, guess(handler, HEADER), Reading())


def told(found: Checked, last: int) -> Any:
    errors = [error.as_json() for error in found.errors if error.row <= last]
    return [row.model_dump() for row in found.rows], found.numbers, errors, found.bad


@given(st.lists(st.tuples(TEXTS, TEXTS, NUMBERS, DAYS, TEXTS | NUMBERS), min_size=1, max_size=4))
def test_both_ways_find_the_same(rows: list[tuple[Any, ...]]) -> None:
    batch: list[list[Any]] = [[number, *row] for number, row in enumerate(rows, 2)]
    last = len(batch) + 1
    short = [last + 1, "INV-9"]  # no batch with so short a row is read column by column
    swept, slow = checker().check(batch), checker().check([*batch, short])
    assert slow.bad.pop() == short
    assert told(swept, last) == told(slow, last)


def test_blank_cells_and_errors_are_named_in_columns_of_text() -> None:
    day = {"d": "2026-01-02"}
    found = checker().check([[2, "INV-1", "", 5.0, day, ""], [3, "#N/A", "V", 5.0, day, "x"]])
    assert [error.reason for error in found.errors] == ["vendor: is required", "invoiceNumber: holds the error #N/A"]
    found = checker().check([[2, "INV-1", "", 5.0, day, ""]])
    assert [error.reason for error in found.errors] == ["vendor: is required"]
