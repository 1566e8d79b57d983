"""Orders and results: what a job of an import is told, and what it says in the end."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer
from pydantic.alias_generators import to_camel

from windlass.apps.imports.cells import DateOrder  # pydantic reads it


class _Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    @model_serializer(mode="wrap")
    def _camel(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """In camelCase wherever it is stored or shown."""
        return {to_camel(name): value for name, value in dump(self).items()}


class Order(_Camel):
    """One import: which file, read in which way."""

    filename: str
    """what people call it"""
    sha256: str
    upload: str | None = None
    """the file was sent: its token. Else it lies in the folder, under its name"""
    sheet_name: str | None = None
    mapping: dict[str, str] = Field(default_factory=dict[str, str])
    dates: DateOrder = DateOrder.UNSAID
    dry_run: bool = False
    atomic: bool = False

    def fingerprint(self, type_: str, owner: str | None) -> str:
        """The same for the same bytes, read in the same way for the same user."""
        read = [owner, type_, self.sha256, self.sheet_name, sorted(self.mapping.items()), self.dates]
        return hashlib.sha256(json.dumps([*read, self.dry_run, self.atomic]).encode()).hexdigest()


class Told(_Camel):
    """One error."""

    row: int
    reason: str
    column: str | None = None
    field: str | None = None
    value: str | None = None
    code: str = "invalid"


class Summary(_Camel):
    """What became of an import."""

    total_rows: int = 0
    inserted: int = 0
    updated: int = 0
    """rows that were there before, changed or not"""
    unchanged: int = 0
    """those of them that were alike"""
    failed: int = 0
    errors: list[Told] = Field(default_factory=list[Told])
    """the first ones; all of them can be downloaded"""
    errors_total: int = 0
    dry_run: bool = False
    """nothing was written: the counts say what would have been"""
    atomic: bool = False
    applied: bool = True
    """false where all or nothing was asked for, and a row was refused"""
    header: list[str] = Field(default_factory=list[str])
    columns: dict[str, str] = Field(default_factory=dict[str, str])
    """field by header, as the file was read"""
    unused: list[str] = Field(default_factory=list[str])
    """headers that are no field's"""
    preview: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """of a dry run: the first rows as they would be stored"""
    read_as: dict[str, Any] = Field(default_factory=dict[str, Any])
    """kind, sheet, encoding, separator"""
