"""`script/bench --resumes`: tailored from what is stored, against processing the file first; resumes in the background.

The endpoint that structures is a server on loopback that takes two seconds for every answer, as a model would.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
import time
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import psutil

from bench.figures import Figure
from tests.apps.resumes.documents import DESCRIPTION, DOCX, docx, pdf, text
from windlass import Status, Windlass
from windlass.apps.resumes.extraction.extract import extract
from windlass.apps.resumes.generating import generate
from windlass.apps.resumes.resumes import TYPE, Resumes, Sent, install
from windlass.apps.resumes.settings import ResumesSettings
from windlass.apps.resumes.structuring.rules import structure_by_rules

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence

    from windlass.apps.resumes.rendering.render import Format
    from windlass.apps.resumes.resumes import Seen

DELAY = 2.0
"""seconds that the endpoint takes for each answer"""
_PDF, _TXT = "application/pdf", "text/plain"
_GENERATED = 20
_WARM = 20
_LOOK = 0.02


async def measure_resumes(*, quick: bool = False, only: Sequence[str] = ()) -> AsyncGenerator[Figure, None]:
    """Every figure; `only` some of them: `model`, `rules`, `background`."""
    if not only or "model" in only:
        with endpoint() as url:
            settings = {"model": "a-model", "model_url": url, "model_key": "none"}
            yield await _ratio("stored / from the file, model of 2 s", settings, 1 if quick else 3, least=20)
    if not only or "rules" in only:
        yield await _ratio("stored / from the file, rules", {}, 3 if quick else 9, least=None)
    if not only or "background" in only:
        yield await _background(150 if quick else 600)


async def _ratio(name: str, settings: dict[str, Any], rounds: int, *, least: float | None) -> Figure:
    """How much sooner a tailored PDF is there where the resume is stored already."""
    async with _opened(settings) as resumes:
        await _process(resumes, pdf("Warm Up", "Before"))  # the child, typst and the fonts are there
        await _tailored(resumes, await _process(resumes, pdf("Warm Up", "Again")), "pdf")
        cold: list[float] = []
        for number in range(rounds):
            began = time.perf_counter()
            seen = await _process(resumes, pdf(f"Ada Number {number}", f"Zorblatt {number}"))
            await _tailored(resumes, seen, "pdf")
            cold.append(time.perf_counter() - began)
        stored = {one: await _stored(resumes, seen, one) for one in ("pdf", "docx", "markdown")}
    told = {"from the file s": median(cold), **{f"stored {one} ms": took * 1000 for one, took in stored.items()}}
    return Figure(name=name, value=median(cold) / stored["pdf"], unit="×", least=least, told=told)


async def _stored(resumes: Resumes, seen: Seen, format_: Format) -> float:
    taken: list[float] = []
    for _ in range(_GENERATED):
        began = time.perf_counter()
        await _tailored(resumes, seen, format_)
        taken.append(time.perf_counter() - began)
    return median(taken)


async def _process(resumes: Resumes, data: bytes) -> Seen:
    return await resumes.at_once("ann", Sent(name="cv.pdf", media_type=_PDF, data=data))


async def _tailored(resumes: Resumes, seen: Seen, format_: Format) -> None:
    """What the route does: the record is read, tailored, scored and rendered, and its use counted."""
    found = await resumes.look(seen.record.id, "ann")
    assert found is not None
    await generate(found.record, DESCRIPTION, "Northwind", format_)
    await (await resumes.records()).used(seen.record.id)


async def _background(count: int) -> Figure:
    """Resumes a second of one worker on SQLite with two warm children; of ten six are PDF, three DOCX, one text."""
    async with _opened({}) as resumes:
        sent = [_document(number) for number in range(count + _WARM)]
        for one in sent[:_WARM]:
            await resumes.submit("ann", one)
        async with resumes.app.worker():
            await _until_done(resumes.app, _WARM)
            await resumes.app.queues.pause(resumes.settings.queue)
            for one in sent[_WARM:]:
                await resumes.submit("ann", one)
            began, used = time.perf_counter(), _used()
            await resumes.app.queues.resume(resumes.settings.queue)
            await _until_done(resumes.app, count + _WARM)
            took, cost = time.perf_counter() - began, _used() - used
    told = {"resumes": count, "s": took, "processor ms each": cost / count * 1000}
    return Figure(name="background", value=count / took, unit="resumes/s", least=40, told=told)


def _used() -> float:
    """Seconds of processor that this process and its children have had."""
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(one.cpu_times().user + one.cpu_times().system for one in family)


def _document(number: int) -> Sent:
    name, word = f"Ada Number {number}", f"Zorblatt {number}"
    match number % 10:
        case 0:
            return Sent(name="cv.txt", media_type=_TXT, data=text(name, word))
        case 1 | 4 | 7:
            return Sent(name="cv.docx", media_type=DOCX, data=docx(name, word))
        case _:
            return Sent(name="cv.pdf", media_type=_PDF, data=pdf(name, word))


async def _until_done(app: Windlass, count: int) -> None:
    async with app.jobs.changes() as changed:
        while (await app.jobs.count(type=TYPE, status=Status.SUCCEEDED)).n < count:
            changed.clear()
            await asyncio.wait([asyncio.ensure_future(changed.wait())], timeout=_LOOK)


@asynccontextmanager
async def _opened(settings: dict[str, Any]) -> AsyncGenerator[Resumes, None]:
    with tempfile.TemporaryDirectory(prefix="windlass-bench-") as folder:
        app = Windlass(f"sqlite:///{Path(folder) / 'jobs.db'}")
        resumes = install(app, ResumesSettings(files=folder, **settings))
        async with app:
            yield resumes
        app.close()


@contextmanager
def endpoint() -> Generator[str, None, None]:
    """An endpoint like OpenAI's: it answers every question with the resume that the rules find, after its delay."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answering)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Answering(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        document = next(iter(json.loads(asked["messages"][-1]["content"]).values()))
        resume = structure_by_rules(extract(document.encode(), _TXT)).as_json()
        time.sleep(DELAY)
        message = {"role": "assistant", "content": json.dumps(resume)}
        told = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": asked["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500},
        }
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on the screen."""
