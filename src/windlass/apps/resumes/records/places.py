"""Places: which database a URL means, and which one is the job store's own."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from windlass import SettingsError

if TYPE_CHECKING:
    from windlass.apps.resumes.records.record import Records

BESIDE_REDIS = "sqlite:///resumes.db"
"""Redis keeps no records: they go into a file beside"""
_EXTRA = 'pip install "windlass[{}]"'
_SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")


def records_at(url: str) -> Records:
    """The records of a URL: sqlite:///file, postgresql://…, mongodb://…/database."""
    scheme = url.partition("://")[0].lower().partition("+")[0]
    match scheme:
        case "sqlite":
            return _sqlite(url)
        case "postgresql" | "postgres":
            return _postgres(url)
        case "mongodb":
            return _mongo(url)
        case "redis" | "rediss":
            raise SettingsError("resumes cannot be kept in Redis: give the URL of a database, such as sqlite:///r.db")
        case _:
            raise SettingsError(
                f"resumes cannot be kept in {scheme[:20]}://…: expected sqlite:///file, postgresql:// or mongodb://"
            )


def beside(store_url: str) -> str:
    """Where records are if nothing is said: the job store's own database."""
    return BESIDE_REDIS if store_url.startswith(("redis:", "rediss:")) else store_url


def _sqlite(url: str) -> Records:
    from windlass.apps.resumes.records.sql import SqlRecords
    from windlass.apps.resumes.records.sqlite import SqliteLane

    path, _, query = url.removeprefix("sqlite:///").partition("?")
    asked = dict(parse_qsl(query)).get("synchronous", "FULL").upper()
    return SqlRecords(SqliteLane(unquote(path) or ":memory:", asked if asked in _SYNCHRONOUS else "FULL"))


def _postgres(url: str) -> Records:
    try:
        from windlass.apps.resumes.records.postgres import PostgresLane
    except ImportError as error:
        raise SettingsError(f"resumes in PostgreSQL need {_EXTRA.format('resumes,postgres')} ({error})") from None
    from windlass.apps.resumes.records.sql import SqlRecords

    parts = urlsplit(url)
    words = parse_qsl(parts.query)
    # The store's own word: where its tables are, the records' are, too.
    schema = next((value for name, value in words if name == "schema"), None)
    plain = urlencode([(name, value) for name, value in words if name != "schema"])
    dsn = urlunsplit(("postgresql", parts.netloc, parts.path, plain, ""))
    return SqlRecords(PostgresLane(dsn, schema, f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"))


def _mongo(url: str) -> Records:
    try:
        from windlass.apps.resumes.records.mongo import MongoRecords
    except ImportError as error:
        raise SettingsError(f"resumes in MongoDB need {_EXTRA.format('resumes,mongo')} ({error})") from None
    parts = urlsplit(url)
    database = unquote(parts.path.lstrip("/"))
    if not database:
        raise SettingsError("the URL of MongoDB names no database: write mongodb://host/database")
    return MongoRecords(url, database, f"mongodb://{parts.netloc.rpartition('@')[2]}/{database}")
