"""What a file may be, and what its reader may use."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from windlass.apps.limited.bounds import MIB, Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one file and of the process that reads it."""

    entries: int = 1_000
    """parts in the archive that a workbook is"""
    part: int = 64 * MIB
    """bytes of one of them, unpacked"""
    total: int = 256 * MIB
    """bytes of all, unpacked"""
    ratio: int = 200
    """how much smaller the packed form of a part may be; small parts may be packed as they like"""
    floor: int = 4 * MIB
    """bytes below which the ratio says nothing"""
    cells: int = 20_000_000
    """rows × columns of a sheet"""
    columns: int = 500
    strings: int = 3_000_000
    """different texts of a workbook"""
    name: int = 1_000
    """characters of a column's name"""
    names: int = 20_000
    """characters of the names of all columns"""
    at_once: int = 6_000_000
    """rows × columns up to which a sheet is read in one piece; larger ones are read row by row, in less memory"""
    memory: int = 1_536 * MIB
    """bytes of address space"""
    cpu: int = 120
    """seconds of processor time"""

    def as_dict(self) -> dict[str, int]:
        """For the child."""
        return asdict(self)

    @staticmethod
    def of(given: dict[str, Any]) -> Limits:
        """The same from there."""
        return Limits(**given)

    @property
    def bounds(self) -> Bounds:
        """Those that the kernel keeps."""
        return Bounds(memory=self.memory, cpu=self.cpu)
