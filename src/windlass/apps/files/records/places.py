"""Places: which records a URL means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from windlass import SettingsError

if TYPE_CHECKING:
    from windlass.apps.files.records.records import Records

_OWN = ("schema", "timeout", "pooler")
"""what the job store's URLs say beside what drivers know"""


def records_at(url: str, namespace: str) -> Records:
    """The records in the job store's own database, or in another: any URL that windlass takes."""
    scheme = url.partition("://")[0].lower()
    match scheme:
        case "sqlite":
            return _sqlite(url, namespace)
        case "postgresql" | "postgres":
            return _postgres(url, namespace)
        case "mongodb" | "mongodb+srv":
            return _mongo(url, namespace)
        case "redis" | "rediss":
            return _redis(url, namespace)
        case _:
            raise SettingsError(f"records of files cannot go to {scheme}://…: expected the URL of a store of windlass")


def _sqlite(url: str, namespace: str) -> Records:
    from windlass.apps.files.records.sqlite import SqliteRecords

    place, _, query = url.removeprefix("sqlite:///").partition("?")
    if place in ("", ":memory:"):
        raise SettingsError(
            "records of files cannot go to a database in memory: set WINDLASS_FILES_DATABASE to sqlite:///a-file.db"
        )
    return SqliteRecords(Path(unquote(place)), namespace, dict(parse_qsl(query)).get("synchronous", "FULL"))


def _postgres(url: str, namespace: str) -> Records:
    from windlass.apps.files.records.postgres import PostgresRecords

    place, _, query = url.partition("?")
    schema = dict(parse_qsl(query)).get("schema")
    rest = _without(query)
    return PostgresRecords(f"{place}?{rest}" if rest else place, schema, namespace)


def _mongo(url: str, namespace: str) -> Records:
    from windlass.apps.files.records.mongo import MongoRecords

    place, _, query = url.partition("?")
    database = unquote(urlsplit(place).path.lstrip("/")) or "windlass"
    rest = _without(query)
    # The slash: options of the driver stand behind one.
    slash = "" if urlsplit(place).path else "/"
    return MongoRecords(f"{place}{slash}?{rest}" if rest else place, database, namespace)


def _redis(url: str, namespace: str) -> Records:
    from windlass.apps.files.records.redis import RedisRecords

    place, _, query = url.partition("?")
    rest = _without(query)
    return RedisRecords(f"{place}?{rest}" if rest else place, namespace)


def _without(query: str) -> str:
    return "&".join(part for part in query.split("&") if part and part.partition("=")[0] not in _OWN)
