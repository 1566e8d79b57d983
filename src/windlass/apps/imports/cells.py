"""Cells: from what a spreadsheet holds to what a field takes, whichever way somebody has typed it."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ERRORS = frozenset(
    {"#REF!", "#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#VALUE!", "#GETTING_DATA", "#SPILL!", "#CALC!"}
)
_EPOCH_1900, _EPOCH_1904 = dt.datetime(1899, 12, 30), dt.datetime(1904, 1, 1)  # noqa: DTZ001  # a sheet has no zone
_NO_DAY = 60
"""spreadsheets know a 29th of February 1900, which there was not: days before it count from another day"""
_LAST_SERIAL = 2_958_466
"""the day after 9999-12-31, as spreadsheets count"""
_EXACT = 2**53
_LARGEST = 2**63 - 1
"""whole number that every database keeps"""
_LONGEST = 34
"""digits of a number that every database keeps"""
_FLOAT_DIGITS = 15
"""digits that survive as a binary fraction"""
_CALC_ERROR = re.compile(r"Err:[0-9]{3}")
_DATES = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?)?Z?")
_MONEY = re.compile(r"[\s\u00a0\u202f']|[$€£¥₹]|\b(?:USD|EUR|GBP|CHF|JPY|INR|CAD|AUD)\b", re.IGNORECASE)
_YES, _NO = (
    frozenset({"true", "yes", "y", "1", "x", "ja", "oui", "si"}),
    frozenset({"false", "no", "n", "0", "nein", "non"}),
)


class Kind(StrEnum):
    """What a field is, as far as cells go."""

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    DATE = "date"
    INSTANT = "date and time"
    FLAG = "yes or no"


class DateOrder(StrEnum):
    """How 3/4/2026 is meant."""

    UNSAID = "unsaid"
    DAY_FIRST = "dmy"
    MONTH_FIRST = "mdy"


class Reading(NamedTuple):
    """How the cells of one file are to be read."""

    epoch_1904: bool = False
    dates: DateOrder = DateOrder.UNSAID
    exact: bool = True
    """the database keeps more digits than a binary fraction has"""


class Misfit(Exception):
    """A cell cannot be what its field is."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


def reader(kind: Kind, reading: Reading) -> Callable[[Any], Any]:
    """From a cell to a value for a field of this kind; None for an empty cell. Misfit says what is wrong."""
    read = _READERS[kind]

    def read_cell(cell: Any) -> Any:
        if isinstance(cell, str):
            cell = cell.strip()
            if not cell:
                return None
            if cell in ERRORS or _CALC_ERROR.fullmatch(cell):
                raise Misfit("cell-error", f"holds the error {cell}")
            if "\0" in cell:
                raise Misfit("cell-nul", "holds a character that no text may hold (code 0)")
        elif cell is None:
            return None
        elif isinstance(cell, dict):
            cell = _untagged(cast("dict[str, Any]", cell))
        return read(cell, reading)

    return read_cell


def column_reader(kind: Kind, reading: Reading) -> Callable[[Sequence[Any]], list[Any]]:
    """The same for many cells of one column: what is usual in one sweep, else one by one."""
    read, sweep = reader(kind, reading), _SWEEPS.get(kind)

    def read_cells(cells: Sequence[Any]) -> list[Any]:
        kinds = {*map(type, cells)}
        if sweep is not None and len(kinds) == 1:
            swept = sweep(cells, kinds.pop())
            if swept is not None:
                return swept
        return list(map(read, cells))

    return read_cells


def _swept_text(cells: Sequence[Any], kind: type) -> list[Any] | None:
    if kind is not str:
        return None
    stripped = list(map(str.strip, cells))
    if not ERRORS.isdisjoint(stripped):
        return None
    if any("\0" in cell or cell.startswith("Err:") for cell in stripped):
        return None
    return stripped if all(stripped) else [cell or None for cell in stripped]


