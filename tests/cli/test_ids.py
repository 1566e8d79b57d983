"""Ids on the command line: whole, or as much of the beginning as is enough."""

from __future__ import annotations

import pytest

from tests.cli.support import Shop
from tests.support.drafts import draft
from windlass import Windlass

FIRST = "01a1eddf-6bdc-7000-8000-93cebad4e4fa"
SECOND = "01a1eddf-6bdc-7000-8001-93cebad4e4fa"
THIRD = "01a1eddf-ffff-7000-8000-93cebad4e4fa"
OLDER = "01a1edde-ffff-7000-8000-93cebad4e4fa"


@pytest.fixture
def ids(shop: Shop) -> None:
    async def insert(app: Windlass) -> None:
        store = await app.client.ready()
        await store.jobs.insert([draft(id=one) for one in (OLDER, FIRST, SECOND, THIRD)])

    shop.ask(insert)


@pytest.mark.usefixtures("ids")
@pytest.mark.parametrize("prefix", [THIRD, "01a1eddf-f", "01A1EDDF-FF", "01a1eddf-ffff-7000-8000-93cebad4e4f"])
def test_a_unique_beginning_is_enough(shop: Shop, prefix: str) -> None:
    assert shop.call("job", prefix, "--json").fact["id"] == THIRD
    assert shop.call("explain", prefix, "--json").fact["id"] == THIRD


@pytest.mark.usefixtures("ids")
def test_every_command_that_takes_ids_takes_beginnings(shop: Shop) -> None:
    for command in ("cancel", "retry", "cancel"):
        assert shop.call(command, "01a1eddf-f", "01a1edde", "--json").facts[0]["id"] == THIRD
    assert shop.call("wait", "01a1eddf-f").code == 6
    assert shop.call("replay", "01a1eddf-f", "--json").code == 0
    assert shop.call("delete", "01a1edde", "--json").fact["id"] == OLDER


@pytest.mark.usefixtures("ids")
def test_an_ambiguous_beginning_names_the_candidates_and_does_nothing(shop: Shop) -> None:
    said = shop.call("cancel", THIRD, "01a1eddf-6bdc")
    assert said.code == 2
    assert said.err.startswith("error: 01a1eddf-6bdc is the beginning of several ids: ")
    assert FIRST in said.err
    assert SECOND in said.err
    assert THIRD not in said.err
    assert shop.call("job", THIRD, "--json").fact["status"] == "queued"
    many = shop.call("job", "01a1eddf")
    assert many.code == 2


def test_of_very_many_candidates_some_are_named(shop: Shop) -> None:
    async def insert(app: Windlass) -> None:
        store = await app.client.ready()
        await store.jobs.insert([draft(id=f"01a1eddf-6bdc-7000-8000-{n:012x}") for n in range(20)])

    shop.ask(insert)
    said = shop.call("job", "01a1eddf")
    assert said.err.count("01a1eddf-6bdc-7000") == 5
    assert "and more" in said.err


@pytest.mark.usefixtures("ids")
def test_a_beginning_of_no_job_is_not_found(shop: Shop) -> None:
    for prefix in ("01a1eddf-7", "ffffffff", "00000000"):
        said = shop.call("job", prefix)
        assert said.code == 4
        assert prefix in said.err


@pytest.mark.usefixtures("ids")
@pytest.mark.parametrize("text", ["01a1edd", "", "hello-you", "01a1eddf6bdc", "01a1eddf-6bdc-7000-8000-93cebad4e4fa0"])
def test_what_is_too_short_or_no_id_is_a_usage_error(shop: Shop, text: str) -> None:
    said = shop.call("job", text)
    assert said.code == 2
    assert "expected a job's id, or at least its first 8 characters" in said.err
