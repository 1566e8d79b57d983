from __future__ import annotations

from dataclasses import replace

from tests.cli.support import Shop
from windlass import Windlass, cron
from windlass.stores.contract import Schedule, WorkerInfo


async def put(app: Windlass) -> None:
    rule = cron("0 9 * * mon-fri", tz="America/New_York")
    one = Schedule(
        name="morning",
        cron=rule,
        type="report",
        payload_json="{}",
        queue="default",
        next_tick=rule.after(await app.store.now()),
        declared=True,
    )
    await app.store.schedules.put([one, replace(one, name="other", declared=False)])


def test_schedules_are_shown_with_what_comes_next(shop: Shop) -> None:
    assert shop.ok("schedules") == "no schedules"
    shop.ask(put)
    said = shop.ok("schedules")
    assert all(
        part in said for part in ("morning", "America/New_York", "report", "09:00", "never", "orphan", "mon-fri")
    )
    told = shop.call("schedules", "--json").facts
    assert [(one["name"], one["orphan"]) for one in told] == [("morning", True), ("other", False)]
    assert len(told[0]["next_ticks"]) == 3


def test_a_declared_schedule_with_a_live_worker_is_no_orphan(shop: Shop) -> None:
    async def beat(app: Windlass) -> None:
        one = WorkerInfo(id="w", host="h", pid=1, version="1", queues=(), types=("report",), slots=1, running=0)
        await app.store.workers.beat(one)

    shop.ask(put)
    shop.ask(beat)
    assert shop.call("schedules", "list", "morning", "--json").fact["orphan"] is False


def test_schedules_are_paused_resumed_and_removed(shop: Shop) -> None:
    shop.ask(put)
    assert "paused" in shop.ok("schedules", "pause", "morning")
    assert shop.call("schedules", "list", "morning", "--json").fact["next_ticks"] == []
    assert "paused" not in shop.ok("schedules", "resume", "morning")
    assert "morning removed" in shop.ok("schedules", "remove", "morning")
    assert shop.call("schedules", "remove", "morning").code == 4
    assert shop.call("schedules", "pause").code == 2


def test_a_schedule_is_put_and_put_again(shop: Shop) -> None:
    words = ("schedules", "put", "ada", "--type", "hello", "--payload", "name=ada", "--tz", "Europe/Paris")
    said = shop.ok(*words, "--cron", "0 8 * * *", "-q", "mail", "--overlap", "queue", "--missed", "none")
    assert all(part in said for part in ("ada", "hello", "Europe/Paris", "08:00"))
    told = shop.call(*words, "--cron", "0 9 * * *", "--app", "shop:app", "--json").fact
    assert (told["cron"], told["queue"], told["overlap"]) == ("0 9 * * *", "default", "skip")

    async def look(app: Windlass) -> str:
        [one] = await app.schedules.list()
        return one.payload_json

    assert shop.ask(look) == '{"name":"ada"}'


def test_an_interval_is_put_and_shown(shop: Shop) -> None:
    words = ("schedules", "put", "poll", "--type", "hello", "--payload", "name=ada")
    said = shop.ok(*words, "--every", "30s", "--missed", "none")
    assert "every 30 s" in said
    assert "every 30s" not in said
    told = shop.call(*words, "--every", "1h30m", "--json").fact
    assert (told["cron"], told["described"], told["timezone"]) == ("every 90m", "every 90 m", "UTC")


def test_a_schedule_has_either_a_cron_expression_or_an_interval(shop: Shop) -> None:
    words = ("schedules", "put", "poll", "--type", "hello")
    assert "either --cron" in shop.call(*words).err
    assert "either --cron" in shop.call(*words, "--cron", "* * * * *", "--every", "30s").err
    assert "an interval has no zone" in shop.call(*words, "--every", "30s", "--tz", "Europe/Paris").err
    assert "whole seconds" in shop.call(*words, "--every", "1500ms").err
    assert "--every goes with put" in shop.call("schedules", "list", "--every", "30s").err


def test_the_job_of_a_schedule_is_run_now(shop: Shop) -> None:
    shop.ask(put)
    job_id = shop.ok("schedules", "run", "morning")
    assert shop.call("job", job_id, "--json").fact["schedule"] == "morning"
    assert shop.call("schedules", "run", "other", "--json").fact["schedule"] == "other"
    said = shop.call("schedules", "run", "morning", "evening")
    assert (said.code, "no schedule is called evening" in said.err, len(said.out.split())) == (4, True, 1)


def test_a_wrong_order_to_put_is_refused(shop: Shop) -> None:
    good = ("schedules", "put", "ada", "--type", "hello", "--cron", "0 8 * * *")
    for words in (
        good[:5],
        ("schedules", "put", "--type", "hello", "--cron", "0 8 * * *"),
        (*good[:3], "grace", *good[3:]),
        (*good, "--tz", "Europe/Pari"),
        (*good, "--overlap", "maybe"),
        (*good, "--payload", "name"),
        (*good, "--payload", "colour=red", "--app", "shop:app"),
        ("schedules", "list", "--tz", "UTC"),
        ("schedules", "run"),
    ):
        assert shop.call(*words).code == 2, words
    assert shop.ok("schedules") == "no schedules"
