"""Scanning: every part of a workbook is unpacked and counted before anything parses it: what it claims is no proof."""

from __future__ import annotations

import re
import stat
import zipfile
from typing import IO, TYPE_CHECKING, BinaryIO

from windlass.apps.imports.reading.found import Scan, check_reach, note_fault
from windlass.apps.imports.reading.opendocument import look_through
from windlass.apps.limited.refused import FileRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.apps.imports.reading.limits import Limits

CHUNK = 1024 * 1024
ZIP, OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_ENCRYPTED = 0x1
_LOCAL_HEADER = 30
_UNIX = 3
_DECLARATIONS = tuple(
    word.encode(encoding) for word in ("<!DOCTYPE", "<!ENTITY") for encoding in ("utf-8", "utf-16-le", "utf-16-be")
)
_COLUMN = re.compile(rb"""[\s]r=["']([A-Za-z]{1,3})[0-9]""")
_ROW = re.compile(rb"""[\s]r=["'][A-Za-z]{0,3}([0-9]{1,10})["']""")
# As all spreadsheets write it: a pattern that begins with fixed letters is searched for several times as fast.
_USUAL_COLUMN = re.compile(rb' r="([A-Za-z]{1,3})[0-9]')
_USUAL_ROW = re.compile(rb' r="([0-9]{1,10})"')
_UNUSUAL = (b"\tr=", b"\nr=", b"\rr=", b" r='")
_UNIQUE = re.compile(rb"""uniqueCount=["']([0-9]{1,20})["']""")
_CELL = re.compile(rb"<c\b([^>]*)>(.*?)</c>", re.DOTALL)
_AT = re.compile(rb"""\br=["']([A-Za-z]{1,3})([0-9]{1,7})["']""")
_VALUE = re.compile(rb"<v\b[^>]*>([^<]*)</v>")
_INLINE = re.compile(rb"<is\b")
_MERGED = re.compile(
    rb"""<(?:\w+:)?mergeCell\b[^>]*\bref=["'][A-Za-z]{1,3}([0-9]{1,7}):[A-Za-z]{1,3}([0-9]{1,7})["']"""
)
_SHEETS = re.compile(r"xl/[a-z]{0,10}sheets/[^/]+\.xml")
"""where sheets are kept: what is elsewhere is scanned as no sheet, and read as none"""


def scan(file: BinaryIO, limits: Limits) -> Scan:
    """Look through a workbook (XLSX or ODS); FileRefused says what is wrong with it."""
    start = file.read(4)
    file.seek(0)
    if start[:4] == OLE:
        raise FileRefused("it is encrypted, or a workbook of the old kind (.xls): save it as .xlsx without a password")
    if start != ZIP:
        raise FileRefused("it is no workbook: its content is not that of an .xlsx or .ods file")
    try:
        with zipfile.ZipFile(file) as archive:
            found = _looked_through(archive, limits)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError, OSError, RuntimeError) as error:
        raise FileRefused(f"it is damaged: {str(error)[:100]}") from None
    file.seek(0)
    return found


def _looked_through(archive: zipfile.ZipFile, limits: Limits) -> Scan:
    entries = archive.infolist()
    _check_entries(entries, limits)
    found, total = Scan(), 0
    for entry in entries:
        with archive.open(entry) as part:
            total += _scan_part(entry, part, found, limits)
        if total > limits.total:
            raise FileRefused(f"unpacked it has more than {limits.total:,} bytes: split it into several files")
    names = {entry.filename for entry in entries}
    if "xl/workbook.xml" in names:
        _sheets(archive, names, found)
    elif "content.xml" in names:
        found.is_xlsx = False
        with archive.open("content.xml") as part:
            look_through(part, found, limits)
    else:
        raise FileRefused("it is no workbook: it has neither xl/workbook.xml nor content.xml")
    return found


def _check_entries(entries: list[zipfile.ZipInfo], limits: Limits) -> None:
    if len(entries) > limits.entries:
        raise FileRefused(f"it has {len(entries):,} parts: a workbook may have {limits.entries:,}")
    seen: set[str] = set()
    end = 0
    for entry in sorted(entries, key=lambda one: one.header_offset):
        name = entry.filename
        if name.startswith(("/", "\\")) or "\\" in name or ":" in name or ".." in name.split("/"):
            raise FileRefused("a part of it has a path that leads out of it")
        if name.casefold() in seen:
            raise FileRefused("it has two parts of one name")
        seen.add(name.casefold())
        if entry.create_system == _UNIX and stat.S_ISLNK(entry.external_attr >> 16):
            raise FileRefused("a part of it is a link")
        if entry.flag_bits & _ENCRYPTED:
            raise FileRefused("it is encrypted: save it without a password")
        if entry.header_offset < end:
            raise FileRefused("parts of it lie on top of each other")
        end = entry.header_offset + _LOCAL_HEADER + entry.compress_size
        _check_size(entry, entry.file_size, limits)


def _check_size(entry: zipfile.ZipInfo, size: int, limits: Limits) -> None:
    if size > limits.part:
        raise FileRefused(f"a part of it has more than {limits.part:,} bytes: split it into several files")
    if size > limits.floor and size > limits.ratio * max(entry.compress_size, 1):
        raise FileRefused(f"a part of it is packed more than {limits.ratio}-fold: that is no ordinary workbook")


