from __future__ import annotations

import pytest

from tests.cli.support import Shop
from tests.support.apps import until_status, working
from windlass import Ctx, Status, Windlass

NOBODY = "0190a3c4-5d6e-7f80-9123-456789abcdef"


def waiting(shop: Shop, timeout: float | None = 3600) -> str:
    """A job that has a step behind it and waits for a signal."""

    async def begin(app: Windlass) -> str:
        @app.job
        async def order(ctx: Ctx) -> object:
            await ctx.step("number", int, "7")
            return await ctx.wait("approved", timeout)

        handle = await order.enqueue()
        async with working(app):
            await until_status(handle, Status.BLOCKED)
        return handle.id

    return shop.ask(begin)


def test_a_signal_frees_the_job_that_waits_for_it_and_the_first_counts(shop: Shop) -> None:
    job_id = waiting(shop)
    assert shop.ok("signal", job_id, "other", "text") == f"{job_id}  other: kept until it asks for it"
    told = shop.call("signal", job_id, "approved", '{"by": "eve"}', "--actor", "eve", "--json")
    assert told.fact == {"id": job_id, "signal": "approved", "freed": True}
    shown = shop.call("job", job_id, "--json").fact
    assert shown["kept"] == {"step:number": 7, "signal:other": "text", "signal:approved": {"by": "eve"}}
    assert (shown["history"][-1]["happened"], shown["history"][-1]["actor"]) == ("signalled", "eve")
    again = shop.call("signal", job_id, "approved")
    assert again.code == 5
    assert "has had the signal 'approved'" in again.err


def test_a_signal_to_nobody_or_to_one_that_has_ended_is_refused(shop: Shop) -> None:
    assert shop.call("signal", NOBODY, "approved").code == 4
    job_id = shop.ok("enqueue", "send")
    assert shop.call("signal", job_id, "no name\n").code == 2
    shop.ok("cancel", job_id)
    assert shop.call("signal", job_id, "approved").code == 5


def test_what_a_job_keeps_and_waits_for_is_shown(shop: Shop) -> None:
    job_id = waiting(shop)
    shown = shop.ok("job", job_id)
    assert "keeps     step:number  1 B" in shown
    assert "blocked   signal:approved until " in shown
    assert "suspended" in shown
    assert "keeps     step:number  7  1 B" in shop.ok("job", job_id, "--payload")
    said = shop.ok("explain", job_id)
    assert said.startswith("It waits for the signal approved until ")
    assert f'"windlass signal {job_id} approved" sends it' in said
    fact = shop.call("explain", job_id, "--json").fact
    assert (fact["why"], fact["until"] is not None) == ("signal", True)


def test_a_wait_without_an_end_is_not_given_one(shop: Shop) -> None:
    job_id = waiting(shop, None)
    assert "It waits for the signal approved; " in shop.ok("explain", job_id)
    assert shop.call("explain", job_id, "--json").fact["until"] is None
    assert "blocked   signal:approved\n" in shop.ok("job", job_id)


@pytest.mark.timeout(60)
def test_what_is_gathered_is_counted(shop: Shop) -> None:
    async def begin(app: Windlass) -> str:
        @app.job
        async def part(n: int) -> int:
            return n

        @app.job
        async def whole(ctx: Ctx) -> list[int]:
            delayed = part.using(delay=3600)
            return await ctx.gather("parts", [part.bind(1), *(delayed.bind(n) for n in (2, 3))])

        handle = await whole.enqueue()
        async with working(app):
            await until_status(handle, Status.BLOCKED)
            await app.worker(drain=True).run()
        return handle.id

    said = shop.ok("explain", shop.ask(begin))
    assert said.startswith("It waits for what it gathers as parts: 2 of 3 left, the first job ")
