"""The table of records in SQL, and the migrations that lead to it, one after another."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from windlass import SchemaMismatch
from windlass.apps.resumes.records.record import NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy.engine import Connection, Dialect

    Migration: TypeAlias = Callable[[Connection], None]

_ANY_JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


class _Instant(sa.TypeDecorator[dt.datetime]):
    """An instant; in SQLite, which has no zones, as it is in UTC."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: dt.datetime | None, dialect: Dialect) -> dt.datetime | None:
        """With its zone, whatever the database says of it."""
        return value if value is None or value.tzinfo is not None else value.replace(tzinfo=dt.UTC)


_META = sa.MetaData()
TABLE = sa.Table(
    NAME,
    _META,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("job_id", sa.Text),
    sa.Column("original_file_name", sa.Text, nullable=False),
    sa.Column("file_size", sa.BigInteger, nullable=False),
    sa.Column("file_hash", sa.Text, nullable=False),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("extracted_text", sa.Text),
    sa.Column("structured_content", _ANY_JSON),
    sa.Column("usage_count", sa.BigInteger, nullable=False),
    sa.Column("last_used_at", _Instant),
    sa.Column("business_metadata", _ANY_JSON, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("draft", _ANY_JSON),
    sa.Column("completed_at", _Instant),
    sa.Column("created_at", _Instant, nullable=False),
    sa.Column("updated_at", _Instant, nullable=False),
    sa.Column("fence", sa.BigInteger, nullable=False, server_default="0"),
)
"""as the last of the migrations leaves it"""
_VERSION = sa.Table(f"{NAME}_schema", sa.MetaData(), sa.Column("version", sa.BigInteger, nullable=False))


def _first(connection: Connection) -> None:
    instant, json = ("TIMESTAMPTZ", "JSONB") if connection.dialect.name == "postgresql" else ("DATETIME", "JSON")
    connection.exec_driver_sql(
        f"CREATE TABLE {NAME} ("
        "id TEXT PRIMARY KEY, user_id TEXT NOT NULL, job_id TEXT, original_file_name TEXT NOT NULL,"
        " file_size BIGINT NOT NULL, file_hash TEXT NOT NULL, media_type TEXT NOT NULL,"
        f" extracted_text TEXT, structured_content {json}, usage_count BIGINT NOT NULL DEFAULT 0,"
        f" last_used_at {instant}, business_metadata {json} NOT NULL, error TEXT, draft {json},"
        f" completed_at {instant}, created_at {instant} NOT NULL, updated_at {instant} NOT NULL,"
        " fence BIGINT NOT NULL DEFAULT 0)"
    )
    for name, unique, columns in (
        ("file_of_user", "UNIQUE ", "user_id, file_hash"),
        ("job", "", "job_id"),
        ("newest_of_user", "", "user_id, created_at, id"),
        ("newest", "", "created_at, id"),
    ):
        connection.exec_driver_sql(f"CREATE {unique}INDEX {NAME}_{name} ON {NAME} ({columns})")


MIGRATIONS: Sequence[Migration] = (_first,)
"""one for each version; what has once been released is not changed, but followed by another"""


def migrate(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Apply those that are missing, in the connection's transaction; the version that stands then."""
    _VERSION.create(connection, checkfirst=True)
    found: Any = connection.execute(sa.select(sa.func.max(_VERSION.c.version))).scalar_one()
    version = int(found or 0)
    if version > len(migrations):
        raise SchemaMismatch(
            f"the table {NAME} is at version {version}, this windlass knows {len(migrations)}: upgrade windlass"
        )
    for number, migration in enumerate(migrations[version:], version + 1):
        migration(connection)
        connection.execute(sa.insert(_VERSION).values(version=number))
    return len(migrations)
