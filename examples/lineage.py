"""Lineage: jobs enqueued by a job take over its context, and one id tells the whole tree."""

import asyncio

from windlass import Windlass

app = Windlass()


@app.job
async def page(number: int) -> None: ...


@app.job
async def chapter(number: int) -> None:
    await app.enqueue_many(page.bind(number * 10 + n) for n in range(2))


@app.job
async def book() -> None:
    for number in (1, 2):
        await chapter.enqueue(number)


async def main() -> None:
    async with app:
        root = await book.using(user="ada", entity=("book", 7)).enqueue()
        await app.worker(drain=True).run()
        tree = await app.jobs.of(correlation=root.id)
        depth = {None: 0}
        for job in tree:
            depth[job.id] = depth[job.parent_id] + 1
        for job in sorted(tree, key=lambda job: (depth[job.id], job.payload_json)):
            print(f"{'  ' * (depth[job.id] - 1)}{job.type} of {job.user_id}, about {job.entity_name} {job.entity_id}")


if __name__ == "__main__":
    asyncio.run(main())
