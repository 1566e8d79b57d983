"""`script/bench --dashboard`: pages over a million jobs, what a browser waits for, and a worker beside 200 viewers.

The server, the viewers and the worker are processes of their own; the browser is a real Chromium. Pages are asked for
as a browser asks, whole, and lists by other words each time.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import socket
import sys
import tempfile
import time
from collections import Counter
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import uvicorn
from playwright.async_api import async_playwright

from bench.figures import Figure, median, percentile
from bench.viewers import cpu_seconds, watch
from tests.support.servers import start_mongo, start_postgres, start_redis
from windlass import Windlass
from windlass.web.access.keys import COOKIE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Sequence
    from contextlib import AbstractContextManager

    from playwright.async_api import Browser, Page

    from windlass.client.flows import Bound

JOBS = 1_000_000
VIEWERS = 200
_KIB = 1024
_QUEUES = ("mail", "media", "orders", "reports", "payments", "imports")
_WORDS = ("", "status:queued", "queue:mail", "type:work-3", "status:scheduled queue:orders", "user:ann", "tag:vip")
_NAMES = ("scripts and styles", "list", "overview", "first paint", "event to pixel", "claims beside viewers")
_BROWSER = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]


async def measure_dashboard(
    store: str, *, quick: bool = False, only: Sequence[str] = ()
) -> AsyncGenerator[Figure, None]:
    """Every figure of one store; `only` some of them by a part of their names."""
    wanted = {name for name in _NAMES if not only or any(part in name for part in only)}
    jobs = 20_000 if quick else JOBS
    with tempfile.TemporaryDirectory(prefix="windlass-bench-") as folder, _place(store, Path(folder)) as url:
        if "scripts and styles" in wanted:
            yield _weight(url)
        if wanted & {"list", "overview", "first paint", "event to pixel"}:
            await _fill(url, jobs)
            async with _server(url) as (port, key, _):
                for name in ("list", "overview"):
                    if name in wanted:
                        yield await _pages(name, port, key, jobs, n=30 if quick else 120)
                if wanted & {"first paint", "event to pixel"}:
                    async for figure in _seen(url, port, wanted, rounds=8 if quick else 30):
                        yield figure
        if "claims beside viewers" in wanted:
            yield await _beside(url, jobs=3_000 if quick else 12_000, turns=3 if quick else 5)


@contextmanager
def _place(store: str, folder: Path) -> Generator[str]:
    if store == "sqlite":
        yield f"sqlite:///{folder / 'dashboard.db'}"
        return
    starts: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "redis": start_redis,
        "mongo": start_mongo,
        "postgres": start_postgres,
    }
    with starts[store]() as server:
        yield server.url


def _weight(url: str) -> Figure:
    app = Windlass(url)
    assets = app.asgi().state.dashboard.assets
    return Figure(name="scripts and styles", value=assets.weight / _KIB, unit="KiB", most=60)


async def _fill(url: str, n: int) -> None:
    """Jobs of ten types in six queues, a third of them for later."""
    app = Windlass(url)
    works = _declare(app)

    def made() -> Generator[Bound[None]]:
        for number in range(n):
            work = works[number % len(works)].using(
                queue=_QUEUES[number % len(_QUEUES)],
                delay=3600.0 + number if number // len(_QUEUES) % 3 == 0 else None,
                user="ann" if number % 50 == 0 else None,
                tags=("vip",) if number % 100 == 0 else (),
            )
            yield work.bind(number)

    async with app:
        await app.enqueue_many(made())
        await app.worker(concurrency=100, max_jobs=2_000, queues={"mail": 100}).run()
    app.close()


def _declare(app: Windlass) -> list[Any]:
    found: list[Any] = []
    for number in range(10):

        @app.job(name=f"work-{number}")
        async def work(n: int) -> None: ...

        found.append(work)
    return found


async def _pages(name: str, port: int, key: str, jobs: int, n: int) -> Figure:
    """Whole pages, one after the other. Of the list each time another: what was asked for before is of no help."""
    took: dict[str, list[float]] = {}
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/dashboard", headers=headers, timeout=60) as client:
        for number in range(-4, n):
            words = _WORDS[number % len(_WORDS)]
            path, query = ("/jobs", {"q": words}) if name == "list" else ("/", {})
            began = time.perf_counter()
            answer = await client.get(path, params=query)
            seconds = time.perf_counter() - began
            answer.raise_for_status()
            if number >= 0:
                took.setdefault(words if name == "list" else "all", []).append(seconds)
            await asyncio.sleep(0.02)
    every = [one for some in took.values() for one in some]
    told = {f"p95 of {words or 'all'}": percentile(some, 0.95) * 1000 for words, some in took.items()}
    return Figure(
        name=f"{name}, p95, {jobs:,} jobs", value=percentile(every, 0.95) * 1000, unit="ms", most=150, told=told
    )


async def _seen(url: str, port: int, wanted: set[str], rounds: int) -> AsyncGenerator[Figure, None]:
    """What a person in front of a browser waits for."""
    async with async_playwright() as playwright:
        program = next(
            (path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None
        )
        browser = await playwright.chromium.launch(executable_path=program, args=_BROWSER)
        [session] = await _sessions(url, 1)
        if "first paint" in wanted:
            painted = [await _paint(browser, port, session) for _ in range(max(5, rounds // 3))]
            told = {"median": median(painted), "longest": max(painted)}
            yield Figure(name="first paint, p95", value=percentile(painted, 0.95), unit="ms", most=1000, told=told)
        if "event to pixel" in wanted:
            waits = await _events(browser, url, port, session, rounds)
            told = {"median": median(waits), "longest": max(waits)}
            yield Figure(name="event to pixel, p95", value=percentile(waits, 0.95), unit="ms", most=1500, told=told)
        await browser.close()


async def _sessions(url: str, n: int) -> list[str]:
    app = Windlass(url)
    async with app:
        made = [
            await app.keys.create("bench", owner="*", scopes=["admin"], kind="session", lasts=3600) for _ in range(n)
        ]
    app.close()
    return [one.secret for one in made]


async def _tab(browser: Browser, port: int, session: str) -> Page:
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    await context.add_cookies([{"name": COOKIE, "value": session, "url": f"http://127.0.0.1:{port}", "httpOnly": True}])
    return await context.new_page()


async def _paint(browser: Browser, port: int, session: str) -> float:
    """Milliseconds from the click to the first words on the screen, with nothing kept from before."""
    page = await _tab(browser, port, session)
    await page.goto(f"http://127.0.0.1:{port}/dashboard/")
    found: float = await page.evaluate(
        """new Promise(done => {
  const look = () => {
    const [it] = performance.getEntriesByName("first-contentful-paint");
    it ? done(it.startTime) : setTimeout(look, 10);
  };
  look();
})"""
    )
    await page.context.close()
    return found


_WATCH = """
queue => new Promise(done => {
  const find = () => [...document.querySelectorAll("tbody tr, main")].some(row => row.textContent.includes(queue));
  if (find()) return done(Date.now());
  const watch = new MutationObserver(() => {
    if (!find()) return;
    watch.disconnect();
    requestAnimationFrame(() => done(Date.now()));
  });
  watch.observe(document.body, { subtree: true, childList: true, characterData: true });
})
"""


async def _events(browser: Browser, url: str, port: int, session: str, rounds: int) -> list[float]:
    """Milliseconds from an enqueue that is durable to its queue on the page of queues."""
    app = Windlass(url)
    works = _declare(app)
    page = await _tab(browser, port, session)
    waits: list[float] = []
    async with app:
        await page.goto(f"http://127.0.0.1:{port}/dashboard/queues")
        await page.wait_for_selector('#live[data-state="live"]')
        for number in range(rounds):
            await asyncio.sleep(random.uniform(1.2, 2.8))  # at any moment between two looks
            name = f"event-{number:04d}"
            watching = asyncio.create_task(page.evaluate(_WATCH, name))
            await asyncio.sleep(0.05)
            await works[0].using(queue=name).enqueue(number)
            began = time.time() * 1000
            async with asyncio.timeout(30):
                waits.append(max(0.0, await watching - began))
    app.close()
    await page.context.close()
    return waits


async def _beside(url: str, jobs: int, turns: int) -> Figure:
    """Jobs a second of a worker by itself, and while two hundred look; in turns, so that all meets both."""
    alone: list[float] = []
    beside: list[float] = []
    asked: Counter[str] = Counter()
    took: list[float] = []
    sessions = ",".join(await _sessions(url, VIEWERS))
    async with _server(url) as (port, _, pid):
        seconds = 20.0
        await _output("work", url, str(jobs // 3))
        for _ in range(turns):
            alone.append(float(await _output("work", url, str(jobs))))
            watching = asyncio.create_task(_output("watch", str(port), sessions, str(seconds)))
            await asyncio.sleep(4)  # until all are there
            began, used = time.monotonic(), cpu_seconds(pid)
            while not watching.done():
                beside.append(float(await _output("work", url, str(jobs))))
            took.append((cpu_seconds(pid) - used) / (time.monotonic() - began))
            asked.update(json.loads(await watching))
    told = {"alone": median(alone), "beside": median(beside), "server's CPU": median(took), **asked}
    share = median(beside) / median(alone)
    return Figure(name=f"claims beside {VIEWERS} viewers", value=share, unit="", least=0.95, told=told)


async def _output(*args: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.dashboard", *args, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{args[0]} ended with {process.returncode}")
    return out.decode()


@asynccontextmanager
async def _server(url: str) -> AsyncGenerator[tuple[int, str, int]]:
    """A server in its own process: its port, a key, and its id."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.dashboard", "serve", url, stdout=asyncio.subprocess.PIPE
    )
    try:
        if process.stdout is None:
            raise RuntimeError("no output")
        said = json.loads(await process.stdout.readline())
        yield said["port"], said["key"], process.pid
    finally:
        process.terminate()
        await process.wait()


# What runs in the other processes.


async def _serve(url: str) -> None:
    app = Windlass(url)
    _declare(app)
    async with app:
        made = await app.keys.create("bench", owner="*", scopes=["admin"])
        web = app.asgi()
        listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        server = uvicorn.Server(uvicorn.Config(web, log_level="error", access_log=False, lifespan="off"))
        print(json.dumps({"port": listening.getsockname()[1], "key": made.secret}), flush=True)
        await server.serve(sockets=[listening])


async def _work(url: str, jobs: int) -> None:
    app = Windlass(url)

    @app.job(name="paced", queue="paced")
    async def paced(n: int) -> None: ...

    async with app:
        await app.enqueue_many(paced.bind(number) for number in range(jobs))
        began = time.perf_counter()
        await app.worker(queues={"paced": 200}, drain=True).run()
        print(jobs / (time.perf_counter() - began))
    app.close()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", url]:
            asyncio.run(_serve(url))
        case ["work", url, jobs]:
            asyncio.run(_work(url, int(jobs)))
        case ["watch", port, sessions, seconds]:
            print(json.dumps(watch(int(port), sessions.split(","), float(seconds))))
        case _:
            sys.exit("see script/bench --dashboard")
