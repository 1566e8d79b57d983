"""From a URL to a store; its driver is imported only now."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from windlass.core.errors import SettingsError
from windlass.core.redaction import redact_url

if TYPE_CHECKING:
    from windlass.stores.contract import Store
    from windlass.stores.sqlite.engine import Synchronous

KNOWN = "sqlite:///jobs.db, postgresql://localhost/shop, mongodb://localhost/shop or redis://localhost/0"
_SAFETY: dict[str, Synchronous] = {"FULL": "FULL", "NORMAL": "NORMAL", "OFF": "OFF"}


def store_at(url: str, *, namespace: str = "windlass", synchronous: str = "FULL") -> Store:
    """The store a URL names, not yet open."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise SettingsError(f"the store URL {redact_url(url)!r} cannot be read: {error}") from None
    if parts.scheme == "sqlite":
        return _sqlite(url, namespace, synchronous)
    if parts.scheme in ("mongodb", "mongodb+srv"):
        return _mongo(url, namespace)
    if parts.scheme in ("postgresql", "postgres"):
        return _postgres(url, namespace)
    if parts.scheme in ("redis", "rediss"):
        return _redis(url, namespace)
    raise SettingsError(f"the store URL {redact_url(url)!r} is of no known kind: expected one like {KNOWN}")


def _sqlite(url: str, namespace: str, synchronous: str) -> Store:
    from windlass.stores.sqlite.store import SqliteStore  # only the store that is used is loaded

    place, _, query = url.removeprefix("sqlite://").partition("?")
    if place and not place.startswith("/"):
        raise SettingsError(
            f"{url!r} has a host: write sqlite:///jobs.db for a file here, sqlite:////var/jobs.db for /var"
        )
    options = dict(parse_qsl(query, keep_blank_values=True))
    unknown = options.keys() - {"synchronous", "timeout"}
    if unknown:
        raise SettingsError(
            f"{redact_url(url)!r} sets {', '.join(sorted(unknown))}: an SQLite URL takes synchronous and timeout"
        )
    asked = options.get("synchronous", synchronous)
    safety = _SAFETY.get(asked.upper())
    if safety is None:
        raise SettingsError(f"synchronous is {asked!r} in {url!r}: expected FULL, NORMAL or OFF")
    return SqliteStore(
        unquote(place[1:]) or ":memory:",
        namespace=namespace,
        synchronous=safety,
        timeout=_seconds(options.get("timeout", "10"), url),
    )


def _mongo(url: str, namespace: str) -> Store:
    try:
        from windlass.stores.mongo.connection import Place
        from windlass.stores.mongo.store import MongoStore
    except ModuleNotFoundError as error:
        if error.name not in ("pymongo", "bson", "dns"):
            raise
        raise SettingsError(f"{redact_url(url)!r} needs pymongo: pip install windlass[mongo]") from None
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    options = parse_qsl(query, keep_blank_values=True)
    timeout = next((value for name, value in options if name == "timeout"), "10")
    asked = "&".join(part for part in query.split("&") if part.partition("=")[0] != "timeout")
    hosts, _, database = place.rpartition("@")[2].partition("/")
    if not hosts:
        raise SettingsError(
            f"the store URL {redact_url(url)!r} names no host: expected one like mongodb://localhost/shop"
        )
    name = unquote(database) or "windlass"
    if not name.isprintable() or set(name) & set('/\\. "$*<>:|?'):
        raise SettingsError(f"{name!r} in {redact_url(url)!r} cannot be the name of a MongoDB database")
    return MongoStore(
        Place(
            url=f"{scheme}://{place}{'' if '/' in place.rpartition('@')[2] else '/'}{'?' if asked else ''}{asked}",
            address=f"{scheme}://{hosts}/{name}",
            database=name,
            namespace=namespace,
            timeout=_seconds(timeout, redact_url(url)),
        )
    )


_POOLERS: dict[str, bool | None] = {"auto": None, "yes": True, "no": False}


def _postgres(url: str, namespace: str) -> Store:
    try:
        from windlass.stores.postgres.connection import Place
        from windlass.stores.postgres.store import PostgresStore
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise SettingsError(f"{redact_url(url)!r} needs asyncpg: pip install windlass[postgres]") from None
    place, _, query = url.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    schema, timeout = options.get("schema"), options.get("timeout", "10")
    if schema is not None and (not 0 < len(schema.encode()) <= 63 or not schema.isprintable()):
        raise SettingsError(f"schema is {schema!r} in {redact_url(place)!r}: expected 1 to 63 bytes of printable text")
    pooler = options.get("pooler", "auto")
    if pooler not in _POOLERS:
        raise SettingsError(f"pooler is {pooler!r} in {redact_url(place)!r}: expected {', '.join(_POOLERS)}")
    own = ("schema", "timeout", "pooler")
    rest = "&".join(part for part in query.split("&") if part and part.partition("=")[0] not in own)
    return PostgresStore(
        Place(
            url=f"{place}?{rest}" if rest else place,
            address=redact_url(place),
            schema=schema,
            namespace=namespace,
            timeout=_seconds(timeout, redact_url(place)),
            pooler=_POOLERS[pooler],
        )
    )


_REDIS_OPTIONS = ("timeout", "db", "health_check_interval", "socket_keepalive")


def _redis(url: str, namespace: str) -> Store:
    try:
        from windlass.stores.redis.connection import Place
        from windlass.stores.redis.store import RedisStore
    except ModuleNotFoundError as error:
        if error.name not in ("redis", "hiredis"):
            raise
        raise SettingsError(f"{redact_url(url)!r} needs redis: pip install windlass[redis]") from None
    place, _, query = url.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    unknown = [name for name in options if name not in _REDIS_OPTIONS and not name.startswith("ssl_")]
    if unknown:
        raise SettingsError(
            f"{redact_url(place)!r} sets {', '.join(sorted(unknown))}:"
            f" a Redis URL takes {', '.join(_REDIS_OPTIONS)} and ssl_*"
        )
    timeout = options.get("timeout", "10")
    rest = "&".join(part for part in query.split("&") if part and part.partition("=")[0] != "timeout")
    return RedisStore(
        Place(
            url=f"{place}?{rest}" if rest else place,
            address=redact_url(place),
            namespace=namespace,
            timeout=_seconds(timeout, redact_url(place)),
        )
    )


def _seconds(text: str, url: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 3600:  # an hour
        raise SettingsError(f"timeout is {text!r} in {url!r}: expected seconds from 0 to 3600")
    return value
