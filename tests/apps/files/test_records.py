"""Records on every store: a change is one step, whoever else changes the same file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.apps.files.test_state import made, placed
from tests.contract.places import Place
from tests.control.conftest import address
from windlass import SettingsError, StoreUnavailable
from windlass.apps.files.names import Name, Space, name_of
from windlass.apps.files.records.places import records_at
from windlass.apps.files.records.records import PathTaken, Records
from windlass.apps.files.state import State

NAME = name_of("ann", "shop", "Über {x} 100%.js")


def issued(state: State) -> tuple[State, int]:
    state = placed(state)
    return state, state.issued


async def test_what_was_changed_is_read(records: Records) -> None:
    assert await records.read(NAME) is None
    assert await records.change(NAME, issued) == 1
    assert await records.read(NAME) == placed(State())
    assert await records.read(NAME._replace(file="other")) is None
    assert await records.read(NAME._replace(space=Space("", "shop"))) is None


async def test_no_change_is_lost_that_was_made_at_the_same_moment(records: Records, place: Place) -> None:
    other = records_at(*address(place))
    try:
        given = await asyncio.gather(*(which.change(NAME, issued) for which in (records, other) for _ in range(16)))
    finally:
        await other.close()
    assert sorted(given) == list(range(1, 33))
    state = await records.read(NAME)
    assert state is not None
    assert (state.issued, len(state.waiting)) == (32, 32)


async def test_a_change_that_is_refused_changes_nothing_and_no_other_beside_it(records: Records) -> None:
    def refuse(state: State) -> tuple[State, int]:
        raise ValueError(state.issued)

    calls = [records.change(NAME, issued), records.change(NAME, refuse), records.change(NAME, issued)]
    told = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(told[1], ValueError)
    assert sorted(str(one) for one in (told[0], told[2])) == ["1", "2"]


async def test_a_place_on_disk_is_one_files_of_its_project(records: Records) -> None:
    def at(path: str | None) -> Callable[[State], tuple[State, None]]:
        return lambda state: (replace(placed(state), disk=path), None)

    other = NAME._replace(file="other")
    await records.change(NAME, at("a/b"))
    with pytest.raises(PathTaken):
        await records.change(other, at("a/b"))
    assert await records.read(other) is None
    await records.change(other._replace(space=Space("bob", "shop")), at("a/b"))
    await records.change(NAME, at("c"))
    await records.change(other, at("a/b"))
    with pytest.raises(PathTaken):
        await records.change(NAME, at("a/b"))


async def test_what_a_project_takes_is_counted_with_what_waits(records: Records) -> None:
    assert await records.usage(NAME.space) == (0, 0)
    for file in ("b", "a", "c"):
        await records.change(NAME._replace(file=file), lambda state: (made(placed(state, 3), 1, 2), None))
    assert await records.usage(NAME.space) == (3, 3 * (1 + 2 + 1))
    await records.change(NAME._replace(file="c"), lambda state: (replace(state, waiting=(), versions=()), None))
    assert await records.usage(NAME.space) == (2, 8)
    assert await records.usage(Space("", "shop")) == (0, 0)


async def test_projects_and_files_are_listed_page_by_page(records: Records) -> None:
    spaces = [Space("", "p1"), Space("", "p2"), Space("ann", "p1"), Space("ann", "q"), Space("anna", "p1")]
    for space in spaces:
        for file in ("b", "a"):
            await records.change(Name(space, file), issued)
    assert [one.space for one in await records.projects(None, None, 10)] == spaces
    assert [one.space for one in await records.projects(None, spaces[1], 2)] == spaces[2:4]
    assert [one.space for one in await records.projects("ann", None, 10)] == spaces[2:4]
    assert [one.space for one in await records.projects("ann", spaces[2], 10)] == [spaces[3]]
    [first, *_] = await records.projects(None, None, 1)
    assert (first.files, first.bytes, first.waiting) == (2, 2, 2)
    listed = await records.files(spaces[2], "", 10)
    assert [one.name.file for one in listed] == ["a", "b"]
    assert [one.name.file for one in await records.files(spaces[2], "a", 1)] == ["b"]
    assert listed[0].state == placed(State())
    walked = {one.name async for one in records.walk()}
    assert walked == {Name(space, file) for space in spaces for file in ("a", "b")}


async def test_preparing_twice_at_once_does_no_harm(place: Place) -> None:
    several = [records_at(*address(place)) for _ in range(3)]
    try:
        await asyncio.gather(*(one.prepare() for one in several))
        await several[0].change(NAME, issued)
        await several[1].prepare()
        assert await several[2].read(NAME) is not None
    finally:
        for one in several:
            await one.close()


@pytest.mark.parametrize(
    "url", ["postgresql://127.0.0.1:1/x", "redis://127.0.0.1:1/0", "sqlite:////proc/none.db", "sqlite:///:memory:"]
)
async def test_a_database_that_is_away_is_told(url: str) -> None:
    with pytest.raises((StoreUnavailable, SettingsError), match="records of files cannot"):
        records = records_at(url, "windlass")
        try:
            await records.prepare()
        finally:
            await records.close()
