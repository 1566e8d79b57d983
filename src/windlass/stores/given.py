"""From a client or pool that an application has already to a store with the same settings.

A store makes connections of its own from these settings and never uses, changes or closes what it was given: its
statements need deadlines, codecs and plans of their own, which nobody else on that client or pool must meet, and it has
to work in several threads and event loops, to which theirs do not belong. No driver is imported here: a caller that
hands in a client has it loaded.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from windlass.core.errors import SettingsError
from windlass.core.redaction import redact_url
from windlass.stores.addresses import store_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.stores.contract import Store

GIVE = (
    "a URL, a pathlib.Path or sqlite3.Connection of a file, an asyncpg.Pool, a pymongo AsyncMongoClient or a database"
    " of one, or a redis.asyncio.Redis"
)
_NOT_OF_POSTGRES = frozenset(
    """timeout command_timeout loop connection_class record_class statement_cache_size max_cached_statement_lifetime
    max_cacheable_statement_size""".split()  # noqa: SIM905  # a line for each is long
)
_OF_REDIS = frozenset(
    ("username", "password", "credential_provider", "socket_keepalive", "socket_keepalive_options", "socket_type")
)
_NOT_OF_MONGO = frozenset(
    """document_class type_registry connect tz_aware appname timeoutms sockettimeoutms serverselectiontimeoutms
    connecttimeoutms heartbeatfrequencyms retrywrites retryreads""".split()  # noqa: SIM905  # a line for each is long
)


def store_of(given: object, *, namespace: str = "windlass", synchronous: str = "FULL") -> Store:
    """The store with the settings of what was given, not yet open."""
    if isinstance(given, str):
        return store_at(given, namespace=namespace, synchronous=synchronous)
    if isinstance(given, (Path, sqlite3.Connection)):
        return store_at(f"sqlite:///{quote(_file(given))}", namespace=namespace, synchronous=synchronous)
    make = next((_MAKERS[name] for name in map(_name, type(given).__mro__) if name in _MAKERS), None)
    if make is None:
        raise SettingsError(f"a store cannot be made of a {_name(type(given))}: expected {GIVE}")
    return make(given, namespace)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _file(given: Path | sqlite3.Connection) -> str:
    if isinstance(given, Path):
        return str(given)
    found = next((file for _, name, file in given.execute("PRAGMA database_list") if name == "main"), "")
    if not found:
        raise SettingsError(
            "a sqlite3.Connection to a database in memory was given, which only that connection can see: give one to a"
            " file, or a URL"
        )
    return str(found)


def _read(given: object, *names: str) -> list[Any]:
    """Attributes of a driver's object in which it keeps its settings."""
    try:
        return [getattr(given, name) for name in names]
    except AttributeError as error:
        raise SettingsError(
            f"the settings of this {_name(type(given))} cannot be read ({error}): give a URL instead"
        ) from None


def _postgres(pool: object, namespace: str) -> Store:
    from windlass.stores.postgres.connection import Place
    from windlass.stores.postgres.store import PostgresStore

    arguments, options, connect = _read(pool, "_connect_args", "_connect_kwargs", "_connect")
    [most] = _read(pool, "get_max_size")
    settings = {name: value for name, value in options.items() if name not in _NOT_OF_POSTGRES}
    dsn = settings.pop("dsn", None) or (arguments[0] if arguments else None)
    return PostgresStore(
        Place(
            url=dsn,
            address=_postgres_address(dsn, settings),
            namespace=namespace,
            settings=settings,
            connect=None if connect.__module__ == "asyncpg.connection" else connect,
            most=cast("Callable[[], int]", most)(),
        )
    )


def _postgres_address(dsn: str | None, settings: Mapping[str, Any]) -> str:
    if dsn is not None:
        return redact_url(dsn.partition("?")[0])
    host, port, database = settings.get("host", "localhost"), settings.get("port", 5432), settings.get("database")
    return f"postgresql://{host}:{port}/{database or settings.get('user', '')}"


def _mongo_client(client: object, namespace: str) -> Store:
    [default] = _read(client, "get_default_database")
    name: str = default("windlass").name
    return _mongo(client, name, namespace)


def _mongo_database(database: object, namespace: str) -> Store:
    client, name = _read(database, "client", "name")
    return _mongo(client, name, namespace)


def _mongo(client: object, database: str, namespace: str) -> Store:
    from windlass.stores.mongo.connection import Place
    from windlass.stores.mongo.store import MongoStore

    [given] = _read(client, "_init_kwargs")
    settings = {name: value for name, value in given.items() if name.lower() not in _NOT_OF_MONGO and value is not None}
    hosts = settings.get("host", "localhost")
    named = hosts if isinstance(hosts, str) else ",".join(hosts)
    place = redact_url(named).partition("?")[0].rpartition("://")[2].partition("/")[0]
    return MongoStore(
        Place(
            url="",
            address=f"mongodb://{place}/{database}",
            database=database,
            namespace=namespace,
            settings=settings,
        )
    )


def _redis(client: object, namespace: str) -> Store:
    from windlass.stores.redis.connection import Place
    from windlass.stores.redis.store import RedisStore

    [pool] = _read(client, "connection_pool")
    options, kind, most = _read(pool, "connection_kwargs", "connection_class", "max_connections")
    if "Sentinel" in type(pool).__name__:
        raise SettingsError("a client of a sentinel was given, which names no server: give a URL of the primary")
    settings = {name: value for name, value in options.items() if name in _OF_REDIS or name.startswith("ssl_")}
    number = options.get("db") or 0
    if "path" in options:
        url = f"unix://{options['path']}?db={number}"
    else:
        scheme = "rediss" if "SSL" in kind.__name__ else "redis"
        url = f"{scheme}://{options.get('host', 'localhost')}:{options.get('port', 6379)}/{number}"
    return RedisStore(Place(url=url, address=url, namespace=namespace, settings=settings, most=most))


_MAKERS: dict[str, Callable[[object, str], Store]] = {
    "asyncpg.pool.Pool": _postgres,
    "pymongo.asynchronous.mongo_client.AsyncMongoClient": _mongo_client,
    "pymongo.asynchronous.database.AsyncDatabase": _mongo_database,
    "redis.asyncio.client.Redis": _redis,
}
