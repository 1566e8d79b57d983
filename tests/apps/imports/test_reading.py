"""Reading files: ordinary ones in every form, and hostile ones, which are refused with a reason and little memory."""

from __future__ import annotations

import asyncio
import datetime as dt
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]  # it has no types
import psutil
import pytest

from tests.apps.imports.workbooks import (
    CELL,
    CUSTOMERS,
    ROW,
    Formula,
    customers,
    opendocument,
    part,
    repacked,
    workbook,
)
from tests.support.until import until
from windlass.apps.imports.child import Child, Opened
from windlass.apps.imports.reading.limits import Limits
from windlass.apps.limited.bounds import MIB
from windlass.apps.limited.refused import FileRefused

SHEET = "xl/worksheets/sheet1.xml"


async def read(
    path: Path, *, sheet: str | None = None, limits: Limits | None = None, **how: int
) -> tuple[Opened, list[list[Any]]]:
    with path.open("rb") as file:
        async with Child(file, path.name, sheet=sheet, limits=limits or Limits(), **how) as child:
            opened = await child.opened()
            return opened, [row async for batch in child.batches(100) for row in batch]


async def refusal(path: Path, *, limits: Limits | None = None, sheet: str | None = None) -> str:
    with pytest.raises(FileRefused) as caught:
        await read(path, limits=limits, sheet=sheet)
    return str(caught.value)


async def test_rows_have_the_numbers_that_the_sheet_shows(tmp_path: Path) -> None:
    rows: list[Sequence[Any]] = [CUSTOMERS, ("a@b.co", "Ann"), (), ("c@d.co", "Bob")]
    for top, left in ((0, 0), (2, 1)):
        opened, found = await read(workbook(tmp_path / f"{top}.xlsx", rows, top=top, left=left))
        assert opened.header_row == top + 1
        assert opened.header[left:] == list(CUSTOMERS)
        assert [(row[0], row[left + 1]) for row in found] == [(top + 2, "a@b.co"), (top + 4, "c@d.co")]


async def test_what_cells_hold(tmp_path: Path) -> None:
    cells = (
        "00123",
        5.0,
        True,
        dt.date(2026, 1, 2),
        dt.datetime.fromisoformat("2026-01-02T03:04:05"),
        Formula("=1+1", 2),
    )
    _, [row] = await read(workbook(tmp_path / "a.xlsx", [tuple("abcdef"), cells]))
    assert row[1:3] == ["00123", 5.0]
    assert (row[3], row[6]) == (True, 2.0)
    assert [next(iter(cell.values()))[:10] for cell in row[4:6]] == ["2026-01-02", "2026-01-02"]


async def test_errors_and_formulas_that_were_never_calculated_are_marked(tmp_path: Path) -> None:
    cells = (Formula("=1/0", "#DIV/0!"), Formula("=x()", "#NAME?"), Formula('=""', ""), 1)
    _, [row] = await read(workbook(tmp_path / "a.xlsx", [tuple("abcd"), cells]))
    assert row[1:3] == [{"e": "#DIV/0!"}, {"e": "#NAME?"}]
    book: Any = openpyxl.Workbook()  # writes formulas without their values
    book.active.append(["a", "b"])
    book.active.append(["=1+1", 7])
    book.save(tmp_path / "b.xlsx")
    _, [row] = await read(tmp_path / "b.xlsx")
    assert row[1:] == [{"e": "a formula that was not calculated"}, 7.0]


async def test_the_sheet_is_chosen_by_its_name(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [CUSTOMERS, *customers(2)], sheet="AP <Data> & more", more=["Other"])
    opened, found = await read(path, sheet="AP <Data> & more")
    assert (opened.sheets, len(found)) == (["AP <Data> & more", "Other"], 2)
    assert "it has no sheet 'Sum'" in await refusal(path, sheet="Sum")
    assert await refusal(path, sheet="Other") == "it has no rows"


async def test_both_epochs(tmp_path: Path) -> None:
    for old in (False, True):
        path = workbook(tmp_path / f"{old}.xlsx", [["a"], [dt.date(2026, 1, 2)]], options={"date_1904": old})
        opened, [row] = await read(path)
        assert (opened.epoch_1904, row[1]) == (old, {"d": "2026-01-02"})


async def test_a_large_sheet_is_read_row_by_row_alike(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [CUSTOMERS, *customers(50), (Formula("=1/0", "#DIV/0!"), "x")], top=1, left=1)
    whole = await read(path)
    streamed = await read(path, limits=Limits(at_once=1))
    assert streamed[0].header[-4:] == whole[0].header[-4:]
    assert [(row[0], row[-4:]) for row in streamed[1][:50]] == [(row[0], row[-4:]) for row in whole[1][:50]]


async def test_reading_goes_on_behind_a_row_and_stops_after_some(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [CUSTOMERS, *customers(1200)])
    _, found = await read(path, after=1101)
    assert [found[0][0], len(found)] == [1102, 100]
    _, found = await read(path, most=3)
    assert [row[0] for row in found] == [2, 3, 4]


