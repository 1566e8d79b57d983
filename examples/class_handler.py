"""A class handler: dependencies go into its instance, its data is one typed value."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

from windlass import Handler, PayloadInvalid, Windlass

app = Windlass()


@dataclass
class ShiftStart:
    employee: str
    starts_at: datetime


class Sms:
    def send(self, to: str, text: str) -> str:
        return f"to {to}: {text}"


class ShiftStartReminder(Handler[ShiftStart, str], name="ShiftStartReminder", queue="notifications", retry=5):
    def __init__(self, sms: Sms) -> None:
        self._sms = sms

    async def perform(self, data: ShiftStart) -> str:
        return self._sms.send(data.employee, f"your shift starts at {data.starts_at:%H:%M}")


remind = app.add(ShiftStartReminder(Sms()))


async def main() -> None:
    shift = ShiftStart("Ada", datetime(2026, 3, 2, 9, 30, tzinfo=UTC))
    async with app.worker():
        print(await (await remind.enqueue(shift)).result(timeout=10))
        # By name, with plain JSON values, as another process would:
        plain = {"employee": "Grace", "starts_at": "2026-03-02T14:00:00Z"}
        print(await (await app.enqueue("ShiftStartReminder", plain)).result(timeout=10))
        try:
            await app.enqueue("ShiftStartReminder", {"employee": "Ada"})
        except PayloadInvalid as error:
            print(error)


if __name__ == "__main__":
    asyncio.run(main())
