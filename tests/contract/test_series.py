"""Series: texts by name and instant, and minutes between two instants, on every store."""

from __future__ import annotations

from datetime import timedelta

from tests.contract.steps import finish
from windlass.stores.contract import SERIES_KEPT, Retention, Store, together

MINUTE = timedelta(minutes=1)


async def test_texts_are_kept_by_name_and_instant(store: Store, other: Store) -> None:
    now = await store.now()
    for minutes, text in ((3, "first"), (1, "changed"), (2, '{"b": "\u00e9 \\u0000 1 2"}'), (1, "last")):
        await store.series.put("a", now - minutes * MINUTE, text)
    await store.series.put("b", now - MINUTE, "of another")
    kept = [(now - 3 * MINUTE, "first"), (now - 2 * MINUTE, '{"b": "\u00e9 \\u0000 1 2"}'), (now - MINUTE, "last")]
    assert list(await other.series.read("a", now - 3 * MINUTE)) == kept
    assert list(await other.series.read("a", now - 2 * MINUTE)) == kept[1:]
    assert list(await other.series.read("a", now - 3 * MINUTE, now - MINUTE)) == kept[:2]
    assert list(await other.series.read("a", now - 2 * MINUTE, now - 2 * MINUTE)) == []
    assert [text for _, text in await other.series.read("b", now - 9 * MINUTE)] == ["of another"]
    assert list(await other.series.read("c", now - 9 * MINUTE)) == []
    assert [await other.series.last(name) for name in "abc"] == [now - MINUTE, now - MINUTE, None]


async def test_what_is_older_than_minutes_is_pruned(store: Store) -> None:
    now = await store.now()
    for at in (now - SERIES_KEPT - MINUTE, now - SERIES_KEPT + MINUTE):
        await store.series.put("a", at, "text")
    await store.jobs.prune(Retention(), 10)
    kept = [at for at, _ in await store.series.read("a", now - 2 * SERIES_KEPT)]
    if store.capabilities.store == "mongo":
        assert kept[-1:] == [now - SERIES_KEPT + MINUTE]  # its server removes the other within a minute
    else:
        assert kept == [now - SERIES_KEPT + MINUTE]


async def test_minutes_are_read_between_two_instants(store: Store) -> None:
    assert await store.views.first_minute() is None
    job = await finish(store)
    assert job.finished_at is not None
    minute = job.finished_at.replace(second=0, microsecond=0)
    [of_job] = (await store.views.figures(5 * MINUTE)).minutes
    assert list(await store.views.ended(minute, minute + MINUTE)) == [of_job]
    assert list(await store.views.ended(minute - MINUTE, minute)) == []
    assert list(await store.views.ended(minute + MINUTE, minute + 2 * MINUTE)) == []
    assert await store.views.first_minute() == minute
    assert together([of_job, of_job])[0].n == 2
