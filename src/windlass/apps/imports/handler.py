"""Handlers of imports: what a type's rows are, what tells one from another, and where they go."""

from __future__ import annotations

import datetime as dt
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel, to_snake

from windlass import SettingsError
from windlass.apps.imports.cells import Kind

_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,40}")
_TABLE = re.compile(r"[a-z][a-z0-9_]{0,50}")


class ImportRow(BaseModel):
    """The root of rows: fields in snake_case, which sheets, documents and errors call by their camelCase names."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, str_strip_whitespace=True, frozen=True)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a row."""

    name: str
    """as Python and SQL have it"""
    label: str
    """as documents, manifests and errors have it"""
    kind: Kind
    required: bool
    title: str | None = None
    """what people call it, if the model says so"""


class ImportHandler:
    """A type of import. Subclass it, say what a row is and which fields tell rows apart, and `imports.add` it.

    ```python
    class Customers(ImportHandler):
        import_type = "customers"
        row = CustomerRow
        key = ("email",)
    ```
    """

    import_type: ClassVar[str]
    """as manifests and jobs name it: `import.xlsx.customers`"""
    row: ClassVar[type[ImportRow]]
    key: ClassVar[tuple[str, ...]]
    """the fields that tell one row from another: what is there already is updated"""
    table: ClassVar[str] = ""
    """the table or collection; by default the type in snake_case"""
    aliases: ClassVar[Mapping[str, Sequence[str]]] = {}
    """other names that a sheet may give a field, besides its own in any case and spacing"""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if not getattr(cls, "import_type", ""):
            return  # a root of one's own
        if not _TYPE.fullmatch(cls.import_type):
            raise SettingsError(f"{cls.__name__}.import_type is {cls.import_type!r}: expected letters, digits, - or _")
        cls.table = cls.table or to_snake(cls.import_type).replace("-", "_")
        if not _TABLE.fullmatch(cls.table):
            raise SettingsError(f"{cls.__name__}.table is {cls.table!r}: expected lower-case letters, digits or _")
        known = cls.row.model_fields
        for what, names in (("key", cls.key), ("aliases", tuple(cls.aliases))):
            unknown = [name for name in names if name not in known]
            if unknown or (what == "key" and not names):
                found = unknown[0] if unknown else names
                raise SettingsError(f"{cls.__name__}.{what} names {found!r}: its row has {', '.join(known)}")

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The fields of a row, in order."""
        return tuple(
            Field(name, field.alias or name, _kind(field.annotation), field.is_required(), field.title)
            for name, field in self.row.model_fields.items()
        )

    @property
    def key_labels(self) -> tuple[str, ...]:
        """The key, as documents have it."""
        return tuple(field.label for name in self.key for field in self.fields if field.name == name)


_KINDS: tuple[tuple[type, Kind], ...] = (
    (bool, Kind.FLAG),
    (int, Kind.WHOLE),
    (float, Kind.NUMBER),
    (Decimal, Kind.NUMBER),
    (dt.datetime, Kind.INSTANT),
    (dt.date, Kind.DATE),
)


def _kind(annotation: Any) -> Kind:
    """By the type that is meant, without None beside it."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kind(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        branches = [one for one in get_args(annotation) if one is not type(None)]
        return _kind(branches[0]) if len(branches) == 1 else Kind.TEXT
    if isinstance(annotation, type):
        return next((kind for of, kind in _KINDS if issubclass(annotation, of)), Kind.TEXT)
    return Kind.TEXT
