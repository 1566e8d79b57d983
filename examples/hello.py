"""The smallest program: one job, enqueued, run, and its result read back."""

import asyncio

from windlass import Windlass

app = Windlass()  # WINDLASS_URL, else the file windlass.db here


@app.job
async def greet(name: str) -> str:
    return f"Hello, {name}!"


async def main() -> None:
    async with app.worker():
        handle = await greet.enqueue("Ada")
        print(await handle.result(timeout=10))


if __name__ == "__main__":
    asyncio.run(main())
