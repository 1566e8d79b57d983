"""The manifest: which file is of which type, by its name or a pattern."""

from __future__ import annotations

import fnmatch
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from windlass import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from windlass.apps.imports.handler import ImportHandler


class Entry(BaseModel):
    """What is said of one file, or of all that a pattern matches."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", strict=True)

    type: str
    sheet_name: str | None = None
    mapping: dict[str, str] = Field(default_factory=dict[str, str])
    """field by header"""


@dataclass(frozen=True, slots=True)
class Manifest:
    """All entries, as they stand in the file."""

    entries: Mapping[str, Entry]

    def entry(self, filename: str) -> Entry | None:
        """What is said of a file: by its whole name, else by the first pattern that matches it."""
        exact = self.entries.get(filename)
        if exact is not None:
            return exact
        patterns = ((name, one) for name, one in self.entries.items() if set(name) & set("*?["))
        return next((one for name, one in patterns if fnmatch.fnmatchcase(filename.lower(), name.lower())), None)


def read(path: Path, handlers: Mapping[str, ImportHandler]) -> Manifest:
    """The manifest of this path, each entry checked; none where there is no such file."""
    try:
        given: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Manifest({})
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the manifest {path} cannot be read: {error}") from None
    except json.JSONDecodeError as error:
        raise SettingsError(f"the manifest {path} is no JSON: {error.msg} in line {error.lineno}") from None
    if not isinstance(given, dict):
        raise SettingsError(f"the manifest {path} holds a {type(given).__name__}: expected an object of file names")
    members = cast("dict[str, Any]", given)
    return Manifest({name: _entry(path, name, one, handlers) for name, one in members.items()})


def _entry(path: Path, name: str, given: Any, handlers: Mapping[str, ImportHandler]) -> Entry:
    try:
        entry = Entry.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"the manifest {path}: {name!r}: {place + ': ' if place else ''}{first['msg']}") from None
    handler = handlers.get(entry.type)
    if handler is None:
        known = ", ".join(sorted(handlers))
        raise SettingsError(f"the manifest {path}: {name!r} is of the type {entry.type!r}: known are {known}")
    unknown = [field for field in entry.mapping if field not in {one.label for one in handler.fields}]
    if unknown:
        raise SettingsError(f"the manifest {path}: {name!r} maps {unknown[0]!r}, which is no field of {entry.type}")
    return entry
