"""Whatever a job is called by, it is enqueued; and what was probably meant is said where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from windlass import (
    HandlerError,
    HandlerExists,
    JobNotFound,
    MoveRefused,
    PayloadInvalid,
    SettingsError,
    Windlass,
    cron,
)


async def test_a_decorated_job_is_enqueued_with_its_arguments_by_name(app: Windlass) -> None:
    @app.job(queue="mail")
    async def send(to: str, copies: int = 1) -> None: ...

    @app.job
    async def nothing() -> None: ...

    job = await (await app.enqueue(send, {"to": "ada"}, priority="high")).job()
    assert (job.type, job.queue, job.priority, job.payload) == ("send", "mail", 50, {"to": "ada"})
    assert (await (await app.enqueue(send.using(queue="vip"), {"to": "ada"})).job()).queue == "vip"
    assert (await (await app.enqueue(nothing)).job()).payload == {}
    assert (await app.enqueue_sync(send, {"to": "bob"}).job()).payload == {"to": "bob"}
    positional: Any = "ada"
    with pytest.raises(PayloadInvalid, match=r"send was given 'ada'.*send\.enqueue"):
        await app.enqueue(send, positional)


async def test_a_bound_job_is_enqueued(app: Windlass) -> None:
    @app.job
    async def send(to: str) -> None: ...

    job = await (await app.enqueue(send.bind("ada"), queue="vip")).job()
    assert (job.payload, job.queue) == ({"to": "ada"}, "vip")
    assert (await app.enqueue_sync(send.bind("bob")).job()).payload == {"to": "bob"}
    bound: Any = send.bind("ada")
    with pytest.raises(SettingsError, match="has its arguments"):
        await app.enqueue(bound, {"to": "ada"})


async def test_a_job_of_another_application_is_refused(app: Windlass) -> None:
    other = Windlass(app.url)

    @other.job
    async def send() -> None: ...

    for stranger in (send, send.bind()):
        with pytest.raises(HandlerError, match="belongs to another application"):
            await app.enqueue(stranger)


async def test_what_is_no_job_is_refused(app: Windlass) -> None:
    def plain() -> None: ...

    wrong: Any
    for wrong in (plain, 3, None):
        with pytest.raises(HandlerError, match="is no job: expected"):
            await app.enqueue(wrong)


async def test_an_option_among_the_arguments_is_hinted_at(app: Windlass) -> None:
    @app.job
    async def send(to: str) -> None: ...

    @app.job
    async def later(delay: int) -> None: ...

    call: Any = send
    for word in ("delay", "user_id", "tx"):
        with pytest.raises(PayloadInvalid, match=rf"{word} is an option: send\.using\({word}=…\)\.enqueue"):
            await call.enqueue("ada", **{word: 5})
    with pytest.raises(PayloadInvalid, match=r"send\.using\(queue=…\)"):
        call.bind("ada", queue="vip")
    with pytest.raises(PayloadInvalid) as told:
        await call.enqueue("ada", puase=5)
    assert "using" not in str(told.value)
    call = later
    with pytest.raises(PayloadInvalid) as told:
        await call.enqueue(delay="soon")
    assert "using" not in str(told.value)


async def test_a_schedule_takes_a_job_that_needs_no_arguments(app: Windlass) -> None:
    @app.job(queue="reports")
    async def report(days: int = 7) -> None: ...

    @app.job
    async def send(to: str) -> None: ...

    needy: Any = send
    hourly = cron("@hourly")
    await app.schedules.put("plain", report, hourly)
    await app.schedules.put("asked", report, hourly, queue="vip")
    found = {one.name: (one.type, one.queue, one.payload_json) for one in await app.schedules.list()}
    assert found == {"plain": ("report", "reports", "{}"), "asked": ("report", "vip", "{}")}
    with pytest.raises(SettingsError, match=r'send needs arguments.*put\("s", send\.bind\(…\), cron\)'):
        await app.schedules.put("s", needy, hourly)
    payload: Any = {"to": "ada"}
    with pytest.raises(SettingsError, match=r"send\.bind\(…\)"):
        await app.schedules.put("s", needy, hourly, payload)


def test_a_name_is_declared_again_only_where_that_is_allowed(app: Windlass) -> None:
    testing = Windlass(app.url, allow_override=True)
    for one in (app, testing):
        one.job(name="send", queue="first")(lambda: None)
    with pytest.raises(HandlerExists, match="allow_override"):
        app.job(name="send")(lambda: None)
    testing.job(name="send", queue="second")(lambda: None)
    assert testing.registry.get("send").options.queue == "second"


async def test_several_jobs_are_cancelled_retried_and_deleted_at_once(app: Windlass) -> None:
    first, second, third = [await app.enqueue("nobody") for _ in range(3)]
    assert await app.jobs.cancel(first) is True
    assert await app.jobs.cancel(second, third.id, reason="enough") == [True, True]
    assert (await app.jobs.count(status="cancelled")).n == 3
    await app.jobs.retry(first, second.id)
    assert (await app.jobs.count(status="queued")).n == 2
    await app.jobs.delete(first, second)
    assert (await app.jobs.count()).n == 1
    nobody: Any = ()
    with pytest.raises(SettingsError, match="which jobs"):
        await app.jobs.cancel(*nobody)


async def test_of_several_the_others_are_done_and_the_first_refusal_is_raised(app: Windlass) -> None:
    gone, done, live = [await app.enqueue("nobody") for _ in range(3)]
    await app.jobs.delete(gone)
    await app.jobs.cancel(done)
    with pytest.raises(JobNotFound, match=gone.id):
        await app.jobs.cancel(gone, done, live)
    assert (await live.job()).status == "cancelled"
    with pytest.raises(MoveRefused):
        await app.jobs.cancel(live, done)
