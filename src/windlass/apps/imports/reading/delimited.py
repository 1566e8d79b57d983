"""Delimited text: encoding and separator are found out, and told."""

from __future__ import annotations

import codecs
import csv
import io
from typing import TYPE_CHECKING, Any, BinaryIO

from windlass.apps.imports.reading.refusal import FileRefused
from windlass.apps.imports.reading.sources import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.apps.imports.reading.limits import Limits

_LOOKED_AT = 256 * 1024
_SEPARATORS = ",;\t|"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Delimited:
    """The rows of a text file."""

    def __init__(self, file: BinaryIO, limits: Limits) -> None:
        head = file.read(_LOOKED_AT)
        rest = file.read()
        encoding = _encoding(head + rest, head)
        text = (head + rest).decode(encoding, "replace")
        if "\0" in text:
            raise FileRefused("it is no text: it has zero bytes")
        self._text, self._limits = text, limits
        separator = _separator(text[:_LOOKED_AT])
        self._separator = separator
        self.shape = Shape(kind="csv", encoding=encoding.removesuffix("-sig"), separator=separator)

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        """Each row; its number is that of the line that it ends in a spreadsheet."""
        reader = csv.reader(io.StringIO(self._text, newline=""), delimiter=self._separator)
        try:
            for number, cells in enumerate(reader, 1):
                if len(cells) > self._limits.columns:
                    raise FileRefused(f"row {number:,} has {len(cells):,} columns: {self._limits.columns:,} may be")
                if any(cells):
                    yield number, list(cells)
        except csv.Error as error:
            raise FileRefused(f"row {reader.line_num:,} cannot be read: {error}") from None

    def merged(self, row: int) -> bool:
        """Text merges nothing."""
        return False


def _encoding(data: bytes, head: bytes) -> str:
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        from charset_normalizer import from_bytes

        best = from_bytes(head[:65536]).best()
        return "cp1252" if best is None else best.encoding
    return "utf-8"


def _separator(text: str) -> str:
    """The one that cuts the first lines into the most cells, each alike."""
    lines = [line for line in text.splitlines()[:20] if line.strip()][:-1] or text.splitlines()[:1]
    best, most = ",", 1
    for separator in _SEPARATORS:
        widths = [len(row) for row in csv.reader(lines, delimiter=separator)]
        usual = max(set(widths), key=widths.count, default=1)
        if usual > most and widths.count(usual) * 2 > len(widths):
            best, most = separator, usual
    return best
