"""Limits: however many slots and workers there are, at most two jobs of one customer run at once."""

import asyncio
from collections import Counter

from windlass import Limit, Windlass

app = Windlass()
running: Counter[str] = Counter()
most: Counter[str] = Counter()


@app.job(limit=Limit("customer:{customer}", 2))
async def export(customer: str, part: int) -> int:
    running[customer] += 1
    most[customer] = max(most[customer], running[customer])
    await asyncio.sleep(0.02)  # the export
    running[customer] -= 1
    return part


async def main() -> None:
    async with app:
        jobs = [export.bind(customer, part) for part in range(6) for customer in ("acme", "globex")]
        handles = await app.enqueue_many(jobs)
        async with app.worker(concurrency=20):
            done = [await handle.result(timeout=10) for handle in handles]
    print(f"{len(done)} exports done")
    for customer in sorted(most):
        print(f"{customer}: at most {most[customer]} at once")


if __name__ == "__main__":
    asyncio.run(main())
