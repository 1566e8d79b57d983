"""Settings of files: `[files]` in windlass.toml, and over it WINDLASS_FILES_…."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MIB = 1024 * 1024


class FilesSettings(BaseModel):
    """What can be set from outside."""

    model_config = ConfigDict(extra="forbid")

    blobs: str = "blobs"
    """where contents are: a folder that web processes and workers share, or s3://bucket/prefix?endpoint=…"""
    database: str | None = None
    """where records are; the job store's own database if none is named"""
    root: Path | None = None
    """below it each project has the folder that its diskPath is resolved in; without it no diskPath is taken"""
    queue: str = "files"
    sequential: bool = False
    """one write at a time over all files, instead of one for each file"""
    retries: Annotated[int, Field(ge=0, le=100)] = 3
    """how often a write that fails is tried again"""
    backoff: Annotated[float, Field(gt=0, le=3600)] = 1.0
    """seconds before the first of them; each further one doubles it"""
    lock_timeout: Annotated[float, Field(ge=0.1, le=3600)] = 5.0
    """seconds after which the lock of a file is free whose worker is gone; renewed while the handler lives. A file on
    disk that another process holds is waited for as long, before the write is put off"""
    patience: Annotated[float, Field(ge=0, le=86_400)] = 60.0
    """seconds for which a write waits for an earlier one that is tried again; then it goes first"""
    timeout: Annotated[int, Field(ge=1, le=86_400)] = 300
    """seconds that one write may take"""
    largest: Annotated[int, Field(ge=1, le=1024 * MIB)] = 10 * MIB
    """bytes of a file"""
    inline: Annotated[int, Field(ge=0, le=100_000)] = 16 * 1024
    """bytes of content that a job holds itself; larger content waits in the blob store"""
    waiting: Annotated[int, Field(ge=1, le=10_000)] = 1000
    """writes of one file that may wait"""
    versions: Annotated[int, Field(ge=1, le=1000)] = 20
    """versions of a file that are kept"""
    project_bytes: Annotated[int, Field(ge=1)] = 1024 * MIB
    """bytes of all versions of all files of a project, with what waits"""
    project_files: Annotated[int, Field(ge=1)] = 10_000
    """files of a project"""
    keep: Annotated[int, Field(ge=60, le=30 * 86_400)] = 3600
    """seconds for which content is kept that no version names"""
