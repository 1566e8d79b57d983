"""Explain: why a job is not running, as one sentence for people and as facts for programs."""

import asyncio

from windlass import Limit, Windlass

app = Windlass()


free = asyncio.Event()


@app.job(limit=Limit("press", 1))
async def press(page: int) -> int:
    await free.wait()
    return page


async def main() -> None:
    async with app:
        handles = await app.enqueue_many([press.bind(1), press.bind(2)])
        found = await app.jobs.explain(handles[0].id)
        print(f"{found.why}: {found.text}")

        await app.queues.pause("default")
        async with app.worker():
            found = await app.jobs.explain(handles[0].id)
            print(f"{found.why} since then: {found.since is not None}")
            await app.queues.resume("default")

            while (found := await app.jobs.explain(handles[1].id)).why != "limit":  # noqa: ASYNC110  # no event tells it
                await asyncio.sleep(0.01)
            print(f"{found.why} held by the first: {found.holder == handles[0].id}")
            free.set()
            await handles[1].result(timeout=10)


if __name__ == "__main__":
    asyncio.run(main())
