"""An order that waits for a person: for days if need be, without a worker, through deploys, and until an answer comes.

Each part of this program could run on another machine, on another day.
"""

import asyncio

from windlass import Ctx, Windlass

app = Windlass()
charged: list[int] = []


async def charge(order: int) -> str:
    charged.append(order)  # a payment service would be given ctx.origin as its idempotency key
    return f"payment-{order}"


@app.job
async def pack(item: str) -> str:
    return f"{item} packed"


@app.job
async def ship(ctx: Ctx, order: int, items: list[str]) -> list[str]:
    payment = await ctx.step("payment", charge, order)
    approval = await ctx.wait("approved", timeout=3 * 24 * 3600)
    if approval is None:
        return [payment, "nobody approved it within three days"]
    if not approval["ok"]:
        return [payment, f"declined by {approval['by']}"]
    return [payment, f"approved by {approval['by']}", *await ctx.gather("boxes", [pack.bind(item) for item in items])]


async def main() -> None:
    order = await ship.enqueue(7, ["lamp", "desk"])
    other = await ship.enqueue(8, ["chair"])

    await app.worker(drain=True).run()  # this worker does what it can, and goes home
    waiting = await app.jobs.explain(order.id)
    print(f"no worker runs, and {waiting.why}: {waiting.text.partition(' until ')[0]}")

    await app.jobs.signal(order, "approved", {"ok": True, "by": "eve"}, actor="eve")
    await app.jobs.signal(other, "approved", {"ok": False, "by": "eve"}, actor="eve")

    async with app.worker():  # another worker, on another day
        for handle in (order, other):
            print(", ".join(await handle.result(timeout=30)))
    print(f"charged once each: {sorted(charged)}")


asyncio.run(main())
