"""Jobs of every kind that the job's page has to tell of, made by real workers on one store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tests.contract.steps import passed
from tests.support.apps import until_status, working
from tests.support.drafts import INSTANT, want
from tests.support.until import until
from windlass import Ctx, Handle, Limit, Reject, Retry, Secret, Snooze, Status, Windlass, every
from windlass.core.outcome import Succeeded
from windlass.core.transition import decide
from windlass.stores.contract import Lease

HOSTILE = "</script><img src=x onerror=alert(1)>'\"&{{7*7}}\u202egnp\x1b[2J"
NAMED = "<img src=x onerror=alert(1)>\"'&{{7*7}}"
"""the same in what may not have every character"""
BIG = 9_007_199_254_740_993
"""which a browser would round"""


@dataclass
class Kinds:
    """The ids, by what is special about each; and what lets those end that go on."""

    ids: dict[str, str] = field(default_factory=dict[str, str])
    go: asyncio.Event = field(default_factory=asyncio.Event)
    tell: asyncio.Event = field(default_factory=asyncio.Event)
    flow: Any = None

    def __getitem__(self, kind: str) -> str:
        return self.ids[kind]


def declare_kinds(app: Windlass, kinds: Kinds) -> None:
    """The handlers."""

    @app.job(name="mail.receipt", queue="mail")
    async def receipt(order: int, to: str = "ann@example.org") -> dict[str, Any]:
        await asyncio.sleep(0.001)  # the job's work
        return {"sent": to, "order": order, "parts": [1, 2.5, None, True]}

    @app.job(name="invoice.send", queue="mail", retry=Retry(3, base=0.02, jitter=False))
    async def invoice(ctx: Ctx, order: int) -> None:
        await asyncio.sleep(0.01)  # the job's work
        _connect("smtp.example.org", order)

    @app.job(name="video.encode", queue="media")
    async def encode(ctx: Ctx, path: str, go_on: bool = False) -> str:
        for frame in range(0, 521, 40):
            ctx.progress(frame, 1000, f"frame {frame} of 1,000")
        kinds.tell.set()
        if not go_on:
            await kinds.go.wait()
        ctx.progress(1000, 1000, "all frames")
        return path

    @app.job(name="account.charge", limit=Limit("account:{account}", 1))
    async def charge(account: str, cents: int) -> int:
        await kinds.go.wait()
        return cents

    @app.job(name="user.onboard")
    async def onboard(ctx: Ctx, user: int) -> str:
        await ctx.step("account", _made, user)
        await ctx.save({"row": 41_200, "file": "customers.xlsx"})
        ok = await ctx.wait("approved", timedelta(days=3))
        return f"{user} {ok}"

    @app.job(name="image.resize", queue="media")
    async def resize(width: int) -> str:
        if width == 640:
            await kinds.go.wait()
        return f"{width}.png"

    @app.job(name="page.publish")
    async def publish(ctx: Ctx, page: str) -> list[str]:
        return await ctx.gather("sizes", [resize.bind(width) for width in (320, 640, 1280)])

    @app.job(name="report.load")
    async def load(day: str) -> int:
        return 31

    @app.job(name="report.sum")
    async def add(rows: int) -> int:
        await kinds.go.wait()
        return rows

    @app.job(name="report.send")
    async def send(rows: int) -> int:
        return rows

    kinds.flow = load.bind("2026-03-01").then(add).then(send)

    @app.job(name="key.rotate")
    async def rotate(token: Secret[str], account: dict[str, Any]) -> Secret[str]:
        return token

    @app.job(name="hostile", retry=1)
    async def hostile(text: str, deep: dict[str, Any]) -> None:
        raise ValueError(text)

    @app.job(name="snoozes")
    async def snoozes(ctx: Ctx) -> None:
        raise Snooze(3600, "the other side is closed")

    @app.job(name="rejected")
    async def rejected(order: int) -> None:
        raise Reject(f"order {order} has no address")

    @app.job(name="report.nightly", schedule=every(timedelta(hours=6)))
    async def nightly() -> str:
        return "reported"

    @app.job(name="unhandled.elsewhere", queue="elsewhere", retry=3)
    async def elsewhere(n: int) -> None: ...


def _made(user: int) -> dict[str, Any]:
    return {"id": BIG, "plan": "free", "user": user}


def _connect(host: str, order: int) -> None:
    raise TimeoutError(f"{host} did not answer about order {order} within 10 s")


@asynccontextmanager
async def all_kinds(app: Windlass) -> AsyncGenerator[Kinds]:
    """The jobs, once each stands where it is to stand; some run while inside."""
    kinds = Kinds()
    declare_kinds(app, kinds)
    async with app:
        await _crashes(app, kinds)
        async with working(app, concurrency=40, exclude=["unhandled.elsewhere"]):
            await _begin(app, kinds)
            try:
                yield kinds
            finally:
                kinds.go.set()
                await until(lambda: _none_runs(app), "what runs to end")
    app.close()


async def _none_runs(app: Windlass) -> bool:
    return not (await app.jobs.find(status="processing")).jobs


async def _begin(app: Windlass, kinds: Kinds) -> None:
    async def enqueue(kind: str, type_: str, payload: dict[str, Any], *wanted: Status, **asked: Any) -> Handle[Any]:
        handle = await app.enqueue(type_, payload, **asked)
        kinds.ids[kind] = handle.id
        await until_status(handle, *wanted)
        return handle

    for order in range(1, 9):
        await app.enqueue("mail.receipt", {"order": order})
    about: dict[str, Any] = {
        "user": "ann", "entity": ("order", 42), "correlation": "req-81", "tags": ["vip", "spring"],
        "metadata": {"tenant": "acme", "n": BIG},
    }  # fmt: skip
    await enqueue("succeeded", "mail.receipt", {"order": BIG}, Status.SUCCEEDED, **about)
    await enqueue("failed", "invoice.send", {"order": 42}, Status.FAILED, user="ann", unique="invoice:42")
    await enqueue("running", "video.encode", {"path": "film.mov"}, Status.PROCESSING, user="ann")
    holder = await enqueue("holder", "account.charge", {"account": "acme", "cents": 1}, Status.PROCESSING)
    await enqueue("limited", "account.charge", {"account": "acme", "cents": 250}, Status.BLOCKED)
    assert holder.created
    await enqueue("signal", "user.onboard", {"user": 7}, Status.BLOCKED, user="ann")
    await enqueue("gathering", "page.publish", {"page": "home"}, Status.BLOCKED)
    secrets = {"token": "tok-secret", "account": {"password": "hunter2", "id": 5}}
    await enqueue("secret", "key.rotate", secrets, Status.SUCCEEDED)
    await enqueue(
        "hostile", "hostile", {"text": HOSTILE, "deep": {HOSTILE: [HOSTILE]}}, Status.FAILED,
        queue=NAMED, tags=[NAMED], user=NAMED, entity=(NAMED, NAMED), metadata={HOSTILE: HOSTILE},
    )  # fmt: skip
    await enqueue("snoozed", "snoozes", {}, Status.SCHEDULED)
    await enqueue("rejected", "rejected", {"order": 9}, Status.FAILED)
    await enqueue("scheduled", "mail.receipt", {"order": 3}, Status.SCHEDULED, delay=7200)
    await enqueue("unhandled", "unhandled.elsewhere", {"n": 1}, Status.QUEUED)
    await enqueue("cancelled", "mail.receipt", {"order": 4}, Status.SCHEDULED, delay=7200)
    await app.jobs.cancel(kinds["cancelled"], actor="key:ops", reason="not needed")
    await _flow(app, kinds)
    kinds.ids["tick"] = (await app.schedules.run_now("report.nightly")).id
    await app.jobs.replay(kinds["rejected"])
    await kinds.tell.wait()


async def _flow(app: Windlass, kinds: Kinds) -> None:
    flow = await kinds.flow.enqueue()
    kinds.ids |= dict(zip(("first", "flow", "last"), [one.id for one in flow.jobs], strict=True))
    await until_status(Handle(app.client, kinds["flow"], created=True, codec=None), Status.PROCESSING)


async def _crashes(app: Windlass, kinds: Kinds) -> None:
    """A job whose worker dies, and the second is only slow: its late result is refused."""
    handle = await app.enqueue("mail.receipt", {"order": 13})
    kinds.ids["rescued"] = handle.id
    store = app.client.store
    for worker in ("web-1", "web-2"):
        [job] = await store.jobs.claim(want(1, worker=worker, types={"mail.receipt"}))
        await store.jobs.extend(worker, [Lease(job.id, job.lease_token)], INSTANT)
        late = await app.jobs.get(job.id)
        await passed(store, late.lease_expires_at)
        await store.jobs.rescue(10)
        if worker == "web-2":
            await store.jobs.apply([decide(late, Succeeded("1"))])
