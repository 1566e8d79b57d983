"""`windlass secrets`: keys made, and what is sealed with which; and what the other commands show of secrets."""

from __future__ import annotations

import asyncio

import pytest

from tests.cli.support import Shop
from windlass import Secret, Windlass
from windlass.client.vault import id_of
from windlass.settings import read_keys

CANARY = "canary-5f0c"


async def enqueue(shop: Shop, key: str) -> str:
    app = Windlass(f"sqlite:///{shop.home / 'shop.db'}", secret_keys=[key])

    @app.job
    async def charge(token: Secret[str], to: str = "ann") -> None: ...

    async with app:
        return (await charge.enqueue(Secret(CANARY))).id


def test_keys_are_made_and_what_is_sealed_with_them_is_told(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    newer, older = (
        shop.ok("--quiet", "secrets", "new-key").strip(),
        shop.call("--json", "secrets", "new-key").fact["key"],
    )
    ids = [id_of(key) for key in read_keys(f"{newer} {older}")]
    job = asyncio.run(enqueue(shop, older))
    monkeypatch.setenv("WINDLASS_SECRET_KEYS", newer)
    facts = shop.call("--json", "secrets").facts
    assert [(fact["key"], fact["state"], fact["jobs"]) for fact in facts] == [
        (ids[0], "seals", 0),
        (ids[1], "is not here", 1),
    ]
    monkeypatch.setenv("WINDLASS_SECRET_KEYS", f"{newer},{older}")
    shown = shop.ok("secrets")
    for word in (*ids, "seals", "opens"):
        assert word in shown
    assert newer not in shown
    assert older not in shown
    for words in (("job", job), ("--json", "job", job), ("job", job, "--payload"), ("jobs",), ("--json", "jobs")):
        shown = shop.ok(*words)
        assert CANARY not in shown
        assert "wl1." not in shown


def test_without_any_it_says_how_to_make_one(shop: Shop) -> None:
    asyncio.run(_migrated(shop))
    assert "windlass secrets new-key" in shop.ok("secrets")


async def _migrated(shop: Shop) -> None:
    async with Windlass(f"sqlite:///{shop.home / 'shop.db'}"):
        return
