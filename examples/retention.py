"""Retention and largest depths: how long ended jobs are kept, how many, and when a queue takes no more."""

import asyncio
from datetime import timedelta

from windlass import QueueFull, Retention, Windlass

app = Windlass(
    "sqlite://",
    retention=Retention(
        succeeded=timedelta(days=7),
        failed=timedelta(days=90),
        queues={"pings": Retention(succeeded=timedelta(hours=1), most=100)},
    ),
)


@app.job(queue="pings")
async def ping(n: int) -> int:
    return n


async def main() -> None:
    async with app:
        await app.enqueue_many(ping.bind(n) for n in range(150))
        await app.worker(drain=True).run()
        removed = await app.store.jobs.prune(app.retention, 1000)  # workers do this by themselves, a few at a time
        left = await app.jobs.count(queue="pings")
        print(f"{removed} pruned, {left.n} kept")

        await app.queues.limit_depth("pings", 2)
        try:
            for n in range(5):
                await ping.enqueue(n)
        except QueueFull as error:
            print(f"{error.queue} takes no more than {error.depth}")


if __name__ == "__main__":
    asyncio.run(main())
