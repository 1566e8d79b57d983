from __future__ import annotations

import pytest

from windlass import SecretUnreadable, SettingsError
from windlass.client.vault import Vault, id_of, key_of, new_key
from windlass.settings import read_keys

CANARY = "canary-5f0c"


def keys(n: int) -> tuple[bytes, ...]:
    return read_keys("\n".join(new_key() for _ in range(n)))


def test_what_is_sealed_opens_at_its_place_alone() -> None:
    vault = Vault(keys(1))
    sealed = vault.seal(CANARY, "here")
    assert CANARY not in sealed
    assert vault.open(sealed, "here") == CANARY
    with pytest.raises(SecretUnreadable, match="changed, or is not what was sealed for this"):
        vault.open(sealed, "there")


def test_the_same_text_is_sealed_differently_each_time() -> None:
    vault = Vault(keys(1))
    assert vault.seal(CANARY, "here") != vault.seal(CANARY, "here")


@pytest.mark.parametrize("at", [-1, -20, 14, 30])
def test_a_changed_character_is_noticed(at: int) -> None:
    vault = Vault(keys(1))
    sealed = vault.seal(CANARY, "here")
    # The first bit of six: the last character of base64 may have bits that mean nothing.
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = digits[digits.index(sealed[at]) ^ 32]
    forged = sealed[:at] + other + (sealed[at + 1 :] if at != -1 else "")
    with pytest.raises(SecretUnreadable):
        vault.open(forged, "here")


@pytest.mark.parametrize("text", ["wl1.", "wl1..", "wl1.x.y.z", "wl1.{id}.", "wl1.{id}.\u00fc", "wl1.{id}.AAAA"])
def test_what_was_never_sealed_is_unreadable(text: str) -> None:
    [key] = keys(1)
    with pytest.raises(SecretUnreadable):
        Vault([key]).open(text.format(id=id_of(key)), "here")


def test_keys_rotate() -> None:
    [old, new] = keys(2)
    before, after, later = Vault([old]), Vault([new, old]), Vault([new])
    sealed = before.seal(CANARY, "here")
    assert after.open(sealed, "here") == CANARY
    assert key_of(after.seal(CANARY, "here")) == id_of(new) == after.key_ids[0]
    with pytest.raises(SecretUnreadable, match=f"key '{id_of(old)}', which is not among WINDLASS_SECRET_KEYS here"):
        later.open(sealed, "here")
    # While both are there a digest is that of before.
    assert before.digest("x") == after.digest("x") != later.digest("x")


def test_a_digest_is_of_its_key_alone() -> None:
    one, other = Vault(keys(1)), Vault(keys(1))
    assert one.digest(CANARY) == one.digest(CANARY) != other.digest(CANARY)


def test_without_keys_nothing_is_sealed() -> None:
    vault = Vault(())
    with pytest.raises(SettingsError, match="set WINDLASS_SECRET_KEYS"):
        vault.seal("x", "here")
    with pytest.raises(SettingsError, match="set WINDLASS_SECRET_KEYS"):
        vault.digest("x")
    with pytest.raises(SecretUnreadable, match="WINDLASS_SECRET_KEYS"):
        vault.open("wl1.x.y", "here")
    with pytest.raises(SecretUnreadable):
        vault.check()
    Vault(keys(1)).check()


def test_a_vault_shows_no_key() -> None:
    [key] = keys(1)
    assert repr(key) not in repr(Vault([key]))
    assert key.hex()[:8] != id_of(key)
