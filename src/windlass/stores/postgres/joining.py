"""Statements inside the caller's own transaction, through whichever driver it is on.

asyncpg, psycopg 3, SQLAlchemy and Django are told apart by the names of their classes and never imported: a caller that
hands in a connection has its driver loaded already. A duplicate never aborts the transaction, as nothing is written
before it was looked for.
"""

from __future__ import annotations

import re
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from windlass.core.errors import StoreError, TransactionRefused, WindlassError
from windlass.stores.postgres.connection import refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from windlass.stores.postgres.connection import Link, Rows

    Now: TypeAlias = Callable[[str, tuple[Any, ...]], Rows]
    Later: TypeAlias = Callable[[str, tuple[Any, ...]], Awaitable[Rows]]

T = TypeVar("T")
_VALUE = re.compile(r"\$(\d+)")
_GIVE = (
    "an asyncpg or psycopg connection, a SQLAlchemy session or connection (sync or async), or Django's connection,"
    " with a transaction open"
)


async def join(link: Link, tx: object, steps: Generator[tuple[str, tuple[Any, ...]], Rows, T]) -> T:
    """Carry these steps out inside an asynchronous driver's transaction, or a synchronous one's."""
    with _translated(link, tx):
        later = await _later(tx)
        if later is None:
            return join_now(link, tx, steps)
        run, whole = later
        async with whole:
            try:
                sql, values = next(steps)
                while True:
                    sql, values = steps.send(await run(link.sql(sql), values))
            except StopIteration as done:
                value: T = done.value
                return value


def join_now(link: Link, tx: object, steps: Generator[tuple[str, tuple[Any, ...]], Rows, T]) -> T:
    """The same on the calling thread."""
    with _translated(link, tx):
        now = _now(tx)
        if now is None:
            if _kind(tx) in _AWAITED:
                raise TransactionRefused(f"tx is a {_name(tx)}, which has to be awaited: await the call")
            raise TransactionRefused(f"tx is a {_name(tx)}: with a PostgreSQL store give {_GIVE}")
        run, whole = now
        with whole:
            try:
                sql, values = next(steps)
                while True:
                    sql, values = steps.send(run(link.sql(sql), values))
            except StopIteration as done:
                value: T = done.value
                return value


SCHEMA = """
SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1::text)
"""
HERE = "SELECT value FROM windlass_meta WHERE key = 'identity'"


def located(link: Link, *, compare: bool = False) -> Generator[tuple[str, tuple[Any, ...]], Rows, None]:
    """Where the tables are, if the store has not been opened: where the caller finds them.

    With `compare` also whether they are this store's own; an insert finds that out by itself.
    """
    if link.schema is None:
        found: Rows = yield SCHEMA, (f"{link.place.namespace}_jobs",)
        if not found:
            raise TransactionRefused(
                f"tx is on a database without windlass's tables: is it that of {link.place.address}? Otherwise run"
                " 'windlass migrate' first"
            )
        link.schema = found[0][0]
    if compare and link.identity is not None:
        rows: Rows = yield HERE, ()
        if [value for (value,) in rows] != [link.identity]:
            raise elsewhere(link)


def elsewhere(link: Link) -> TransactionRefused:
    """What is said of a transaction on another database."""
    return TransactionRefused(
        f"tx is a transaction on another database than {link.place.address}: windlass can only join one there"
    )


_KINDS = {
    ("asyncpg.connection", "Connection"): "asyncpg",
    ("asyncpg.pool", "PoolConnectionProxy"): "asyncpg",
    ("psycopg", "Connection"): "psycopg",
    ("psycopg.connection", "Connection"): "psycopg",
    ("psycopg", "AsyncConnection"): "psycopg async",
    ("psycopg.connection_async", "AsyncConnection"): "psycopg async",
    ("sqlalchemy.engine.base", "Connection"): "sqlalchemy",
    ("sqlalchemy.orm.session", "Session"): "session",
    ("sqlalchemy.orm.scoping", "scoped_session"): "session",
    ("sqlalchemy.ext.asyncio.engine", "AsyncConnection"): "sqlalchemy async",
    ("sqlalchemy.ext.asyncio.session", "AsyncSession"): "session async",
    ("sqlalchemy.ext.asyncio.scoping", "async_scoped_session"): "session async",
    ("django.utils.connection", "ConnectionProxy"): "django",
    ("django.db.backends.base.base", "BaseDatabaseWrapper"): "django",
}
_AWAITED = frozenset({"asyncpg", "psycopg async", "sqlalchemy async", "session async"})


def _kind(tx: object) -> str | None:
    # Through the bases: a session or connection is often of a class of the application's own.
    return next((kind for base in type(tx).__mro__ if (kind := _KINDS.get((base.__module__, base.__qualname__)))), None)


def _name(tx: object) -> str:
    return f"{type(tx).__module__}.{type(tx).__qualname__}"


