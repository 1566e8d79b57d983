"""`script/bench --http`: the API over HTTP on the loopback, against a bare FastAPI route; live streams beside a worker.

Servers, those who watch and the worker are processes of their own. The client that measures is this process: it writes
requests and reads answers as bytes, so that it costs little beside what it measures.
"""

from __future__ import annotations

import asyncio
import json
import os
import selectors
import socket
import sys
import tempfile
import time
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI

from bench.figures import Figure, median, percentile
from windlass import Windlass
from windlass.web.live.pace import Pace
from windlass.web.routes.enqueueing import Enqueue  # read at run time by the bare routes
from windlass.web.shapes import JobShape

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

CONNECTIONS = 32
STREAMS = 500
_TURNS = 6
_NAMES = ("enqueue / bare", "get / bare", "p99 at half load", "claims beside streams", "left by streams")
_JOB = {"type": "noop", "payload": {"n": 1}, "tags": ["bench"], "correlationId": "bench"}


async def measure_http(*, quick: bool = False, only: Sequence[str] = ()) -> AsyncGenerator[Figure, None]:
    """Every figure; `only` some of them by a part of their names."""
    wanted = [name for name in _NAMES if not only or any(part in name for part in only)]
    with tempfile.TemporaryDirectory(prefix="windlass-bench-") as folder:
        if any("bare" in name or "p99" in name for name in wanted):
            for figure in await _routes(Path(folder), seconds=1.5 if quick else 5):
                yield figure
        if any("streams" in name for name in wanted):
            for figure in await _streams(Path(folder), jobs=30_000, least=15 if quick else 60):
                yield figure


async def _routes(folder: Path, seconds: float) -> list[Figure]:
    """Three rounds of each, alternating; ratios of a round, and the middle one of them."""
    url = f"sqlite:///{folder / 'http.db'}"
    rates: dict[str, list[float]] = {"bare post": [], "bare get": [], "enqueue": [], "get": []}
    async with _server("ours", url) as (ours, key, job), _server("bare", url) as (bare, _, _):
        posted, asked = _post(key), _get(key, job)
        for _ in range(3):
            rates["bare post"].append(await _rate(bare, posted, seconds))
            rates["enqueue"].append(await _rate(ours, posted, seconds))
            rates["bare get"].append(await _rate(bare, asked, seconds))
            rates["get"].append(await _rate(ours, asked, seconds))
        half = median(rates["enqueue"]) / 2
        took = await _at_rate(ours, posted, half, seconds)
    told = {name: median(some) for name, some in rates.items()}
    enqueue = median([mine / his for mine, his in zip(rates["enqueue"], rates["bare post"], strict=True)])
    get = median([mine / his for mine, his in zip(rates["get"], rates["bare get"], strict=True)])
    return [
        Figure(name="enqueue / bare", value=enqueue, unit="", least=0.5, told=told),
        Figure(name="get / bare", value=get, unit="", least=0.6),
        Figure(
            name="p99 at half load",
            value=percentile(took, 0.99) * 1000,
            unit="ms",
            most=50,
            told={"a second": half, "p50": percentile(took, 0.5) * 1000},
        ),
    ]


