"""Cells as people type them and as spreadsheets hold them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from windlass.apps.imports.cells import DateOrder, Kind, Misfit, Reading, column_reader, reader, shown


def read(kind: Kind, cell: Any, **how: Any) -> Any:
    return reader(kind, Reading(**how))(cell)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("cell", ["", "   ", None])
def test_an_empty_cell_is_nothing(kind: Kind, cell: Any) -> None:
    assert read(kind, cell) is None


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("  Ann ", "Ann"),
        (5551234.0, "5551234"),
        (1.5, "1.5"),
        ("00123", "00123"),
        (True, "TRUE"),
        ({"d": "2026-01-02"}, "2026-01-02"),
        ({"t": "2026-01-02T03:04:05"}, "2026-01-02 03:04:05"),
        ({"h": "03:04:05"}, "03:04:05"),
        (1e17, "100000000000000000"),
    ],
)
def test_text(cell: Any, expected: str) -> None:
    assert read(Kind.TEXT, cell) == expected


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (5.0, 5),
        (0.1, Decimal("0.1")),
        (-3, -3),
        ("1,234.56", Decimal("1234.56")),
        ("1.234,56", Decimal("1234.56")),
        ("1 234,56", Decimal("1234.56")),
        ("1\u00a0234,5", Decimal("1234.5")),
        ("1'234.50", Decimal("1234.50")),
        ("1,234,567", Decimal(1234567)),
        ("1.234.567", Decimal(1234567)),
        ("0,125", Decimal("0.125")),
        ("12,5", Decimal("12.5")),
        ("1.234", Decimal("1.234")),
        ("$1,234.50", Decimal("1234.50")),
        ("1.234,56 €", Decimal("1234.56")),
        ("EUR 12", Decimal(12)),
        ("(12.50)", Decimal("-12.50")),
        ("12%", Decimal("0.12")),
        ("-7", Decimal(-7)),
    ],
)
def test_numbers(cell: Any, expected: Any) -> None:
    assert read(Kind.NUMBER, cell) == expected


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("abc", "not-a-number"),
        ("1,234", "ambiguous-number"),
        ("nan", "not-a-number"),
        ("Infinity", "not-a-number"),
        ("1e999999999", "too-many-digits"),
        ("1" * 50, "too-many-digits"),
        (True, "not-a-number"),
        ({"d": "2026-01-02"}, "not-a-number"),
        ({"e": "#REF!"}, "cell-error"),
        ("#DIV/0!", "cell-error"),
        ("12 34 56 x", "not-a-number"),
    ],
)
def test_what_is_no_number_says_why(cell: Any, code: str) -> None:
    with pytest.raises(Misfit) as caught:
        read(Kind.NUMBER, cell)
    assert caught.value.code == code


def test_whole_numbers_that_arrive_with_a_point() -> None:
    assert read(Kind.WHOLE, 2026.0) == 2026
    assert read(Kind.WHOLE, "2,026.00") == 2026
    with pytest.raises(Misfit, match="not a whole number"):
        read(Kind.WHOLE, 1.5)


@pytest.mark.parametrize(
    ("cell", "how", "expected"),
    [
        ({"d": "2026-01-02"}, {}, dt.date(2026, 1, 2)),
        ({"t": "2026-01-02T23:59:00"}, {}, dt.date(2026, 1, 2)),
        (46024.0, {}, dt.date(2026, 1, 2)),
        (44562.0, {"epoch_1904": True}, dt.date(2026, 1, 2)),
        ("2026-01-02", {}, dt.date(2026, 1, 2)),
        ("2026/1/2", {}, dt.date(2026, 1, 2)),
        ("2026-01-02T10:00:00Z", {}, dt.date(2026, 1, 2)),
        ("2.1.2026", {}, dt.date(2026, 1, 2)),
        ("13/1/2026", {}, dt.date(2026, 1, 13)),
        ("1/13/2026", {}, dt.date(2026, 1, 13)),
        ("3/4/2026", {"dates": DateOrder.DAY_FIRST}, dt.date(2026, 4, 3)),
        ("3/4/2026", {"dates": DateOrder.MONTH_FIRST}, dt.date(2026, 3, 4)),
    ],
)
def test_dates(cell: Any, how: dict[str, Any], expected: dt.date) -> None:
    assert read(Kind.DATE, cell, **how) == expected


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("3/4/2026", "ambiguous-date"),
        ("31.2.2026", "not-a-date"),
        ("tomorrow", "not-a-date"),
        ("1.2.26", "not-a-date"),
        (0.0, "not-a-date"),
        (1e9, "not-a-date"),
        (True, "not-a-date"),
        ("99.99.9999", "not-a-date"),
        ("2026-01-02T25:00", "not-a-date"),
    ],
)
def test_what_is_no_date_says_why(cell: Any, code: str) -> None:
    with pytest.raises(Misfit) as caught:
        read(Kind.DATE, cell)
    assert caught.value.code == code


def test_yes_and_no() -> None:
    assert [read(Kind.FLAG, cell) for cell in ("Yes", "x", 1.0, True, "no", 0.0, False)] == [True] * 4 + [False] * 3
    with pytest.raises(Misfit, match="neither yes nor no"):
        read(Kind.FLAG, "maybe")


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("cell", [{"e": "#REF!"}, "#N/A", {"e": "a formula that was not calculated"}])
def test_an_error_is_never_a_blank(kind: Kind, cell: Any) -> None:
    with pytest.raises(Misfit, match="holds"):
        read(kind, cell)


def test_values_are_quoted_as_people_see_them() -> None:
    assert [shown(cell) for cell in (5.0, {"d": "2026-01-02"}, "x" * 300, None, "")] == [
        "5",
        "2026-01-02",
        "x" * 200,
        None,
        None,
    ]


def test_days_before_the_one_that_there_was_not() -> None:
    serials = [1.0, 59.0, 61.0]
    assert [str(read(Kind.DATE, serial)) for serial in serials] == ["1900-01-01", "1900-02-28", "1900-03-01"]
    with pytest.raises(Misfit, match="no day of the calendar"):
        read(Kind.DATE, 60.0)


def test_what_no_database_keeps_is_an_error_of_its_cell() -> None:
    for kind, cell, code in (
        (Kind.WHOLE, str(2**63), "too-large"),
        (Kind.WHOLE, -1e30, "too-large"),
        (Kind.TEXT, "a\0b", "cell-nul"),
        (Kind.DATE, "\0", "cell-nul"),
        (Kind.TEXT, "Err:502", "cell-error"),
    ):
        with pytest.raises(Misfit) as caught:
            read(kind, cell)
        assert caught.value.code == code
        with pytest.raises(Misfit):
            column_reader(kind, Reading())([cell, cell])


def test_digits_that_a_database_would_round_are_an_error() -> None:
    rounding = reader(Kind.NUMBER, Reading(exact=False))
    assert [rounding(cell) for cell in ("0.1", "123456789012.34", 0.1)] == [
        Decimal("0.1"),
        Decimal("123456789012.34"),
        Decimal("0.1"),
    ]
    with pytest.raises(Misfit, match="15 may be"):
        rounding("12345678901234.5678")
    assert read(Kind.NUMBER, "12345678901234.5678") == Decimal("12345678901234.5678")
