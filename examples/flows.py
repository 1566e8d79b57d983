"""Flows: steps one after the other, side by side where they can be, with results that are handed on."""

import asyncio

from windlass import Windlass

app = Windlass("sqlite://")


@app.job
async def fetch(page: int) -> list[int]:
    return [page * 10 + n for n in range(3)]


@app.job
async def merge(pages: list[list[int]]) -> int:
    return sum(sum(rows) for rows in pages)


@app.job
async def publish(total: int) -> str:
    return f"the total is {total}"


@app.job
async def clean_up(folder: str) -> None:
    print("cleaned", folder)


async def main() -> None:
    async with app, app.worker():
        flow = app.group([fetch.bind(page) for page in range(4)]).then(merge).then(publish)
        handle = await flow.enqueue()
        print(await handle.result(10))
        print(len(handle.jobs), "jobs, all of them found by", len(await app.jobs.of(correlation=handle.jobs[0].id)))

        # Runs whatever became of the step before it.
        last = await fetch.bind(1).then(clean_up.bind("/srv/pages"), on_failure="run").enqueue()
        await last.result(10)


if __name__ == "__main__":
    asyncio.run(main())
