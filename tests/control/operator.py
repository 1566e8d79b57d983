"""A program of the crew: carries out operations until it has moved so many jobs, and is killed there."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import timedelta

from windlass import Windlass, events


async def main(most: int) -> None:
    app = Windlass(os.environ["CREW_URL"], namespace=os.environ["CREW_NAMESPACE"])
    moved = 0

    def hear(event: events.Event) -> None:
        nonlocal moved
        moved += isinstance(event, events.JobOperated)
        if moved >= most:
            os.kill(os.getpid(), signal.SIGKILL)

    app.listen(hear)
    async with app.worker(queues=["windlass"], poll=0.1, lease=timedelta(seconds=1)) as worker:
        await worker.wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
