"""Settings of imports: `[imports]` in windlass.toml, and over it WINDLASS_IMPORTS_…."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from windlass.apps.imports.reading.limits import Limits
from windlass.apps.limited.bounds import MIB

_CELL = 32
"""bytes of XML that a cell takes, about"""


class ImportsSettings(BaseModel):
    """What can be set from outside."""

    model_config = ConfigDict(extra="forbid")

    folder: Path = Path("data")
    """where files are that are imported by their name"""
    uploads: Path = Path("uploads")
    """where files are put that are sent; web processes and workers must share it"""
    manifest: Path = Path("config/import-manifest.json")
    """which file is of which type"""
    database: str | None = None
    """where rows go; the job store's own database if none is named, beside Redis an SQLite file"""
    queue: str = "imports"
    batch: Annotated[int, Field(ge=1, le=5000)] = 100
    """rows that are written in one step"""
    largest: Annotated[int, Field(ge=1024, le=1024 * MIB)] = 10 * MIB
    """bytes of a file that is sent"""
    errors: Annotated[int, Field(ge=0, le=1000)] = 100
    """errors that stand in a job's result; all of them can be downloaded"""
    keep: Annotated[int, Field(ge=60, le=30 * 86_400)] = 86_400
    """seconds for which a file is kept that was sent and not imported"""
    crashes: Annotated[int, Field(ge=1, le=100_000)] = 5
    """workers that may die of one import, which goes on at the last batch each time, before it fails"""
    timeout: Annotated[int, Field(ge=10, le=86_400)] = 3600
    """seconds that one import may take"""
    memory: Annotated[int, Field(ge=256 * MIB, le=64 * 1024 * MIB)] = 1_536 * MIB
    """bytes of memory of the process that reads a file"""
    cells: Annotated[int, Field(ge=1000, le=200_000_000)] = 20_000_000
    """rows × columns of a sheet"""
    columns: Annotated[int, Field(ge=1, le=16_384)] = 500

    @property
    def limits(self) -> Limits:
        """The bounds of one file."""
        # As many cells as may be have to fit; unpacking is counted piece by piece, and takes no memory.
        part = max(Limits().part, self.cells * _CELL)
        return Limits(memory=self.memory, cells=self.cells, columns=self.columns, part=part, total=2 * part)