async def _streams(folder: Path, jobs: int, least: float) -> list[Figure]:
    """What a worker does beside five hundred streams, half of one view and half of single jobs, and what they leave."""
    url = f"sqlite:///{folder / 'streams.db'}"
    alone: list[float] = []
    beside: list[float] = []
    each: list[float] = []
    async with _server("ours", url) as (port, key, _), Windlass(url) as app:
        ids = [(await app.enqueue("later", {}, delay=86_400, user="ann")).id for _ in range(STREAMS // 2)]
        # What is made once is no leak: streams are watched beside a worker before the memory is looked at.
        await _beside(port, key, ids, url, jobs, least / _TURNS)
        before, files = _memory_mb(_pid(port)), _files(_pid(port))
        for _ in range(_TURNS):  # many short turns: what else the machine does meets both
            alone.append(await _worked(url, jobs))
            rates, told_each = await _beside(port, key, ids, url, jobs, least / _TURNS)
            beside += rates
            each.append(told_each)
        await asyncio.sleep(1)  # connections are closed after their last byte
        after, left = _memory_mb(_pid(port)), _files(_pid(port))
    if not median(each):
        raise RuntimeError("the streams were told of nothing")
    share = median(beside) / median(alone)
    told = {"alone": median(alone), "beside": median(beside), "KiB/s of each view": median(each)}
    return [
        Figure(name="claims beside streams", value=share, unit="", least=0.95, told=told),
        Figure(
            name="left by streams", value=after - before, unit="MB", most=10, told={"before": before, "after": after}
        ),
        Figure(name="files left by streams", value=left - files, unit="", most=2),
    ]


async def _beside(
    port: int, key: str, ids: Sequence[str], url: str, jobs: int, seconds: float
) -> tuple[list[float], float]:
    """What a worker does again and again beside the streams, for so long; and how many KiB a second a view is told."""
    process = await _started("watch", str(port), key, str(STREAMS), ",".join(ids))
    if process.stdout is None or await process.stdout.readline() != b"open\n":
        raise RuntimeError("the streams cannot be opened")
    began, rates = time.monotonic(), [await _worked(url, jobs)]
    while time.monotonic() - began < seconds:
        rates.append(await _worked(url, jobs))
    return rates, float(await _ended(process, "watch"))


async def _worked(url: str, jobs: int) -> float:
    """Jobs a second of a worker in its own process, from its first claim to the last end."""
    return float(await _output("work", url, str(jobs)))


async def _output(*args: str) -> str:
    return await _ended(await _started(*args), args[0])


async def _started(*args: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.http", *args, stdin=pipe, stdout=pipe)


async def _ended(process: asyncio.subprocess.Process, what: str) -> str:
    out, _ = await process.communicate(b"")  # which ends its input
    if process.returncode:
        raise RuntimeError(f"{what} ended with {process.returncode}")
    return out.decode()


_PIDS: dict[int, int] = {}


def _pid(port: int) -> int:
    return _PIDS[port]


@asynccontextmanager
async def _server(which: str, url: str) -> AsyncGenerator[tuple[int, str, str]]:
    """A server in its own process: its port, a key and the id of a job."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.http", "serve", which, url, stdout=asyncio.subprocess.PIPE
    )
    try:
        if process.stdout is None:
            raise RuntimeError("no output")
        said = json.loads(await process.stdout.readline())
        _PIDS[said["port"]] = process.pid
        yield said["port"], said["key"], said["job"]
    finally:
        process.terminate()
        await process.wait()


def _post(key: str) -> bytes:
    body = json.dumps(_JOB).encode()
    head = f"POST /api/v1/queue/enqueue HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _get(key: str, job: str) -> bytes:
    return f"GET /api/v1/queue/{job} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n\r\n".encode()


class _Line:
    """One connection that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @staticmethod
    async def to(port: int) -> _Line:
        return _Line(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, request: bytes) -> None:
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        if head[9:10] != b"2":
            raise RuntimeError(head.decode())
        await self._reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


async def _rate(port: int, request: bytes, seconds: float) -> float:
    """Answers a second on all connections, each asking as soon as it was answered."""
    lines = [await _Line.to(port) for _ in range(CONNECTIONS)]
    done, began = 0, time.perf_counter()

    async def ask_on(line: _Line) -> int:
        asked = 0
        while time.perf_counter() - began < seconds:
            await line.ask(request)
            asked += 1
        return asked

    done = sum(await asyncio.gather(*(ask_on(line) for line in lines)))
    rate = done / (time.perf_counter() - began)
    for line in lines:
        await line.close()
    return rate


async def _at_rate(port: int, request: bytes, rate: float, seconds: float) -> list[float]:
    """How long each answer took, from when it was to be asked: one that waits for a connection has waited, too."""
    lines: asyncio.Queue[_Line] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        lines.put_nowait(await _Line.to(port))
    took: list[float] = []

    async def ask(due: float) -> None:
        line = await lines.get()
        await line.ask(request)
        took.append(time.perf_counter() - due)
        lines.put_nowait(line)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(int(rate * seconds)):
            due = began + number / rate
            if due > time.perf_counter():
                await asyncio.sleep(due - time.perf_counter())
            tasks.create_task(ask(due))
    while not lines.empty():
        await lines.get_nowait().close()
    return took


def _memory_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def _files(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


# What runs in the other processes.


async def _serve(which: str, url: str) -> None:
    async with _app(url) as app:
        made = await app.keys.create("bench", owner="ann", scopes=["enqueue", "read"])
        job = (await app.enqueue("noop", {"n": 1}, user="ann")).id
        web = app.asgi(live=Pace(per_caller=STREAMS)) if which == "ours" else _bare()
        listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        # As `windlass serve` and uvicorn by itself have it: no answer waits until its head is acknowledged.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = uvicorn.Server(uvicorn.Config(web, log_level="error", access_log=False, lifespan="off"))
        print(json.dumps({"port": listening.getsockname()[1], "key": made.secret, "job": job}), flush=True)
        await server.serve(sockets=[listening])


def _bare() -> FastAPI:
    """Two routes of the same models, which store nothing and ask for no key."""
    now = datetime.now(UTC)
    values: dict[str, Any] = dict.fromkeys(JobShape.model_fields)
    values |= dict.fromkeys(("priority", "attempts", "max_attempts", "crashes"), 0)
    values |= dict.fromkeys(("created_at", "updated_at", "run_at"), now)
    values |= dict.fromkeys(("id", "id_", "type", "queue", "status"), "x")
    values["tags"], values["metadata"] = ["bench"], {}
    shape = JobShape(**values)
    web = FastAPI()

    async def enqueue(body: Enqueue) -> JobShape:
        return shape.model_copy(update={"type": body.type, "payload": body.payload})

    async def get(job_id: str) -> JobShape:
        return shape.model_copy(update={"id": job_id})

    web.post("/api/v1/queue/enqueue", status_code=201)(enqueue)
    web.get("/api/v1/queue/{job_id}")(get)
    return web


@asynccontextmanager
async def _app(url: str) -> AsyncGenerator[Windlass]:
    app = Windlass(url)

    @app.job(name="noop")
    async def noop(n: int) -> None: ...

    @app.job(name="later")
    async def later() -> None: ...

    async with app:
        yield app
    app.close()


async def _work(url: str, jobs: int) -> None:
    async with _app(url) as app:

        @app.job(name="paced")
        async def paced(n: int) -> None: ...

        await app.enqueue_many(paced.using(user="ann").bind(number) for number in range(jobs))
        began = time.perf_counter()
        await app.worker(concurrency=200, drain=True).run()
        print(jobs / (time.perf_counter() - began))


def _watch(port: int, key: str, n: int, ids: Sequence[str]) -> None:
    """So many streams, read until the input ends, by one selector: who watches is elsewhere in truth."""
    paths = [f"/queue/{job}/events" for job in ids] + ["/live?limit=20"] * (n - len(ids))
    streams = [_stream(port, path, key) for path in paths]
    print("open", flush=True)
    began = time.monotonic()
    told = _read(streams)
    views = [told[stream] / 1024 / (time.monotonic() - began) for stream in streams[len(ids) :]]
    print(median(views))


def _read(streams: Sequence[socket.socket]) -> dict[socket.socket, int]:
    """How many bytes each has told until the input ends."""
    told, buffer = dict.fromkeys(streams, 0), bytearray(2**20)
    with selectors.DefaultSelector() as ready:
        ready.register(sys.stdin, selectors.EVENT_READ)
        for stream in streams:
            ready.register(stream, selectors.EVENT_READ, stream)
        while True:
            for found, _ in ready.select():
                stream: socket.socket | None = found.data
                if stream is None:
                    return told
                got = stream.recv_into(buffer)
                if not got:
                    raise RuntimeError("a stream has ended")
                told[stream] += got


def _stream(port: int, path: str, key: str) -> socket.socket:
    stream = socket.create_connection(("127.0.0.1", port))
    stream.sendall(f"GET /api/v1{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
    head = stream.recv(65536)
    if b" 200 " not in head:
        raise RuntimeError(head.decode())
    return stream


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", which, url]:
            asyncio.run(_serve(which, url))
        case ["work", url, jobs]:
            asyncio.run(_work(url, int(jobs)))
        case ["watch", port, key, n, ids]:
            _watch(int(port), key, int(n), ids.split(","))
        case _:
            sys.exit("see script/bench --http")
