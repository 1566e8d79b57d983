"""Files that can be imported: which kinds there are, and those in the folder, by their names."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from windlass import SettingsError
from windlass.apps.uploads.kept import NotThere
from windlass.apps.uploads.names import Accepted

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_WORKBOOK = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""the second is that of an encrypted one, of which its reader says so"""
SPREADSHEETS = Accepted(
    begins={".xlsx": _WORKBOOK, ".ods": _WORKBOOK, ".csv": (), ".tsv": (), ".txt": ()},
    media=frozenset(
        {
            XLSX,
            "application/vnd.oasis.opendocument.spreadsheet",
            "application/octet-stream",
            "application/vnd.ms-excel",  # what browsers on Windows call a CSV file
            "text/csv",
            "text/plain",
            "text/tab-separated-values",
        }
    ),
    what="a spreadsheet",
)


def check_filename(name: str) -> str:
    """The name of a spreadsheet without any path; SettingsError says what is wrong with it."""
    return SPREADSHEETS.check_name(name)


class Folder:
    """Files that are there, by name. Nothing outside is opened, whatever links there are."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self, filename: str) -> BinaryIO:
        """The file, for reading."""
        name = check_filename(filename)
        try:
            folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise SettingsError(f"the folder of imports cannot be opened: {error.strerror}") from None
        try:
            found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except OSError:
            raise NotThere(f"there is no file {name!r} to be imported") from None
        finally:
            os.close(folder)
        file = os.fdopen(found, "rb")
        if not stat.S_ISREG(os.fstat(found).st_mode):
            file.close()
            raise NotThere(f"there is no file {name!r} to be imported")
        return file

    def names(self) -> list[str]:
        """What could be imported."""
        with contextlib.suppress(OSError):
            return sorted(
                one.name for one in self._path.iterdir() if SPREADSHEETS.suffix(one.name) is not None and one.is_file()
            )
        return []
