"""Signers: the public keys of those whose tokens are good, from a file or an address, and kept for a while."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWTError

from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.web.problems import Kind, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

LOG = logging.getLogger("windlass.web")
FRESH = 600.0
"""seconds after which they are read again"""
FLOOR = 30.0
"""seconds between two reads, however many tokens name a key that nobody knows"""
LARGEST = 256 * 1024
"""bytes"""
WEAKEST = 2048
"""bits of an RSA key"""
_WITHIN = 5.0  # seconds for an answer
_UNKNOWN = Kind(503, "signers-unknown", "Nobody knows by now whose tokens are good", retry_after=30)
_KINDS = {"RS256": ("RSA", None), "ES256": ("EC", "P-256")}
_PUBLIC = frozenset({"kty", "n", "e", "crv", "x", "y"})


class Signers:
    """The keys of one JSON Web Key Set, each good for the one algorithm that fits it."""

    def __init__(self, place: str, algorithms: Collection[str], clock: Callable[[], float] = time.monotonic) -> None:
        check_place(place, "the place of the key set")
        self._place, self._algorithms, self._clock = place, algorithms, clock
        self._keys: list[PyJWK] | None = None
        self._good_at = self._read_at = -FRESH
        self._reading: asyncio.Task[None] | None = None

    async def find(self, key_id: str | None, algorithm: str) -> PyJWK | None:
        """The key of this name; without a name, the only one there is.

        A name that nobody knows has them read again, as a signer may have got a new key since.
        """
        if self._keys is None:
            await self._refreshed()
        elif self._clock() - self._good_at >= FRESH:
            self._refresh()  # beside the request: those that are known are good meanwhile
        if self._keys is None:
            raise Refused(_UNKNOWN, "the keys of those who sign tokens cannot be read: try again later")
        found = _chosen(self._keys, key_id, algorithm)
        if found is None and key_id is not None:
            await self._refreshed()
            found = _chosen(self._keys, key_id, algorithm)
        return found

    async def _refreshed(self) -> None:
        self._refresh()
        if self._reading is not None:
            await asyncio.shield(self._reading)  # one of many that wait may go away

    def _refresh(self) -> None:
        if self._reading is not None and not self._reading.done():
            return
        if self._clock() - self._read_at < FLOOR:
            return
        self._read_at = self._clock()
        self._reading = asyncio.create_task(self._read(), name="windlass-signers")

    async def _read(self) -> None:
        try:
            self._keys = _keys(await asyncio.to_thread(_text, self._place), self._algorithms)
            self._good_at = self._read_at
        except (OSError, ValueError, TypeError, RecursionError) as error:
            kept = "those read before stay good" if self._keys else "no token is good without them"
            LOG.warning("the keys of those who sign tokens cannot be read, %s: %s", kept, error)


def check_place(place: str, of: str) -> str:
    """A path, or an address that nobody on the way can change."""
    if "://" not in place:
        return place
    address = urlsplit(place)
    safe = address.scheme == "https" or (address.scheme == "http" and is_here(address.hostname or ""))
    if not safe or not address.hostname or address.username is not None:
        raise SettingsError(f"{of} is {shown(place)}: expected a path or an https:// URL without a user in it")
    return place


def is_here(host: str) -> bool:
    """Whether a host name or address is this machine's own, whatever a resolver says."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class _Stay(HTTPRedirectHandler):
    """Goes where it was sent, and nowhere else."""

    def redirect_request(self, *_args: Any, **_words: Any) -> None:
        return None


def _text(place: str) -> bytes:
    if "://" not in place:
        return Path(place).read_bytes()[: LARGEST + 1]
    request = Request(place, headers={"Accept": "application/json"})  # noqa: S310  # check_place has seen it
    with build_opener(_Stay).open(request, timeout=_WITHIN) as answer:
        found: bytes = answer.read(LARGEST + 1)
    return found


def _keys(text: bytes, algorithms: Collection[str]) -> list[PyJWK]:
    if len(text) > LARGEST:
        raise ValueError(f"there are more than {LARGEST:,} bytes")
    whole: object = json.loads(text)
    listed: object = cast("dict[str, Any]", whole).get("keys") if isinstance(whole, dict) else None
    if not isinstance(listed, list):
        raise ValueError('expected a JSON object with the member "keys"')  # noqa: TRY004  # a text that is wrong
    found = [_key(one, algorithm) for one in cast("list[object]", listed) for algorithm in algorithms]
    return [key for key in found if key is not None]


def _key(one: object, algorithm: str) -> PyJWK | None:
    """The key, if it is one that verifies this algorithm's signatures."""
    members = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
    if (members.get("kty"), members.get("crv")) != _KINDS[algorithm]:
        return None
    if members.get("use", "sig") != "sig" or members.get("alg", algorithm) != algorithm:
        return None
    if "verify" not in members.get("key_ops", ["verify"]):
        return None
    name = members.get("kid")
    public = {part: value for part, value in members.items() if part in _PUBLIC}
    try:
        key = PyJWK({**public, **({"kid": name} if isinstance(name, str) else {})}, algorithm)
    except (PyJWTError, ValueError, TypeError) as error:
        LOG.warning("a key of those who sign tokens cannot be used: %s", error)
        return None
    if isinstance(key.key, RSAPublicKey) and key.key.key_size < WEAKEST:
        LOG.warning("a key of those who sign tokens has only %s bits: %s are needed", key.key.key_size, WEAKEST)
        return None
    return key


def _chosen(keys: list[PyJWK], key_id: str | None, algorithm: str) -> PyJWK | None:
    named = [key for key in keys if key_id in (None, key.key_id) and key.algorithm_name == algorithm]
    return named[0] if len(named) == 1 else None
