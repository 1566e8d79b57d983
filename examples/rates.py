"""Rates, turns and ageing: how fast a kind of work may start, and whose turn it is."""

import asyncio
from datetime import timedelta

from windlass import Ageing, Rate, Windlass

# What has waited for ten minutes goes before everything that is not critical.
app = Windlass("sqlite://", ageing=Ageing(timedelta(minutes=10)))
began: list[float] = []
served: list[str] = []


@app.job(rate=Rate(5, per=timedelta(milliseconds=500), key="api:{host}"))
async def call(host: str) -> str:
    began.append(asyncio.get_running_loop().time())
    return host


@app.job(fair_by="user_id")
async def export(name: str) -> None:
    served.append(name)


async def main() -> None:
    async with app:
        await app.enqueue_many(export.using(user="ann").bind("ann") for _ in range(20))
        await export.using(user="bob").enqueue("bob")
        handles = await app.enqueue_many(call.bind("example.org") for _ in range(12))
        async with app.worker(concurrency=1):
            for handle in handles:
                await handle.result(30)
    print("12 calls took a second or more:", began[-1] - began[0] >= 1)
    print("bob was served as number", served.index("bob") + 1)


if __name__ == "__main__":
    asyncio.run(main())
