"""From a URL to a store; its driver is imported only now."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from windlass.core.errors import SettingsError

if TYPE_CHECKING:
    from windlass.stores.contract import Store
    from windlass.stores.sqlite.engine import Synchronous

KNOWN = "sqlite:///jobs.db"
_SAFETY: dict[str, Synchronous] = {"FULL": "FULL", "NORMAL": "NORMAL", "OFF": "OFF"}


def store_at(url: str, *, namespace: str = "windlass", synchronous: str = "FULL") -> Store:
    """The store a URL names, not yet open."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise SettingsError(f"the store URL {redact(url)!r} cannot be read: {error}") from None
    if parts.scheme == "sqlite":
        return _sqlite(url, namespace, synchronous)
    raise SettingsError(f"the store URL {redact(url)!r} is of no known kind: expected one like {KNOWN}")


def redact(url: str) -> str:
    """The URL without its user and password, fit for logs and screens."""
    scheme, found, rest = url.partition("://")
    if not found:
        return url.rsplit("@", maxsplit=1)[-1]
    return f"{scheme}://{rest.rpartition('@')[2]}"


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
        raise SettingsError(f"{url!r} sets {', '.join(sorted(unknown))}: an SQLite URL takes synchronous and timeout")
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


def _seconds(text: str, url: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 3600:  # an hour
        raise SettingsError(f"timeout is {text!r} in {url!r}: expected seconds from 0 to 3600")
    return value
