"""Code compared with what is in the store, on every store."""

from __future__ import annotations

import pytest

from tests.control.test_catalogue import announced
from tests.support.until import until
from windlass import Windlass

pytestmark = pytest.mark.timeout(60)


async def test_new_code_is_told_what_it_could_not_read_and_what_differs(app: Windlass, another: Windlass) -> None:
    @app.job(queue="mail")
    async def send(to: str) -> str:
        return to

    @app.job
    async def total(parts: list[str]) -> int:
        return len(parts)

    await announced(app)
    jobs = [await send.enqueue(name) for name in "abc"]
    await send.using(delay=60).enqueue("later")
    done = await send.enqueue("cancelled")
    await done.cancel()
    await app.group([send.bind("d"), send.bind("e")]).then(total).enqueue()

    @another.job(name="send", queue="post")
    async def newer(to: int) -> str:
        return str(to)

    found = await another.types.compare()
    assert not found.fine
    assert (found.looked_at, found.complete, found.unreadable_in_all) == (7, True, 6)
    assert [one.job_id for one in found.unreadable][:3] == [job.id for job in jobs], "the oldest first"
    assert {(one.type, one.queue) for one in found.unreadable} == {("send", "mail")}
    assert "to: Input should be a valid integer" in found.unreadable[0].reason
    [changed] = found.changed
    assert changed.what == ("queue: mail → post", "payload: to is of another type")
    [gone] = found.missing
    assert (gone.type, gone.waiting) == ("total", 1)
    assert gone.last_seen is not None

    part = await another.types.compare(most=2)
    assert (part.looked_at, part.complete, part.unreadable_in_all) == (2, False, 2)

    same = await app.types.compare()
    assert same.fine, "also the job that takes results which are still to come"
    assert (same.changed, same.missing, same.new) == ((), (), ())


async def test_how_types_stand(app: Windlass, another: Windlass) -> None:
    @app.job(queue="mail")
    async def send(to: str) -> str:
        return to

    await send.using(delay=60).enqueue("ann")
    async with app.worker():

        async def seen() -> bool:
            return bool([state for state in await another.types.overview() if state.workers])

        await until(seen, "the worker to have shown itself")
        [state] = await another.types.overview()
        assert (state.type, len(state.versions), state.workers, state.waiting.n) == ("send", 1, 1, 1)
    [state] = await another.types.overview("send")
    assert state.workers == 0
    assert await another.types.overview("unheard") == []
