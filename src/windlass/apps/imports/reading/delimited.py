"""Delimited text: encoding and separator are found out, and told."""

from __future__ import annotations

import codecs
import csv
import io
import re
from typing import TYPE_CHECKING, Any, BinaryIO

from windlass.apps.imports.reading.sources import Shape
from windlass.apps.limited.refused import FileRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.apps.imports.reading.limits import Limits

_LOOKED_AT = 256 * 1024
_LONGEST = 2_000_000
"""characters of one line"""
_WITH_ACCENTS = ("cp1252", "cp1250")
_POUND_IN_WORD = re.compile(r"£[^\W\d_]")
"""the Ł of another encoding"""
_MARKS_IN_TEXT = frozenset("€£¥§°…–—‘’“”„«»ºª©®™½¼²·\xa0")
_TOLD = 20_000
"""characters of a line that are enough to see how it is separated"""
# gzip, bzip2, xz, zstd, 7z
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf")
_SEPARATORS = ",;\t|"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Delimited:
    """The rows of a text file, read line by line."""

    def __init__(self, file: BinaryIO, limits: Limits) -> None:
        head = file.read(_LOOKED_AT)
        if head.startswith(_PACKED):
            raise FileRefused("it is no text: it is packed, unpack it first")
        encoding = _encoding(file, head)
        file.seek(0)
        self._file = io.TextIOWrapper(file, encoding, errors="replace", newline="")
        self._limits = limits
        separator = _separator(self._file.read(_LOOKED_AT))
        self._file.seek(0)
        self._separator = separator
        self.shape = Shape(kind="csv", encoding=encoding.removesuffix("-sig"), separator=separator)

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        """Each row; its number is that of the line that it ends in a spreadsheet."""
        reader = csv.reader(self._lines(), delimiter=self._separator)
        try:
            for number, cells in enumerate(reader, 1):
                if len(cells) > self._limits.columns:
                    raise FileRefused(f"row {number:,} has {len(cells):,} columns: {self._limits.columns:,} may be")
                if any(cells):
                    yield number, list(cells)
        except csv.Error as error:
            raise FileRefused(f"row {reader.line_num:,} cannot be read: {error}") from None

    def _lines(self) -> Iterator[str]:
        while line := self._file.readline(_LONGEST):
            if len(line) == _LONGEST:
                raise FileRefused(f"a line of it is longer than {_LONGEST:,} characters")
            yield line

    def merged(self, row: int) -> bool:
        """Text merges nothing."""
        return False


def _encoding(file: BinaryIO, head: bytes) -> str:
    """How the file is encoded; FileRefused where it is no text."""
    found = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    try:
        _look_through(file, found or "utf-8", "replace" if found else "strict")
    except UnicodeDecodeError:
        start = head[:65536]
        # Text with a few accents, as most is: a guess by frequencies takes it for something rarer.
        found = next((one for one in _WITH_ACCENTS if _is_text(start, one)), None)
        if found is None:
            from charset_normalizer import from_bytes

            best = from_bytes(start).best()
            found = _WITH_ACCENTS[0] if best is None else best.encoding
        _look_through(file, found, "replace")
    return found or "utf-8"


def _is_text(data: bytes, encoding: str) -> bool:
    """Whether it makes letters of what is not ASCII, in text that mostly is."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return False
    plain = sum(letter.isascii() and letter.isalpha() for letter in text)
    high = [letter for letter in text if not letter.isascii()]
    usual = sum(letter.isalpha() or letter in _MARKS_IN_TEXT for letter in high) - len(_POUND_IN_WORD.findall(text))
    return len(high) * 2 <= plain and usual * 20 >= len(high) * 19


def _look_through(file: BinaryIO, encoding: str, errors: str) -> None:
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    file.seek(0)
    while part := file.read(_LOOKED_AT):
        if "\0" in decoder.decode(part):
            raise FileRefused("it is no text: it has zero bytes")
    decoder.decode(b"", final=True)


def _separator(text: str) -> str:
    """The one that cuts the first lines into the most cells, each alike."""
    first = [line[:_TOLD] for line in text.splitlines()[:20]]
    lines = [line for line in first if line.strip()][:-1] or first[:1]
    best, most = ",", (False, 1)
    for separator in _SEPARATORS:
        widths = [len(row) for row in csv.reader(lines, delimiter=separator)]
        usual = max(set(widths), key=widths.count, default=1)
        # The header has as many cells as its rows: a comma in every address is none between cells.
        found = (widths[:1] == [usual], usual)
        if usual > 1 and found > most and widths.count(usual) * 2 > len(widths):
            best, most = separator, found
    return best