def _swept_numbers(cells: Sequence[Any], kind: type) -> list[Any] | None:
    if kind is not float:
        return None
    return [int(cell) if cell.is_integer() and -_EXACT < cell < _EXACT else Decimal(repr(cell)) for cell in cells]


def _swept_whole(cells: Sequence[Any], kind: type) -> list[Any] | None:
    if kind is not float or not all(map(float.is_integer, cells)):
        return None
    return list(map(int, cells)) if min(cells) > -_EXACT and max(cells) < _EXACT else None


def _swept_dates(cells: Sequence[Any], kind: type) -> list[Any] | None:
    if kind is not dict:
        return None
    days = [cell.get("d") for cell in cells]
    return list(map(dt.date.fromisoformat, days)) if None not in days else None


def shown(cell: Any) -> str | None:
    """A cell as errors quote it."""
    if cell is None or cell == "":
        return None
    if isinstance(cell, dict):
        return str(next(iter(cast("dict[str, Any]", cell).values())))[:200]
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < _EXACT:
        cell = int(cell)
    return str(cell)[:200]


def _untagged(cell: dict[str, Any]) -> Any:
    (tag, value), *_ = cell.items()
    match tag:
        case "d":
            return dt.date.fromisoformat(value)
        case "t":
            return dt.datetime.fromisoformat(value)
        case "h":
            return dt.time.fromisoformat(value)
        case "s":
            return dt.timedelta(seconds=value)
        case "e":
            known = str(value).startswith("#")
            raise Misfit("cell-error", f"holds the error {value}" if known else f"holds {value}")
        case _:
            raise Misfit("cell-kind", f"holds something of an unknown kind ({value})")


def _text(cell: Any, _: Reading) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        # A telephone number or a code that was typed as a number: 5551234, not 5551234.0, and never 1e+16.
        return str(int(cell)) if cell.is_integer() and abs(cell) < _EXACT else format(Decimal(repr(cell)), "f")
    if isinstance(cell, dt.datetime):
        return cell.isoformat(sep=" ")
    return str(cell)


def _number(cell: Any, reading: Reading) -> Decimal | int:
    if isinstance(cell, (bool, dt.date, dt.time, dt.timedelta)):
        raise Misfit("not-a-number", "is not a number")
    if isinstance(cell, float):
        return int(cell) if cell.is_integer() and abs(cell) < _EXACT else Decimal(repr(cell))
    if isinstance(cell, int):
        return cell
    number = _typed_number(str(cell))
    if not reading.exact and Decimal(repr(float(number))) != number:
        raise Misfit("too-many-digits", f"has more digits than this database keeps exactly: {_FLOAT_DIGITS} may be")
    return number


def _typed_number(text: str) -> Decimal:
    plain = _MONEY.sub("", text)
    negative = plain.startswith("(") and plain.endswith(")")
    plain = plain.strip("()") if negative else plain
    percent = plain.endswith("%")
    plain = _pointed(plain.removesuffix("%"), text)
    try:
        number = Decimal(plain)
    except InvalidOperation:
        raise Misfit("not-a-number", "is not a number") from None
    if not number.is_finite():
        raise Misfit("not-a-number", "is not a number")
    if len(number.as_tuple().digits) > _LONGEST or abs(number.adjusted()) > _LONGEST:
        raise Misfit("too-many-digits", f"has more than {_LONGEST} digits")
    number = number / 100 if percent else number
    return -number if negative else number


def _pointed(plain: str, text: str) -> str:
    """With a point before the fraction and nothing between thousands; Misfit where both readings are possible."""
    comma, point = plain.rfind(","), plain.rfind(".")
    if comma < 0:
        return plain.replace(".", "") if plain.count(".") > 1 else plain
    if point > comma or (plain.count(",") > 1 and point < 0):
        return plain.replace(",", "")
    if point >= 0 or len(plain) - comma - 1 != 3:
        return plain.replace(".", "").replace(",", ".")
    if plain.lstrip("+-").startswith("0,"):
        return plain.replace(",", ".")
    raise Misfit(
        "ambiguous-number", f"can be read in two ways: write {text.replace(',', '')} or {text.replace(',', '.')}"
    )


