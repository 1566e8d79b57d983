"""Applications under test: on a file of their own, with what they announce, and with a check that nothing is left."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

from tests.support.until import until
from windlass import Ctx, Handle, Job, Status, Windlass
from windlass.app.declaring import JobDecorator
from windlass.core.events import Event
from windlass.worker.worker import Worker

E = TypeVar("E")


def ms(milliseconds: float) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def app_at(path: Path, **options: Any) -> Windlass:
    """An application on a file. Not synchronous: no test here cuts the power."""
    return Windlass(f"sqlite:///{path}?synchronous=OFF", **options)


class Heard:
    """Everything an application has announced."""

    def __init__(self, app: Windlass) -> None:
        self.events: list[Event] = []
        app.listen(self.events.append)

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in list(self.events) if isinstance(event, kind)]

    async def one(self, kind: type[E], within: float = 10.0) -> E:
        """The first event of this kind, now or soon."""
        found = await until(lambda: self.all(kind), f"{kind.__name__} to be told", within)
        return found[0]


class Crowd:
    """Counts how many of its handlers run at once."""

    def __init__(self, app: Windlass, **options: Any) -> None:
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()

        declare = cast("JobDecorator", app.job(**options))

        @declare
        async def crowd(queue: str) -> None:
            self.now[queue] += 1
            self.now["all"] += 1
            for name in (queue, "all"):
                self.most[name] = max(self.most[name], self.now[name])
            await asyncio.sleep(0.005)  # the job's work
            self.now[queue] -= 1
            self.now["all"] -= 1
            self.ended.update((queue, "all"))

        self.job = crowd


@asynccontextmanager
async def working(app: Windlass, **options: Any) -> AsyncGenerator[Worker, None]:
    """A worker that polls, rescues and stops quickly."""
    quick: dict[str, Any] = {"poll": ms(50), "rescue": ms(50), "grace": ms(5000)}
    async with app.worker(**{**quick, **options}) as worker:
        yield worker


async def status_of(handle: Handle[Any]) -> Status:
    return (await handle.job()).status


async def until_status(handle: Handle[Any], *wanted: Status, within: float = 10.0) -> Job:
    async def there() -> Job | None:
        job = await handle.job()
        return job if job.status in wanted else None

    found = await until(there, f"the job to be {' or '.join(wanted)}", within)
    assert found is not None
    return found


@asynccontextmanager
async def nothing_left() -> AsyncGenerator[None, None]:
    """When it ends, no thread, task or process that was started inside may still run."""
    tasks = asyncio.all_tasks()
    threads = _threads()
    yield

    def left() -> list[str]:
        running = {task for task in asyncio.all_tasks() - tasks if not task.done()}
        names = [task.get_name() for task in running if not _of_pytest(task)]
        names += [thread.name for thread in _threads() - threads]
        return names + [child.name for child in multiprocessing.active_children()]

    await until(lambda: not left(), f"nothing to be left behind ({left()})", within=5)


def _of_pytest(task: asyncio.Task[Any]) -> bool:
    return not task.get_name().startswith("windlass") and "tests" not in repr(task.get_coro())


def _threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("windlass")}


async def completing_refused(app: Windlass) -> str:
    """What a handler is told that asks to end its job in a transaction, on a store that cannot."""

    @app.job(retry=1)
    async def work(ctx: Ctx) -> None:
        await ctx.complete_in(object())

    async with app, working(app):
        handle = await work.enqueue()
        done = await until_status(handle, Status.FAILED)
    assert done.error is not None
    return f"{done.error.type}: {done.error.message}"
