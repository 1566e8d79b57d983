"""Places: which target a URL means, and which one is the job store's own database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from windlass import SettingsError

if TYPE_CHECKING:
    from windlass.apps.imports.targets.target import Target

BESIDE_REDIS = "sqlite:///imports.db"
"""Redis keeps no rows: they go into a file beside"""
_EXTRA = 'pip install "windlass[{}]"'


def target_at(url: str) -> Target:
    """The target for a URL: sqlite:///file, postgresql://…, mongodb://…/database."""
    scheme = url.partition("://")[0].lower().partition("+")[0]
    match scheme:
        case "sqlite":
            return _sqlite(url)
        case "postgresql" | "postgres":
            return _postgres(url)
        case "mongodb":
            return _mongo(url)
        case "redis" | "rediss":
            raise SettingsError("rows cannot go to Redis: give the URL of a database, such as sqlite:///imports.db")
        case _:
            raise SettingsError(f"rows cannot go to {scheme}://…: expected sqlite:///file, postgresql:// or mongodb://")


def beside(store_url: str) -> str:
    """Where rows go if nothing is said: the job store's own database."""
    return BESIDE_REDIS if store_url.startswith(("redis:", "rediss:")) else store_url


def _sqlite(url: str) -> Target:
    from windlass.apps.imports.targets.sqlite import SqliteTarget

    path = unquote(url.removeprefix("sqlite:///").partition("?")[0])
    if path in ("", ":memory:"):
        raise SettingsError(
            "rows cannot go to a database in memory: set WINDLASS_IMPORTS_DATABASE to sqlite:///a-file.db"
        )
    return SqliteTarget(Path(path))


def _postgres(url: str) -> Target:
    try:
        from windlass.apps.imports.targets.postgres import PostgresTarget
    except ImportError as error:
        raise SettingsError(f"rows in PostgreSQL need {_EXTRA.format('imports,postgres')} ({error})") from None
    parts = urlsplit(url)
    words = parse_qsl(parts.query)
    # The store's own word: where its tables are, the rows' are, too.
    schema = next((value for name, value in words if name == "schema"), None)
    plain = urlencode([(name, value) for name, value in words if name != "schema"])
    dsn = urlunsplit(("postgresql", parts.netloc, parts.path, plain, ""))
    return PostgresTarget(dsn, schema, f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}")


def _mongo(url: str) -> Target:
    try:
        from windlass.apps.imports.targets.mongo import MongoTarget
    except ImportError as error:
        raise SettingsError(f"rows in MongoDB need {_EXTRA.format('imports,mongo')} ({error})") from None
    parts = urlsplit(url)
    database = unquote(parts.path.lstrip("/"))
    if not database:
        raise SettingsError("the URL of MongoDB names no database: write mongodb://host/database")
    return MongoTarget(url, database, f"mongodb://{parts.netloc.rpartition('@')[2]}/{database}")
