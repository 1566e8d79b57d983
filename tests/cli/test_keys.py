"""`windlass keys`: made once, listed, revoked."""

from __future__ import annotations

import re

from tests.cli.support import Shop


def test_a_key_is_made_and_its_secret_shown_once(shop: Shop) -> None:
    made = (
        "keys",
        "create",
        "nightly",
        "--owner",
        "ada",
        "--scope",
        "enqueue,read",
        "--types",
        "mail.*",
        "--expires",
        "90d",
    )
    secret = shop.ok("--quiet", *made)
    assert re.fullmatch(r"wl_[0-9a-f]{12}_[\w-]{43}", secret)
    shown = shop.ok("keys")
    assert secret not in shown
    for word in ("nightly", "ada", "enqueue, read", "mail.*", "never", "until 20"):
        assert word in shown
    key = shop.call("--json", "keys").fact
    assert (key["owner"], key["scopes"], key["types"], key["queues"]) == ("ada", ["enqueue", "read"], ["mail.*"], None)
    again = shop.call("--json", *made).fact
    assert again["secret"].startswith(f"wl_{again['id']}_")


def test_a_key_is_revoked(shop: Shop) -> None:
    key = shop.call("--json", "keys", "create", "x", "--owner", "*", "--scope", "admin").fact
    assert "revoked" in shop.ok("keys", "revoke", key["id"])
    assert "revoked" in shop.ok("keys")
    missing = shop.call("keys", "revoke", "nobody")
    assert (missing.code, "nobody" in missing.err) == (4, True)


def test_what_is_missing_or_wrong_is_told(shop: Shop) -> None:
    assert "no keys yet" in shop.ok("keys")
    for words in (["create"], ["create", "x"], ["create", "x", "y", "--owner", "a"], ["revoke"]):
        assert shop.call("keys", *words).code == 2
    wrong = shop.call("keys", "create", "x", "--owner", "a", "--scope", "fly")
    assert "expected one of enqueue, read, operate, admin" in wrong.err