@pytest.mark.parametrize(
    ("text", "encoding", "separator"),
    [
        ("Email,Name\na@b.co,Änn\n", "utf-8", ","),
        ("\ufeffEmail;Name\na@b.co;Änn\n", "utf-8", ";"),
        ("Email\tName\na@b.co\tÄnn\n", "utf-8", "\t"),
        ('Email,Name\na@b.co,"Änn\nand, ""Bob"""\n', "utf-8", ","),
    ],
)
async def test_text_in_its_encoding_and_with_its_separator(
    text: str, encoding: str, separator: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode())
    opened, [row] = await read(tmp_path / "a.csv")
    assert (opened.encoding, opened.separator, opened.header) == (encoding, separator, ["Email", "Name"])
    assert row[:2] == [2, "a@b.co"]
    assert row[2].startswith("Änn")


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("cp1252", "Jürgen Müller – 5 €"),
        ("utf-16", "Jürgen Müller"),
        ("cp1251", "Юрий Иванович Смирнов из Москвы"),
        ("cp1250", "Łukasz Wójcik, ul. Świętokrzyska"),
    ],
)
async def test_text_that_is_not_utf_8(encoding: str, name: str, tmp_path: Path) -> None:
    text = "Email;Name\n" + "".join(f"c{n}@b.co;{name}\n" for n in range(50))
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    opened, rows = await read(tmp_path / "a.csv")
    assert (rows[0][2], opened.separator) == (name, ";"), opened.encoding


async def test_ods(tmp_path: Path) -> None:
    """As LibreOffice writes it: what is repeated is written once, and errors are kept beside an empty value."""
    again, value = 'table:number-columns-repeated="2"', "<table:table-cell {}><text:p>{}</text:p></table:table-cell>"
    error = 'table:formula="of:=1/0" office:value-type="string" office:string-value="" calcext:value-type="error"'
    blank = '<table:table-cell table:number-columns-repeated="16384"/>'
    rows = [
        ROW.format('table:number-rows-repeated="2"', blank),
        ROW.format("", "".join(CELL.format("", name) for name in ("Email", "When", "Sum", "X"))),
        ROW.format(
            'table:number-rows-repeated="2"',
            CELL.format("", "a@b.co")
            + value.format('office:value-type="date" office:date-value="2026-01-02"', "2 Jan")
            + value.format('office:value-type="float" office:value="5"', "5"),
        ),
        ROW.format("", CELL.format(again, "c@d.co") + value.format(error, "#DIV/0!") + value.format(error, "Err:502")),
        ROW.format("", CELL.format("", "e@f.co") + f'<table:table-cell table:formula="of:=A1" {again}/>'),
        ROW.format('table:number-rows-repeated="1048000"', "<table:table-cell/>"),
    ]
    opened, found = await read(opendocument(tmp_path / "a.ods", "".join(rows)))
    assert (opened.kind, opened.sheet, opened.header_row) == ("ods", "S", 3)
    assert opened.header == ["Email", "When", "Sum", "X"]
    day, never = {"d": "2026-01-02"}, {"e": "a formula that was not calculated"}
    assert found == [
        [4, "a@b.co", day, 5.0, ""],
        [5, "a@b.co", day, 5.0, ""],
        [6, "c@d.co", "c@d.co", {"e": "#DIV/0!"}, {"e": "Err:502"}],
        [7, "e@f.co", never, never, ""],
    ]
    merged = ROW.format("", CELL.format('table:number-columns-spanned="2"', "Both") + "<table:covered-table-cell/>")
    assert "merged" in await refusal(opendocument(tmp_path / "b.ods", merged + rows[3]))


async def test_merged_headers_are_refused_with_a_reason(tmp_path: Path) -> None:
    import xlsxwriter  # type: ignore[import-untyped]  # it has no types

    opened: Any = xlsxwriter.Workbook(str(tmp_path / "a.xlsx"))
    with opened as book:
        sheet = book.add_worksheet()
        sheet.merge_range(0, 0, 0, 2, "Customer")
        sheet.write_row(1, 0, ["a", "b"])
    for limits in (Limits(), Limits(at_once=1)):
        assert "cells of its header (row 1) are merged" in await refusal(tmp_path / "a.xlsx", limits=limits)


async def test_a_column_whose_name_is_a_number_is_called_as_it_is_shown(tmp_path: Path) -> None:
    for limits in (Limits(), Limits(at_once=1)):
        opened, _ = await read(workbook(tmp_path / "a.xlsx", [["Item", 2026, 1.5], ["a", 1, 2]]), limits=limits)
        assert opened.header == ["Item", "2026", "1.5"]


# Hostile files.


def far_cell(path: Path) -> Path:
    """Cells A1 and XFD1048576: a reader that makes a grid of them asks for 512 GB."""
    workbook(path, [["a"], ["b"]])
    sheet = part(path, SHEET).replace(b'r="A2"', b'r="XFD1048576"')
    return repacked(path, {SHEET: sheet})


