"""`windlass keys`: made once, listed, revoked."""

from __future__ import annotations

import re

from tests.cli.support import Shop
from tests.support.until import until_sync


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
    assert again["key"].startswith(f"wl_{again['id']}_")


def test_what_the_application_is_to_know_of_its_holder_is_kept(shop: Shop) -> None:
    words = ("premium=true", "plan=gold", "seats=3", "note=a=b", 'regions=["eu"]')
    made = shop.call("--json", "keys", "create", "--owner", "ada", *(w for one in words for w in ("--attribute", one)))
    known = {"premium": True, "plan": "gold", "seats": 3, "note": "a=b", "regions": ["eu"]}
    assert (made.fact["attributes"], made.fact["name"]) == (known, "a key of ada")
    assert shop.call("--json", "keys").fact["attributes"] == known
    for wrong in (["premium"], ["=1"], ["a=1", "--attribute", "a=2"]):
        refused = shop.call("keys", "create", "--owner", "ada", "--attribute", *wrong)
        assert (refused.code, "--attribute" in refused.err) == (2, True)


def test_what_lets_in_no_more_is_listed_as_such(shop: Shop) -> None:
    shop.ok("keys", "create", "--owner", "ada", "--expires", "1ms", "--queues", "mail")
    until_sync(lambda: "expired 20" in shop.ok("keys"), "the key to have expired")
    assert "queue mail" in shop.ok("keys")


def test_a_key_is_revoked(shop: Shop) -> None:
    key = shop.call("--json", "keys", "create", "x", "--owner", "*", "--scope", "admin").fact
    assert "revoked" in shop.ok("keys", "revoke", key["id"])
    assert "revoked" in shop.ok("keys")
    missing = shop.call("keys", "revoke", "nobody")
    assert (missing.code, "nobody" in missing.err) == (4, True)


def test_what_is_missing_or_wrong_is_told(shop: Shop) -> None:
    assert "no keys yet" in shop.ok("keys")
    for words in (
        ["create"],
        ["create", "x"],
        ["create", "x", "y", "--owner", "a"],
        ["create", "--owner", ""],
        ["revoke"],
    ):
        assert shop.call("keys", *words).code == 2
    wrong = shop.call("keys", "create", "x", "--owner", "a", "--scope", "fly")
    assert "expected one of enqueue, read, operate, admin" in wrong.err
