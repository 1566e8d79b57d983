"""Dead letters: failed jobs by what went wrong, replayed with another payload, and thrown away."""

import asyncio

from windlass import Windlass

app = Windlass()


@app.job(retry=1)
async def charge(order: int) -> str:
    if order < 0:
        raise LookupError(f"order {order} is gone")
    return f"charged {order}"


async def main() -> None:
    async with app:
        await app.enqueue_many(charge.bind(order) for order in (-1, -2, -3))
        await app.worker(drain=True).run()

        [group] = (await app.dead_letters.groups(type="charge")).groups
        print(f"{group.count} x {group.error} in {group.type}: {group.message}")
        dry = await app.dead_letters.replay_all(fingerprint=group.fingerprint, dry_run=True)
        print(f"would replay {dry.matched}")

        first = await app.dead_letters.replay(group.example, edit={"order": 3})
        again = await app.dead_letters.replay(group.example, edit={"order": 3})
        print(f"replayed as a new job: {first.created}, again: {again.created}")
        async with app.worker():
            print(await first.result(timeout=10))

        report = await app.dead_letters.replay_all(fingerprint=group.fingerprint, rate=100, limit=2, edit={"order": 4})
        print(f"{report.replayed} replayed, skipped: {dict(report.skipped)}")
        gone = await app.dead_letters.discard_all(fingerprint=group.fingerprint, reason="they were tests")
        print(f"{gone.discarded} discarded")


if __name__ == "__main__":
    asyncio.run(main())
