"""Every line marked as wrong is reported by mypy and by pyright, and no other line is."""

from __future__ import annotations

from collections.abc import AsyncIterator

from windlass import Batched, Ctx, Handle, Handler, Limit, Secret, Windlass, cron

app = Windlass("sqlite://")


@app.job
async def plain(order_id: int, *, copy_to: str | None = None) -> str:
    return f"{order_id} {copy_to}"


@app.job(queue="mail")
def with_ctx(ctx: Ctx, order_id: int, note: str = "") -> bytes:
    return f"{ctx.id} {order_id} {note}".encode()


@app.job
async def charge(token: Secret[str]) -> None:
    print(token.reveal())


@app.job
async def nothing() -> None: ...


async def takes_ctx(ctx: Ctx) -> AsyncIterator[None]:
    print(ctx.id)
    yield


@app.job(batch=10)
async def together(jobs: list[Batched[int, str]]) -> None:
    jobs[0].done(3)  # wrong


def takes_text(text: str) -> str:
    return text


class Remind(Handler[int, str]):
    async def perform(self, data: int) -> str:
        return str(data)


class Needs(Handler[int, str]):
    # Where a context may follow the data, pyright looks at the result only.
    def perform(self, data: str) -> str:  # wrong for mypy
        return data


class Gives(Handler[int, str]):
    def perform(self, data: int) -> int:  # wrong
        return data


async def calls(ctx: Ctx) -> None:
    await plain.enqueue("42")  # wrong
    await plain.enqueue()  # wrong
    await plain.enqueue(42, "copy")  # wrong
    await plain.enqueue(42, copy_to=3)  # wrong
    await plain.enqueue(42, colour="red")  # wrong
    await plain.using(queue="x").enqueue("42")  # wrong
    plain.bind(1).then(plain)  # wrong
    plain.bind(1).then(nothing)  # wrong
    plain.bind(1).then(nothing.bind(), on_failure="stop")  # wrong
    app.group([plain.bind(1)]).then(plain)  # wrong
    app.group([plain])  # wrong
    plain.enqueue_sync("42")  # wrong
    plain.bind("42")  # wrong
    plain.call("42")  # wrong
    await nothing.enqueue(1)  # wrong
    await with_ctx.enqueue(ctx, 42)  # wrong
    await with_ctx.enqueue("42")  # wrong
    with_ctx.enqueue_sync(42, note=b"")  # wrong
    plain.using(colour="red")  # wrong
    plain.using(delay="soon")  # wrong
    plain.using(priority=1.5)  # wrong
    plain.using(on_conflict="ignore")  # wrong
    plain.using(entity="order")  # wrong
    plain.using(limit=3)  # wrong
    plain.using(user_name="u")  # wrong
    await app.jobs.find(colour="red")  # wrong
    await app.jobs.find(user=None)  # wrong
    await app.jobs.count(uesr="u")  # wrong
    await app.dead_letters.discard_all(users="u")  # wrong
    await app.dead_letters.discard_all(status="failed")  # wrong
    await app.dead_letters.replay_all(user=None)  # wrong
    await charge.enqueue("token")  # wrong
    await charge.enqueue(Secret(5))  # wrong
    result: int = await (await plain.enqueue(42)).result()  # wrong
    handle: Handle[int] = await plain.enqueue(42)  # wrong
    await app.enqueue(Remind, "text")  # wrong
    await app.enqueue(3)  # wrong
    await together.enqueue("text")  # wrong
    await app.enqueue(plain.bind(1), {})  # wrong
    await app.jobs.cancel()  # wrong
    await app.enqueue("plain", {}, colour="red")  # wrong
    await app.add(Remind()).enqueue("text")  # wrong
    await app.enqueue_many([plain.enqueue(1)])  # wrong
    await app.schedules.put("x", plain, cron("0 8 * * *"))  # wrong
    app.job(queue=3)  # wrong
    app.job(around_run=[plain])  # wrong
    app.around_run(len)  # wrong
    app.around_enqueue(takes_ctx)  # wrong
    app.job(limit=3)  # wrong
    app.job(schedule="0 8 * * *")  # wrong
    app.worker(lease="3")  # wrong
    cron("0 8 * * *", overlap="never")  # wrong
    Limit("x", "many")  # wrong
    ctx.progress("half")  # wrong
    await ctx.step("size", takes_text, 3)  # wrong
    await ctx.step("size")  # wrong
    await ctx.gather("all", [3])  # wrong
    await ctx.gather("all", [plain.bind(1)], errors="ignore")  # wrong
    await app.jobs.signal("id")  # wrong
    print(result, handle)
