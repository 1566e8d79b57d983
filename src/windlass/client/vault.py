"""The vault: seals the secrets of jobs by AES-256 in GCM, under keys that rotate. The only room that knows a cipher.

The newest key seals; every key that is there opens. What is sealed names its key, and holds only under the type and the
place that it was sealed for.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from typing import TYPE_CHECKING, Any

from windlass.core.errors import SecretUnreadable, SettingsError
from windlass.core.sealing import FORM, KEYS

if TYPE_CHECKING:
    from collections.abc import Sequence

BYTES = 32
"""of a key"""
_NONCE = 12
_NAMED = 8
"""digits of a key's id"""


def new_key() -> str:
    """A key as the settings take it."""
    return base64.urlsafe_b64encode(secrets.token_bytes(BYTES)).decode().rstrip("=")


def id_of(key: bytes) -> str:
    """What names a key where its ciphertexts are."""
    return hmac.digest(key, b"windlass: the id of this key", "sha256").hex()[:_NAMED]


def key_of(sealed: str) -> str:
    """The id of the key that something was sealed with."""
    return sealed.removeprefix(FORM).partition(".")[0][:_NAMED]


class Vault:
    """Seals and opens with the keys it was given, the newest first. Ciphers are made when they are needed."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = {id_of(key): key for key in keys}
        self._ciphers: dict[str, Any] = {}
        # By the oldest key: while a new one is brought to all processes, and until the old one is taken away, the same
        # arguments have the same digest everywhere.
        self._digesting = hmac.digest(keys[-1], b"windlass: digests of contents", "sha256") if keys else None

    @property
    def key_ids(self) -> tuple[str, ...]:
        """Of all keys, the one that seals first."""
        return tuple(self._keys)

    def seal(self, text: str, place: str) -> str:
        """Encrypt a text for a place; SettingsError where there is no key."""
        if not self._keys:
            raise SettingsError(
                f"there is no key to seal a secret with: set {KEYS} (windlass secrets new-key makes one)"
            )
        name = next(iter(self._keys))
        nonce = secrets.token_bytes(_NONCE)
        sealed = nonce + self._cipher(name).encrypt(nonce, text.encode(), place.encode())
        return f"{FORM}{name}.{base64.urlsafe_b64encode(sealed).decode().rstrip('=')}"

    def open(self, sealed: str, place: str) -> str:
        """Decrypt what was sealed for this place; SecretUnreadable."""
        name, _, body = sealed.removeprefix(FORM).partition(".")
        if name not in self._keys:
            raise SecretUnreadable(f"it is sealed with key {name[:_NAMED]!r}, which is not among {KEYS} here")
        try:
            raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
            opened: bytes = self._cipher(name).decrypt(raw[:_NONCE], raw[_NONCE:], place.encode())
            return opened.decode()
        except SettingsError:
            raise
        except Exception:  # noqa: BLE001  # whatever the cipher says of it, it is not what was sealed for this place
            raise SecretUnreadable("it was changed, or is not what was sealed for this type and place") from None

    def digest(self, text: str) -> str:
        """An HMAC-SHA256 of the text; SettingsError where there is no key."""
        if self._digesting is None:
            raise SettingsError(f"there is no key to compare secrets with: set {KEYS}")
        return hmac.digest(self._digesting, text.encode(), "sha256").hex()

    def check(self) -> None:
        """SecretUnreadable where nothing can be sealed here."""
        if not self._keys:
            raise SecretUnreadable(f"there are no keys here: set {KEYS}")

    def _cipher(self, name: str) -> Any:
        cipher = self._ciphers.get(name)
        if cipher is None:
            try:
                from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # only who has secrets loads it
            except ImportError as error:
                raise SettingsError(
                    f'secrets need the extra "secrets": pip install "windlass[secrets]" ({error})'
                ) from error
            cipher = self._ciphers[name] = AESGCM(self._keys[name])
        return cipher