def _whole(cell: Any, reading: Reading) -> int:
    number = _number(cell, reading._replace(exact=True))  # whole numbers are kept as such
    whole = int(number)
    if number != whole:
        raise Misfit("not-whole", "is not a whole number")
    if abs(whole) > _LARGEST:
        raise Misfit("too-large", "is too large")
    return whole


def _instant(cell: Any, reading: Reading) -> dt.datetime:
    if isinstance(cell, dt.datetime):
        return cell
    if isinstance(cell, dt.date):
        return dt.datetime(cell.year, cell.month, cell.day)  # noqa: DTZ001  # a sheet has no zone
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        if not 1 <= cell < _LAST_SERIAL:
            raise Misfit("not-a-date", "is not a date")
        if reading.epoch_1904:
            return _EPOCH_1904 + dt.timedelta(days=cell)
        if int(cell) == _NO_DAY:
            raise Misfit("not-a-date", "is no day of the calendar")
        return _EPOCH_1900 + dt.timedelta(days=cell + (cell < _NO_DAY))
    if isinstance(cell, str):
        return _typed_date(cell, reading.dates)
    raise Misfit("not-a-date", "is not a date")


def _date(cell: Any, reading: Reading) -> dt.date:
    if type(cell) is dt.date:
        return cell
    return _instant(cell, reading).date()


def _typed_date(text: str, order: DateOrder) -> dt.datetime:
    found = _DATES.fullmatch(text)
    if found is None:
        raise Misfit("not-a-date", "is not a date: write it as 2026-12-31")
    first, mark, second, third = int(found[1]), found[2], int(found[3]), int(found[4])
    clock = [int(part) for part in found.groups()[4:] if part is not None]
    if len(found[1]) == 4:
        year, month, day = first, second, third
    elif len(found[4]) == 4:
        year = third
        day, month = _day_and_month(first, second, mark, order)
    else:
        raise Misfit("not-a-date", "has a year of two digits: write it as 2026-12-31")
    try:
        return dt.datetime.combine(dt.date(year, month, day), _clock(clock))
    except ValueError:
        raise Misfit("not-a-date", "is no day of the calendar") from None


def _clock(parts: list[int]) -> dt.time:
    hour, minute, second, *_ = [*parts, 0, 0, 0]
    return dt.time(hour, minute, second)


def _day_and_month(first: int, second: int, mark: str, order: DateOrder) -> tuple[int, int]:
    if mark == "." or first > 12 or first == second:
        return first, second
    if second > 12:
        return second, first
    if order is DateOrder.UNSAID:
        raise Misfit(
            "ambiguous-date", "can be read in two ways: say which comes first, day or month, or write 2026-12-31"
        )
    return (first, second) if order is DateOrder.DAY_FIRST else (second, first)


def _flag(cell: Any, _: Reading) -> bool:
    word = _text(cell, _).lower()
    if word in _YES or word in _NO:
        return word in _YES
    raise Misfit("not-yes-or-no", "is neither yes nor no")


_READERS: dict[Kind, Callable[[Any, Reading], Any]] = {
    Kind.TEXT: _text,
    Kind.WHOLE: _whole,
    Kind.NUMBER: _number,
    Kind.DATE: _date,
    Kind.INSTANT: _instant,
    Kind.FLAG: _flag,
}
_SWEEPS: dict[Kind, Callable[[Sequence[Any], type], list[Any] | None]] = {
    Kind.TEXT: _swept_text,
    Kind.NUMBER: _swept_numbers,
    Kind.WHOLE: _swept_whole,
    Kind.DATE: _swept_dates,
}
"""how many cells of one Python type are read at once; None where there is something unusual among them"""