async def _later(tx: Any) -> tuple[Later, AbstractAsyncContextManager[Any]] | None:
    """How to run a statement there, and what to run all of them in."""
    kind = _kind(tx)
    if kind == "asyncpg":

        async def by_asyncpg(sql: str, values: tuple[Any, ...]) -> Rows:
            rows: Rows = await tx.fetch(sql, *values)
            return [tuple(row) for row in rows]

        # Steps that belong together must not be seen apart, even by a caller who began no transaction.
        return by_asyncpg, nullcontext() if tx.is_in_transaction() else tx.transaction()
    if kind == "psycopg async":

        async def by_psycopg(sql: str, values: tuple[Any, ...]) -> Rows:
            async with tx.cursor(row_factory=_plain_rows) as cursor:
                await cursor.execute(*_pyformat(sql, values))
                return await cursor.fetchall() if cursor.description else []

        return by_psycopg, tx.transaction() if _commits_itself(tx) else nullcontext()
    if kind in ("session async", "sqlalchemy async"):
        connection = await tx.connection() if kind == "session async" else tx

        async def by_sqlalchemy(sql: str, values: tuple[Any, ...]) -> Rows:
            text, given = _in_style(connection.dialect.paramstyle, sql, values)
            return _fetched(await connection.exec_driver_sql(text, given))

        return by_sqlalchemy, nullcontext()
    return None


def _now(tx: Any) -> tuple[Now, AbstractContextManager[Any]] | None:
    kind = _kind(tx)
    if kind == "psycopg":

        def by_psycopg(sql: str, values: tuple[Any, ...]) -> Rows:
            with tx.cursor(row_factory=_plain_rows) as cursor:
                cursor.execute(*_pyformat(sql, values))
                rows: Rows = cursor.fetchall() if cursor.description else []
                return rows

        return by_psycopg, tx.transaction() if _commits_itself(tx) else nullcontext()
    if kind in ("session", "sqlalchemy"):
        connection = tx.connection() if kind == "session" else tx

        def by_sqlalchemy(sql: str, values: tuple[Any, ...]) -> Rows:
            return _fetched(connection.exec_driver_sql(*_in_style(connection.dialect.paramstyle, sql, values)))

        return by_sqlalchemy, nullcontext()
    if kind == "django":
        if tx.vendor != "postgresql":
            raise TransactionRefused(f"tx is Django's connection to a {tx.vendor} database: give the PostgreSQL one")

        def by_django(sql: str, values: tuple[Any, ...]) -> Rows:
            with tx.cursor() as cursor:
                cursor.execute(*_pyformat(sql, values))
                rows: Rows = cursor.fetchall() if cursor.description else []
                return rows

        return by_django, nullcontext()
    return None


def _plain_rows(_: Any) -> Callable[[Any], Any]:
    """Tuples, whatever the caller's connection was told to make of rows."""
    return tuple


def _commits_itself(tx: Any) -> bool:
    return bool(tx.autocommit) and tx.info.transaction_status.name == "IDLE"


def _fetched(result: Any) -> Rows:
    return [tuple(row) for row in result] if result.returns_rows else []


def _in_style(style: str, sql: str, values: tuple[Any, ...]) -> tuple[str, Any]:
    if style in ("numeric_dollar", "numeric"):
        return sql, values
    if style == "pyformat":
        return _pyformat(sql, values)
    if style == "format":
        order = tuple(values[int(found[1]) - 1] for found in _VALUE.finditer(sql))
        return _VALUE.sub("%s", sql.replace("%", "%%")), order
    raise TransactionRefused(f"tx is on a driver with the parameter style {style!r}: give {_GIVE}")


def _pyformat(sql: str, values: tuple[Any, ...]) -> tuple[str, dict[str, Any]]:
    return _by_name(sql), {f"p{n}": value for n, value in enumerate(values, 1)}


@lru_cache(maxsize=64)
def _by_name(sql: str) -> str:
    return _VALUE.sub(r"%(p\1)s", sql.replace("%", "%%"))


class _translated:  # noqa: N801  # reads as a word in `with`
    """Let no driver's error out, whichever driver it is."""

    def __init__(self, link: Link, tx: object) -> None:
        self._link, self._tx = link, tx

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, WindlassError):
            return
        where = self._link.place
        state = _state(error)
        if state in ("42P01", "3F000"):
            raise TransactionRefused(
                f"tx is a transaction on a database without windlass's tables: is it that of {where.address}?"
                " Otherwise run 'windlass migrate' first"
            ) from error
        if state:
            raise refused(state, error, where) from error
        if "closed" in str(error).lower():
            raise TransactionRefused(f"tx is a {_name(self._tx)} that is closed: {str(error)[:200]}") from error
        raise StoreError(f"the driver of tx could not carry this out: {str(error)[:200]}") from error


def _state(error: BaseException | None) -> str:
    """The SQLSTATE somewhere in an error: SQLAlchemy and Django wrap the driver's own."""
    seen = 0
    while error is not None and seen < 5:
        found = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
        if isinstance(found, str):
            return found
        error = getattr(error, "orig", None) or error.__cause__
        seen += 1
    return ""
