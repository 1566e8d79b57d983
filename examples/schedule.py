"""Schedules: a rule declared with its handler, and one that is put and removed while the application runs."""

import asyncio
from datetime import UTC, datetime

from windlass import Windlass, cron

app = Windlass()


@app.job(schedule=cron("0 9 * * mon-fri", tz="America/New_York", overlap="skip", missed="latest"))
async def morning_report() -> str:
    return "sent"


@app.job
async def report_for(customer: str) -> str:
    return f"report for {customer}"


async def main() -> None:
    rule = cron("30 2 * * *", tz="Europe/Paris")
    print(f"{rule.describe()}, in {rule.tz}:")
    # On 29 March 2026 the clocks jump from 02:00 to 03:00: the tick comes at the first instant after the jump.
    for tick in rule.next(3, after=datetime(2026, 3, 27, 12, tzinfo=UTC)):
        print(f"  {tick:%Y-%m-%d %H:%M} UTC")

    async with app.worker():  # a worker puts the schedules that its handlers declare
        await app.schedules.put("acme-report", report_for.bind("acme"), cron("0 8 * * *", tz="Europe/Paris"))
        for schedule in await app.schedules.list():
            print(f"{schedule.name}: {schedule.cron.expression} {schedule.cron.tz} makes {schedule.type}")
        now = await app.schedules.run_now("acme-report")  # beside its ticks
        print(await now.result(timeout=10))
        print(f"removed: {await app.schedules.remove('acme-report')}")


if __name__ == "__main__":
    asyncio.run(main())
