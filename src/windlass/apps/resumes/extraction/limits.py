"""What a document may be, and what its reader may use."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one document and of the process that reads it."""

    largest: int = 10 * MIB
    """bytes of the file"""
    pages: int = 30
    """more than a resume has: later pages are not read, which is noted"""
    characters: int = 200_000
    """of all pages; what follows is not read, which is noted"""
    entries: int = 1_000
    """parts in the archive that a DOCX is"""
    part: int = 32 * MIB
    """bytes of one of them, unpacked"""
    total: int = 64 * MIB
    """bytes of all, unpacked"""
    ratio: int = 200
    """how much smaller the packed form of a part may be; small parts may be packed as they like"""
    floor: int = 4 * MIB
    """bytes below which the ratio says nothing"""
    recognised: int = 5
    """pages that are read by Tesseract"""
    memory: int = 1_024 * MIB
    """bytes of address space"""
    seconds: float = 20.0
    """for one document; with Tesseract as many again for each page"""

    def as_json(self) -> dict[str, Any]:
        """For the command line of the child."""
        return asdict(self)

    @staticmethod
    def of(given: dict[str, Any]) -> Limits:
        """The same from there."""
        return Limits(**given)
