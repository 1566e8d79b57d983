"""Progress and cancelling: a handler tells how far it is, and stops where it is safe to."""

import asyncio
import time

from windlass import Ctx, Progress, Windlass

app = Windlass()


@app.job
async def copy_rows(ctx: Ctx, rows: int) -> int:
    for row in range(1, rows + 1):
        ctx.progress(row, of=rows, note=f"row {row}")
        await asyncio.sleep(0.3)  # the copying; reports are written a few times a second, the newest wins
    return rows


@app.job
def crunch(ctx: Ctx) -> None:
    while True:  # a thread cannot be stopped from outside, so it looks by itself
        ctx.check()
        time.sleep(0.01)


async def main() -> None:
    async with app.worker():
        handle = await copy_rows.enqueue(3)
        async for event in handle.events():
            if isinstance(event, Progress):
                print(f"{event.done:g} of {event.of:g}: {event.note}")
            else:
                print(event.happened)

        crunching = await crunch.enqueue()
        async for event in crunching.events():
            if not isinstance(event, Progress):
                print(event.happened)
                if event.happened == "claimed":
                    now = await crunching.cancel("not needed any more")
                    print(f"cancelled at once: {now}")

        later = await copy_rows.using(delay=3600).enqueue(3)
        print(f"cancelled at once: {await later.cancel()}, it is {(await later.job()).status}")


if __name__ == "__main__":
    asyncio.run(main())
