"""More hostile files, which are refused or read without harm, and large ones: with the memory that each takes."""

from __future__ import annotations

import asyncio
import gzip
import random
import re
import socket
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.apps.imports.test_reading import SHEET, far_cell, peak
from tests.apps.imports.workbooks import CELL, CUSTOMERS, ROW, customers, opendocument, part, repacked, workbook
from windlass import SettingsError
from windlass.apps.imports.child import Child
from windlass.apps.imports.files import check_filename
from windlass.apps.imports.reading.limits import Limits
from windlass.apps.limited.refused import FileRefused

RELS = "xl/_rels/workbook.xml.rels"
SHARED = "xl/sharedStrings.xml"
NOISE = random.Random(7)


async def taken(path: Path, name: str | None = None, limits: Limits | None = None) -> tuple[int, list[Any], int]:
    """How many rows a file has, the last of them, and the MB that reading it took."""
    n, last = 0, []
    with path.open("rb") as file:
        async with Child(file, name or path.name, sheet=None, limits=limits or Limits()) as child:
            most = asyncio.create_task(peak(child))
            try:
                await child.opened()
                async for batch in child.batches(1000):
                    n, last = n + len(batch), batch[-1]
            except FileRefused as refusal:
                refusal.add_note(f"{await most} MB")
                raise
            return n, last, await most


def on_top(path: Path) -> Path:
    """The list says that the second part begins within the first."""
    workbook(path, [["a"], ["b"]])
    data = bytearray(path.read_bytes())
    entries = [found.start() for found in re.finditer(rb"PK\x01\x02", data)]
    first = int.from_bytes(data[entries[0] + 42 : entries[0] + 46], "little")
    data[entries[1] + 42 : entries[1] + 46] = (first + 5).to_bytes(4, "little")
    path.write_bytes(data)
    return path


def twice(path: Path) -> Path:
    repacked(workbook(path, [["a"], ["b"]]), {}, {"xl/workbook.xmm": b"<workbook/>"})
    path.write_bytes(path.read_bytes().replace(b"xl/workbook.xmm", b"xl/workbook.xml"))
    return path


def twice_in_capitals(path: Path) -> Path:
    return repacked(workbook(path, [["a"], ["b"]]), {}, {"XL/Workbook.xml": b"<workbook/>"})


def link(path: Path) -> Path:
    workbook(path, [["a"], ["b"]])
    entry = zipfile.ZipInfo("xl/media/image1.png")
    entry.create_system, entry.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(entry, "/etc/passwd")
    return path


def ten_million_strings(path: Path) -> Path:
    """Really there, and with so much noise between them that they are not packed too well."""
    workbook(path, [["a"], ["b"]])
    noise = b"".join(b"<!--%b-->" % NOISE.randbytes(4000).hex().encode() for _ in range(60))
    start, end = b'<?xml version="1.0"?><sst count="10000000">', b"</sst>"
    return repacked(path, {SHARED: start + b"<si/>" * 10_000_000 + noise + end})


def long_names(path: Path) -> Path:
    return workbook(path, [[f"{n}" + "x" * 16_384 for n in range(100)], ["b"]])


def outside_of_the_grid(path: Path) -> Path:
    workbook(path, [["a"], ["b"]])
    return repacked(path, {SHEET: part(path, SHEET).replace(b'r="A2"', b'r="XFE1048577"')})


def behind_its_row(path: Path) -> Path:
    """A cell that is far away from the row that it stands in."""
    workbook(path, [["a"] * 60, ["b"] * 60])
    return repacked(path, {SHEET: part(path, SHEET).replace(b'<c r="B2"', b'<c r="B999999"')})


def elsewhere(path: Path) -> Path:
    """A sheet with a far cell, in a part that is called no sheet."""
    far_cell(path)
    rels = part(path, RELS).replace(b"worksheets/sheet1.xml", b"media/image1.png")
    return repacked(path, {SHEET: None, RELS: rels}, {"xl/media/image1.png": part(path, SHEET)})


def in_capitals(path: Path) -> Path:
    far_cell(path)
    return repacked(path, {SHEET: None}, {"xl/WORKSHEETS/Sheet1.XML": part(path, SHEET)})


def ods_of_billions(path: Path) -> Path:
    cell = CELL.format('table:number-columns-repeated="16384"', "b")
    rows = ROW.format("", CELL.format("", "a")) + ROW.format('table:number-rows-repeated="1048575"', cell)
    return opendocument(path, rows)


def ods_of_rows(path: Path) -> Path:
    return opendocument(path, ROW.format('table:number-rows-repeated="4000000000"', CELL.format("", "b")))


def ods_of_errors(path: Path) -> Path:
    cell = '<table:table-cell table:formula="of:=1" table:number-columns-repeated="500"/>'
    return opendocument(path, ROW.format('table:number-rows-repeated="30000"', cell))


def many_names(path: Path) -> Path:
    return workbook(path, [[f"{n:03}" + "x" * 100 for n in range(300)], ["b"]])


def gzipped(path: Path) -> Path:
    path.write_bytes(gzip.compress(workbook(path, [["a"], ["b"]]).read_bytes()))
    return path


def behind_a_page(path: Path) -> Path:
    """A page for a browser, and behind it a workbook: archives are found from their end."""
    path.write_bytes(b"<html><script>alert(1)</script></html>" + workbook(path, [["a"], ["b"]]).read_bytes())
    return path


def one_line(path: Path) -> Path:
    with path.open("wb") as file:
        for _ in range(100):
            file.write(b"a" * 1_000_000)
    return path