def many_strings(path: Path) -> Path:
    workbook(path, [["a"], ["b"]])
    name = "xl/sharedStrings.xml"
    return repacked(path, {name: part(path, name).replace(b'uniqueCount="2"', b'uniqueCount="4000000000"')})


def bomb(path: Path) -> Path:
    workbook(path, [["a"], ["b"]])
    return repacked(path, {}, {"xl/media/zeros.bin": bytes(40 * MIB)})


def nested(path: Path) -> Path:
    inner = workbook(path.with_name("inner.xlsx"), [["a"]]).read_bytes()
    return repacked(workbook(path, [["a"], ["b"]]), {}, {"xl/embeddings/inner.bin": inner})


def entities(path: Path) -> Path:
    workbook(path, [["a"], ["b"]])
    evil = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><Relationships/>'
    return repacked(path, {"_rels/.rels": evil})


def entities_utf16(path: Path) -> Path:
    workbook(path, [["a"], ["b"]])
    evil = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x/>'
    return repacked(path, {"_rels/.rels": evil.encode("utf-16")})


def many_parts(path: Path) -> Path:
    return repacked(workbook(path, [["a"]]), {}, {f"x/{n}": b"" for n in range(1001)})


def outside(path: Path) -> Path:
    return repacked(workbook(path, [["a"]]), {}, {"../../a.xml": b"x"})


def lying_size(path: Path) -> Path:
    """The archive's list says 10 bytes, the part has 80 MB."""
    repacked(workbook(path, [["a"]]), {}, {"xl/media/z.bin": bytes(80 * MIB)})
    path.write_bytes(path.read_bytes().replace((80 * MIB).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    return path


def encrypted(path: Path) -> Path:
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000))
    return path


def not_zip(path: Path) -> Path:
    path.write_bytes(b"hello, I am a spreadsheet")
    return path


def empty(path: Path) -> Path:
    path.write_bytes(b"")
    return path


def truncated(path: Path) -> Path:
    workbook(path, [CUSTOMERS, *customers(100)])
    path.write_bytes(path.read_bytes()[:-200])
    return path


def no_workbook(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    return path


def broken_sheet(path: Path) -> Path:
    return repacked(workbook(path, [["a"], ["b"]]), {SHEET: b"<worksheet><sheetData><row r='1'><c r='A1'"})


HOSTILE: list[tuple[Callable[[Path], Path], str]] = [
    (far_cell, "reaches to row 1,048,576 and column 16,384"),
    (many_strings, "claims to have 4,000,000,000 different texts"),
    (bomb, "packed more than 200-fold"),
    (nested, "has an archive inside"),
    (entities, "declares entities"),
    (entities_utf16, "declares entities"),
    (many_parts, "parts"),
    (outside, "leads out of it"),
    (lying_size, ""),
    (encrypted, "encrypted"),
    (not_zip, "no workbook"),
    (empty, "no workbook"),
    (truncated, "damaged"),
    (no_workbook, "no workbook"),
    (broken_sheet, ""),
]


@pytest.mark.parametrize(("make", "reason"), HOSTILE, ids=lambda one: getattr(one, "__name__", ""))
async def test_a_hostile_file_is_refused_with_its_reason(
    make: Callable[[Path], Path], reason: str, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    path = make(tmp_path / "a.xlsx")
    with path.open("rb") as file:
        async with Child(file, path.name, sheet=None, limits=Limits()) as child:
            most = asyncio.create_task(peak(child))
            with pytest.raises(FileRefused) as caught:
                await child.opened()
            used = await most
    assert reason in str(caught.value)
    assert used < 300, f"it took {used} MB"
    tell(f"{make.__name__}: {path.stat().st_size:,} bytes, {used} MB: {caught.value}")


async def peak(child: Child) -> int:
    """The most memory that the child has used, in MB."""
    process = psutil.Process(child.pid)
    most = 0
    while True:
        try:
            most = max(most, process.memory_info().rss)
            if process.status() == psutil.STATUS_ZOMBIE:
                return most // MIB
        except psutil.Error:
            return most // MIB
        await asyncio.sleep(0.005)  # memory is looked at by the clock


async def test_a_child_that_dies_is_a_refusal(tmp_path: Path) -> None:
    # What the scan would have refused, let through: the reader asks for 512 GB and is ended by a signal.
    blind = Limits(cells=2**40, at_once=2**40, columns=20_000)
    assert "needs more memory" in await refusal(far_cell(tmp_path / "a.xlsx"), limits=blind)


async def test_a_child_does_not_outlive_who_asked(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [CUSTOMERS, *customers(20_000)])
    with path.open("rb") as file:
        async with Child(file, path.name, sheet=None, limits=Limits()) as child:
            await child.opened()
            pid = child.pid
    await until(lambda: not psutil.pid_exists(pid), "the child to be gone")
