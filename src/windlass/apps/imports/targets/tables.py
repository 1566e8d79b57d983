"""Tables: what SQL targets keep. What is missing is made; what is there is looked at."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from windlass import SettingsError
from windlass.apps.imports.cells import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.engine import Connection, Dialect

    from windlass.apps.imports.handler import ImportHandler

_TYPES: dict[Kind, sa.types.TypeEngine[Any]] = {
    Kind.TEXT: sa.Text(),
    Kind.WHOLE: sa.BigInteger(),
    Kind.NUMBER: sa.Numeric(),
    Kind.DATE: sa.Date(),
    Kind.INSTANT: sa.DateTime(),
    Kind.FLAG: sa.Boolean(),
}
COUNTS = ("last_row", "total", "inserted", "updated", "unchanged", "failed", "errors")
LEDGER, REFUSED = "windlass_imports", "windlass_import_rows"
_OWN = sa.MetaData()
_LEDGER = sa.Table(
    LEDGER,
    _OWN,
    sa.Column("job", sa.Text, primary_key=True),
    sa.Column("token", sa.BigInteger, nullable=False),
    sa.Column("began_at", sa.DateTime, nullable=False, server_default=sa.func.current_timestamp()),
    *(sa.Column(name, sa.BigInteger, nullable=False, server_default="0") for name in COUNTS),
)
_REFUSED = sa.Table(
    REFUSED,
    _OWN,
    sa.Column("job", sa.Text, primary_key=True),
    sa.Column("row", sa.BigInteger, primary_key=True),
    sa.Column("cells", sa.Text, nullable=False),
    sa.Column("errors", sa.Text, nullable=False),
)


class Table:
    """The table of one type's rows, in the words of one database."""

    def __init__(self, handler: ImportHandler, dialect: Dialect, differs: str) -> None:
        self._handler, self._differs = handler, differs
        quote = dialect.identifier_preparer.quote
        self.name, self.stage = quote(handler.table), quote(f"windlass_stage_{handler.table}")
        self.names = [quote(field.name) for field in handler.fields]
        self.key = [quote(name) for name in handler.key]
        fields = [field.name for field in handler.fields]
        self.places = [fields.index(name) for name in handler.key]
        """of the key among the fields"""

    @cached_property
    def listed(self) -> str:
        """All fields, in order."""
        return ", ".join(self.names)

    @cached_property
    def keeping(self) -> str:
        """To leave a row alone that is there."""
        return f"ON CONFLICT ({', '.join(self.key)}) DO NOTHING"

    @cached_property
    def conflict(self) -> str:
        """What to do with a row that is there: change it where it is another."""
        others = [name for name in self.names if name not in self.key]
        if not others:
            return self.keeping
        changed = " OR ".join(f"{self.name}.{name} {self._differs} excluded.{name}" for name in others)
        sets = ", ".join(f"{name} = excluded.{name}" for name in others)
        return f"ON CONFLICT ({', '.join(self.key)}) DO UPDATE SET {sets} WHERE {changed}"

    def same_key(self, one: str, other: str) -> str:
        """That two rows have one key."""
        return " AND ".join(f"{one}.{name} = {other}.{name}" for name in self.key)

    def last_of(self, job: str) -> str:
        """What was set aside by a job: of rows with one key the last."""
        later = (
            f"SELECT 1 FROM {self.stage} o WHERE o.windlass_job = s.windlass_job AND o.windlass_row > s.windlass_row"
        )
        return (
            f"SELECT {self.listed} FROM {self.stage} s WHERE s.windlass_job = {job}"
            f" AND NOT EXISTS ({later} AND {self.same_key('o', 's')})"
        )

    def make(self, connection: Connection) -> None:
        """Make what is missing, and look whether what was there before fits."""
        own = sa.MetaData()
        fields, key = self._handler.fields, self._handler.key
        sa.Table(
            self._handler.table,
            own,
            *(
                sa.Column(
                    one.name,
                    _TYPES[one.kind],
                    primary_key=one.name in key,
                    nullable=not one.required,
                    autoincrement=False,
                )
                for one in fields
            ),
        )
        sa.Table(
            f"windlass_stage_{self._handler.table}",
            own,
            sa.Column("windlass_job", sa.Text, index=True),
            sa.Column("windlass_row", sa.BigInteger),
            *(sa.Column(one.name, _TYPES[one.kind]) for one in fields),
        )
        for made in (_OWN, own):
            made.create_all(connection, checkfirst=True)
        self._check(connection)

    def _check(self, connection: Connection) -> None:
        look, table, handler = sa.inspect(connection), self._handler.table, self._handler
        there = {column["name"] for column in look.get_columns(table)}
        lacking = [field.name for field in handler.fields if field.name not in there]
        if lacking:
            raise SettingsError(
                f"the table {table} has no column {', '.join(lacking)}: add it, or give the type another table"
            )
        unique: list[Sequence[str | None]] = [look.get_pk_constraint(table)["constrained_columns"]]
        unique += [one["column_names"] for one in look.get_unique_constraints(table)]
        unique += [one["column_names"] for one in look.get_indexes(table) if one["unique"]]
        if set(handler.key) not in [set(names) for names in unique]:
            raise SettingsError(
                f"the table {table} has no unique index on {', '.join(handler.key)}: make one, it tells rows apart"
            )
