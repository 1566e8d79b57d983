"""Mapping: which column of a sheet is which field, guessed by name and open to be changed."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.apps.imports.handler import Field, ImportHandler

_APART = re.compile(r"[^0-9a-z]+")


@dataclass(frozen=True, slots=True)
class Column:
    """A field's place in a sheet."""

    field: Field
    index: int
    """from 0"""
    header: str


@dataclass(frozen=True, slots=True)
class Mapped:
    """The columns that are read, and what was left over."""

    columns: tuple[Column, ...]
    missing: tuple[Field, ...]
    """required fields that no column has"""
    unused: tuple[str, ...]
    """headers that are no field's"""

    def as_given(self) -> dict[str, str]:
        """Field by header, as one may give it."""
        return {column.field.label: column.header for column in self.columns}


def guess(handler: ImportHandler, header: Sequence[str], given: Mapping[str, str] | None = None) -> Mapped:
    """The mapping for a header: what was given, and for the other fields what their names and aliases say."""
    given = given or {}
    labels = {field.label for field in handler.fields}
    unknown = [label for label in given if label not in labels]
    if unknown:
        raise SettingsError(f"the mapping names the field {unknown[0][:60]!r}: known are {', '.join(sorted(labels))}")
    places: dict[str, int] = {}
    for index, name in enumerate(header):
        places.setdefault(name, index)
    by_word: dict[str, int] = {}
    for index, name in enumerate(header):
        by_word.setdefault(_word(name), index)
    found: dict[str, Column] = {}
    taken: dict[int, str] = {}
    for field in handler.fields:
        place = _given(field, given, places) if field.label in given else _guessed(field, handler, by_word, taken)
        if place is None:
            continue
        if place in taken:
            raise SettingsError(f"the column {header[place][:60]!r} is mapped to {taken[place]} and to {field.label}")
        taken[place] = field.label
        found[field.name] = Column(field, place, header[place])
    missing = tuple(field for field in handler.fields if field.required and field.name not in found)
    unused = tuple(name for index, name in enumerate(header) if index not in taken and name)
    return Mapped(tuple(found.values()), missing, unused)


def _given(field: Field, given: Mapping[str, str], places: Mapping[str, int]) -> int | None:
    header = given[field.label]
    if header == "":
        return None  # said to be left out
    if header not in places:
        told = ", ".join(repr(name[:40]) for name in list(places)[:20])
        raise SettingsError(f"the mapping takes {field.label} from the column {header[:60]!r}: the sheet has {told}")
    return places[header]


def _guessed(field: Field, handler: ImportHandler, by_word: Mapping[str, int], taken: Mapping[int, str]) -> int | None:
    names = (field.label, field.name, field.title or "", *handler.aliases.get(field.name, ()))
    found = (by_word.get(_word(name)) for name in names if name)
    return next((index for index in found if index is not None and index not in taken), None)


def _word(name: str) -> str:
    """A name without what people spell differently: case, spaces, marks, accents."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return _APART.sub("", plain.lower()) or name.strip().lower()