def _scan_part(entry: zipfile.ZipInfo, part: IO[bytes], found: Scan, limits: Limits) -> int:
    name = entry.filename
    plain = name.casefold()  # readers find parts in any case
    is_text = plain.endswith((".xml", ".rels"))
    is_sheet = _SHEETS.fullmatch(plain) is not None
    is_strings = plain.endswith("sharedstrings.xml")
    size = strings = 0
    for first, kept, chunk in _chunks(part):
        size += len(chunk) - kept
        _check_size(entry, size, limits)
        if first and chunk.startswith(ZIP):
            raise FileRefused("it has an archive inside")
        if not is_text:
            continue
        if any(word in chunk for word in _DECLARATIONS):
            raise FileRefused("it declares entities or a document type, which no spreadsheet needs")
        if is_strings:
            strings += chunk.count(b"<si", kept) + chunk.count(b":si", kept)
            _check_strings(chunk if first else b"", strings, entry.file_size, limits)
        if first and plain == "xl/workbook.xml":
            found.epoch_1904 = re.search(rb"""date1904=["'](1|true)["']""", chunk) is not None
        if is_sheet:
            _scan_sheet(name, chunk, found, limits)
    return size


def _chunks(part: IO[bytes]) -> Iterator[tuple[bool, int, bytes]]:
    """Pieces that begin at a cell or a tag; of each how many bytes of it were seen before."""
    rest, first = b"", True
    while data := part.read(CHUNK):
        chunk = rest + data
        yield first, len(rest), chunk
        cut = max(chunk.rfind(b"<c "), chunk.rfind(b"<!"), chunk.rfind(b"<row"))
        rest = chunk[cut:] if cut > 0 and len(chunk) - cut < CHUNK else chunk[-64:]
        first = False


def _check_strings(start: bytes, found: int, size: int, limits: Limits) -> None:
    told = _UNIQUE.search(start[:4096])
    if told is not None and int(told[1]) > size:
        raise FileRefused(f"it claims to have {int(told[1]):,} different texts in {size:,} bytes")
    if found > limits.strings:
        raise FileRefused(f"it has more than {limits.strings:,} different texts: split it into several files")


def _scan_sheet(name: str, chunk: bytes, found: Scan, limits: Limits) -> None:
    rows, columns = _usual_corner(chunk, limits) or _corner(chunk)
    check_reach(found, name, rows, columns, limits)
    if b'"e"' in chunk or b"'e'" in chunk or b"<f" in chunk:
        _note_faults(found, name, chunk)
    if b"mergeCell " in chunk:
        for top, bottom in _MERGED.findall(chunk):
            found.note_merged(name, int(top), int(bottom))


def _corner(chunk: bytes) -> tuple[int, int]:
    """The last row and the last column that anything names."""
    rows = max(map(int, set(_ROW.findall(chunk))), default=0)
    return rows, max(map(_column, set(_COLUMN.findall(chunk))), default=0)


def _usual_corner(chunk: bytes, limits: Limits) -> tuple[int, int] | None:
    """The same by the rows alone, where no cell can lie so far behind them that it matters; else None."""
    if any(mark in chunk for mark in _UNUSUAL):
        return None
    rows = max(map(int, _USUAL_ROW.findall(chunk)), default=0)
    columns = max(map(_column, set(_USUAL_COLUMN.findall(chunk))), default=0)
    digits = len(str(rows))
    if 10**digits * columns > limits.cells or re.search(rb' r="[A-Za-z]{1,3}[0-9]{%d}' % (digits + 1), chunk):
        return None
    return rows, columns


def _note_faults(found: Scan, name: str, chunk: bytes) -> None:
    for cell in _CELL.finditer(chunk):
        head, body = cell[1], cell[2]
        if head.endswith(b"/"):
            continue
        value = _VALUE.search(body)
        is_error = b't="e"' in head or b"t='e'" in head
        if not is_error and (b"<f" not in body or (value is not None and value[1]) or _INLINE.search(body)):
            continue
        if not is_error and value is not None and (b't="str"' in head or b"t='str'" in head):
            continue  # a formula whose text is empty
        at = _AT.search(head)
        if at is not None:
            text = value[1].decode("ascii", "replace")[:20] if is_error and value else ""
            told = text or ("#ERROR" if is_error else "a formula that was not calculated")
            note_fault(found, name, (int(at[2]), _column(at[1])), told)


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - 64
    return number


def _sheets(archive: zipfile.ZipFile, names: set[str], found: Scan) -> None:
    """Which part is which sheet: by the workbook's list and its relations."""
    known = {name.casefold(): name for name in names}
    book = archive.read("xl/workbook.xml")
    rels = archive.read("xl/_rels/workbook.xml.rels") if "xl/_rels/workbook.xml.rels" in names else b""
    targets: dict[bytes, bytes] = {}
    for relation in re.findall(rb"<(?:\w+:)?Relationship\b([^>]*)>", rels):
        marks = dict(re.findall(rb"""(\w+)=["']([^"']*)["']""", relation))
        targets[marks.get(b"Id", b"")] = marks.get(b"Target", b"")
    for sheet in re.findall(rb"<(?:\w+:)?sheet\b([^>]*)>", book):
        marks = dict(re.findall(rb"""([\w:]+)=["']([^"']*)["']""", sheet))
        target = next((targets.get(value, b"") for key, value in marks.items() if key.endswith(b":id")), b"")
        path = target.decode("utf-8", "replace").lstrip("/")
        path = path if path.startswith("xl/") else f"xl/{path}"
        if not _SHEETS.fullmatch(path.casefold()):
            raise FileRefused("a sheet of it is kept where no sheet may be")
        found.parts[_plain(marks.get(b"name", b""))] = known.get(path.casefold(), path)


def _plain(name: bytes) -> str:
    text = name.decode("utf-8", "replace")
    for entity, letter in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&")):
        text = text.replace(entity, letter)
    return text
