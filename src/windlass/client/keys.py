"""`app.keys`: what lets programs and people in. A secret is shown once, when it is made; only its SHA-256 is kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from windlass.core.errors import SettingsError
from windlass.core.grants import Grants
from windlass.core.keys import check_key, shown
from windlass.core.signals import as_duration
from windlass.stores.contract import KeyKind, NewKey, Scope

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import timedelta

    from windlass.client.client import Client
    from windlass.stores.contract import Key

Scopes: TypeAlias = "Collection[Scope | str]"
KindOrScope = TypeVar("KindOrScope", KeyKind, Scope)

PREFIX = "wl"
_LONGEST = 200  # characters: nobody's secret is longer, and hashing a stranger's megabytes is work
_ID_BYTES, _SECRET_BYTES = 6, 32
_PARTS = 3


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A key that was just made, with its secret: show it to its owner now, nobody can read it later."""

    key: Key
    secret: str

    def __repr__(self) -> str:
        """Without the secret: it may be logged."""
        return f"CreatedKey({self.key!r}, secret='{PREFIX}_{self.key.id}_…')"


class KeysRoom:
    """API keys and sessions."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def create(
        self,
        name: str,
        *,
        owner: str,
        scopes: Scopes,
        lasts: float | timedelta | None = None,
        queues: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        attributes: Mapping[str, Any] | None = None,
        kind: KeyKind | str = KeyKind.KEY,
    ) -> CreatedKey:
        """Make a key, or a session with `kind="session"`; it lasts so many seconds, or until it is revoked.

        The secret is `wl_`, the key's id, and 256 random bits. Scopes are some of enqueue, read, operate and admin.
        `queues` and `types` limit it to these; a star at the end of a name stands for all that begin so. `attributes`
        are plain JSON values for the application, such as {"premium": True}: windlass itself does not read them.
        """
        id_ = secrets.token_hex(_ID_BYTES)
        secret = f"{PREFIX}_{id_}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        new = NewKey(
            id=id_,
            hash=_hashed(secret),
            kind=_one_of(KeyKind, kind, "the kind"),
            owner=check_key(owner, "the owner"),
            name=check_key(name, "the name"),
            scopes=frozenset(_one_of(Scope, scope, "a scope") for scope in _several(scopes)),
            lasts=None if lasts is None else as_duration(lasts, "lasts"),
            grants=Grants.made(queues, types, attributes),
        )
        return CreatedKey(await (await self._client.ready()).keys.put(new), secret)

    async def find(self, secret: str) -> Key | None:
        """The key with this secret, if it lets in now: None where it is unknown, was revoked or has expired."""
        parts = secret.split("_", _PARTS - 1) if len(secret) <= _LONGEST else []
        if len(parts) != _PARTS or parts[0] != PREFIX:
            return None
        key = await (await self._client.ready()).keys.find(_hashed(secret))
        same = hmac.compare_digest((key.id if key else "").encode(), parts[1].encode())
        return key if same else None

    async def list(self) -> Sequence[Key]:
        """Every key, the newest first, also those that let nobody in any more; of sessions these go after a while."""
        return await (await self._client.ready()).keys.list()

    async def touch(self, *ids: str) -> None:
        """Note that these were used; written at most once a minute for each."""
        await (await self._client.ready()).keys.touch(ids)

    async def revoke(self, *ids: str) -> Sequence[str]:
        """Let these in no more, from now on, nor sessions that were begun with them; gives the ids of these keys."""
        keys = (await self._client.ready()).keys
        revoked = await keys.revoke(ids)
        begun = {begun_with(id_) for id_ in revoked}
        sessions = [key.id for key in await keys.list() if key.kind is KeyKind.SESSION and key.name in begun]
        if sessions:
            await keys.revoke(sessions)
        return revoked


def begun_with(key: str) -> str:
    """The name of a session that was begun with a key, which ends with it."""
    return f"key:{key}"


def _hashed(secret: str) -> str:
    # A random secret of this length needs no slow hash: nobody can try enough of them.
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _several(scopes: Scopes) -> Scopes:
    if isinstance(scopes, str):
        raise SettingsError(f"scopes is the text {shown(scopes)}: expected several, such as [{scopes!r}]")
    return scopes


def _one_of(kinds: type[KindOrScope], value: str, of: str) -> KindOrScope:
    try:
        return kinds(value)
    except ValueError:
        known = ", ".join(one.value for one in kinds)
        raise SettingsError(f"{of} is {shown(value)}: expected one of {known}") from None
