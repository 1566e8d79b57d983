"""Many jobs at once: they go to the store a thousand at a time, each thousand durable as a whole."""

import asyncio

from windlass import Windlass

app = Windlass()


@app.job(queue="numbers")
async def square(n: int) -> int:
    return n * n


async def main() -> None:
    async with app:
        handles = await app.enqueue_many(square.bind(n) for n in range(2_500))
        waiting = await app.jobs.count(queue="numbers", status="queued")
        print(f"{len(handles)} handles, {waiting.n} waiting")
        await app.worker(concurrency=200, drain=True).run()
        done = await app.jobs.count(queue="numbers", status="succeeded")
        print(f"{done.n} done; the last gave {(await handles[-1].job()).result}")


if __name__ == "__main__":
    asyncio.run(main())