HOSTILE: list[tuple[Callable[[Path], Path], str, str]] = [
    (on_top, "a.xlsx", "lie on top of each other"),
    (twice, "a.xlsx", "two parts of one name"),
    (twice_in_capitals, "a.xlsx", "two parts of one name"),
    (link, "a.xlsx", "a part of it is a link"),
    (ten_million_strings, "a.xlsx", "more than 3,000,000 different texts"),
    (long_names, "a.xlsx", "a cell of its header (row 1) has 16,386 characters: 1,000 may be"),
    (outside_of_the_grid, "a.xlsx", "reaches to row 1,048,577"),
    (behind_its_row, "a.xlsx", "reaches to row 999,999"),
    (elsewhere, "a.xlsx", "a sheet of it is kept where no sheet may be"),
    (in_capitals, "a.xlsx", "reaches to row 1,048,576 and column 16,384"),
    (ods_of_billions, "a.ods", "reaches to row 1,048,576 and column 16,384"),
    (ods_of_rows, "a.ods", "reaches to row 4,000,000,000"),
    (ods_of_errors, "a.ods", "more than 100,000 cells hold an error"),
    (many_names, "a.xlsx", "the names of its columns (row 1) have more than 20,000 characters together"),
    (gzipped, "a.xlsx", "no workbook"),
    (gzipped, "a.csv", "it is packed"),
    (behind_a_page, "a.xlsx", "no workbook"),
    (behind_a_page, "a.csv", "zero bytes"),
    (one_line, "a.csv", "a line of it is longer than 2,000,000 characters"),
]


@pytest.mark.parametrize(("make", "name", "reason"), HOSTILE, ids=lambda one: getattr(one, "__name__", None))
async def test_a_hostile_file_is_refused_in_little_memory(
    make: Callable[[Path], Path], name: str, reason: str, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    path = make(tmp_path / name)
    with pytest.raises(FileRefused) as caught:
        await taken(path)
    assert reason in str(caught.value)
    [note] = caught.value.__notes__
    assert int(note.removesuffix(" MB")) < 120, note
    tell(f"{make.__name__}, {name}: {path.stat().st_size:,} bytes, {note}: {caught.value}")


def test_a_workbook_with_macros_is_refused_by_its_name() -> None:
    for name in ("a.xlsm", "a.xlsx.xlsm", "a.xlsb", "a.xltm"):
        with pytest.raises(SettingsError):
            check_filename(name)


@pytest.mark.parametrize("limits", [Limits(), Limits(at_once=1)], ids=["at once", "row by row"])
async def test_links_to_other_places_are_not_followed_and_macros_not_run(limits: Limits, tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [CUSTOMERS, *customers(3)])
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.setblocking(False)
        there = f"http://127.0.0.1:{server.getsockname()[1]}/x.xlsx"
        kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
        other = f'<Relationship Id="rId99" Type="{kinds}/externalLink" Target="externalLinks/externalLink1.xml"/>'
        book = part(path, "xl/_rels/workbook.xml.rels").replace(
            b"</Relationships>", other.encode() + b"</Relationships>"
        )
        main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        outer = f'<externalLink xmlns="{main}"><externalBook xmlns:r="{kinds}" r:id="rId1"/></externalLink>'
        root = "http://schemas.openxmlformats.org/package/2006/relationships"
        out = f'<Relationship Id="rId1" Type="{kinds}/externalLinkPath" Target="{there}" TargetMode="External"/>'
        inner = f'<Relationships xmlns="{root}">{out}</Relationships>'
        more = {
            "xl/externalLinks/externalLink1.xml": outer.encode(),
            "xl/externalLinks/_rels/externalLink1.xml.rels": inner.encode(),
            "xl/vbaProject.bin": b"\xd0\xcf\x11\xe0 macros",
        }
        repacked(path, {"xl/_rels/workbook.xml.rels": book}, more)
        n, last, _ = await taken(path, limits=limits)
        assert (n, last[1]) == (3, "c3@example.org")
        with pytest.raises(BlockingIOError):
            server.accept()


def long_sheet(path: Path, rows: int) -> Path:
    """A sheet of two columns, as small as it can be written."""
    start, _, end = part(workbook(path, [["a", "b"]]), SHEET).partition(b"<sheetData>")
    head = b'<sheetData><row><c t="inlineStr"><is><t>a</t></is></c><c t="inlineStr"><is><t>b</t></is></c></row>'
    body = b"".join(b"<row><c><v>%d</v></c><c><v>%d</v></c></row>" % (n, n * 7919 % 99_991) for n in range(2, rows + 1))
    return repacked(path, {SHEET: start + head + body + end[end.index(b"</sheetData>") :]})


@pytest.mark.timeout(90)
async def test_a_sheet_of_a_million_rows_is_read(tmp_path: Path, tell: Callable[[str], None]) -> None:
    n, last, used = await taken(long_sheet(tmp_path / "a.xlsx", 1_048_576))
    assert (n, last[:2]) == (1_048_575, [1_048_576, 1_048_576.0])
    assert used < 400
    tell(f"1,048,576 rows of 2 cells: {used} MB")


async def test_row_by_row_memory_does_not_grow_with_the_sheet(tmp_path: Path, tell: Callable[[str], None]) -> None:
    n, _, used = await taken(long_sheet(tmp_path / "a.xlsx", 40_000), limits=Limits(at_once=-1))
    assert n == 39_999
    assert used < 60
    tell(f"40,000 rows, row by row: {used} MB")
