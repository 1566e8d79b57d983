"""The pipeline: four durable steps, gone on with where they stopped; what is refused, removed or broken on the way."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from tests.apps.resumes.test_records import record
from tests.support.apps import app_at, until_status, working
from windlass import Ctx, Handle, JobFunction, Retry, Snooze, Status, Windlass
from windlass.apps.resumes.extraction.extracted import Extracted, Facts, Hidden, Line, Page
from windlass.apps.resumes.extraction.refused import DocumentRefused
from windlass.apps.resumes.files import Files
from windlass.apps.resumes.processing import STEPS, Processing, storable
from windlass.apps.resumes.records.places import records_at
from windlass.apps.resumes.records.record import Record, Records
from windlass.apps.resumes.resume import Basics, Resume
from windlass.apps.resumes.structuring.structurer import Structured

PLANTED = "PLANTED-7391"


def document(text: str = f"Zoë {PLANTED}\0 \ud800") -> Extracted:
    facts = Facts(kind="txt", pages=1, characters=len(text), words=2, hidden=3)
    hidden = (Hidden(why="white", page=1, characters=3, beginning=PLANTED),)
    return Extracted(pages=(Page(lines=(Line(text=text),)),), facts=facts, hidden=hidden)


class Bench:
    """The pipeline with hands of the test's own at its two seams: reading and structuring."""

    def __init__(self, app: Windlass, records: Records, files: Files) -> None:
        self.app, self.records, self.files = app, records, files
        self.done: list[str] = []
        self.before: dict[str, Callable[[], Awaitable[None]]] = {}
        processing = Processing(records, files, self.read, self)

        async def carry_out(ctx: Ctx, resumes: list[str]) -> dict[str, list[str]]:
            return await processing.carry_out(ctx, resumes)

        self.job: JobFunction[[list[str]], dict[str, list[str]]] = app.job(name="p", retry=Retry(3, base=0.01))(
            carry_out
        )

    async def read(self, data: bytes, media_type: str) -> Extracted:
        await self._come("extract")
        return document(data.decode("utf-8", "surrogatepass"))

    async def structure(self, extracted: Extracted) -> Structured:
        await self._come("structure")
        name = extracted.text.split()[0]
        return Structured(resume=Resume(basics=Basics(name=name, summary=extracted.text)), by="a test", dropped=2)

    async def _come(self, name: str) -> None:
        self.done.append(name)
        if name in self.before:
            await self.before[name]()

    async def new(self, text: str = f"Zoë {PLANTED}", number: int = 0) -> Record:
        data = text.encode("utf-8", "surrogatepass")
        await self.files.keep("ann", data)
        made = replace(record(number=number), file_hash=sha256(data).hexdigest())
        return await self.records.add(made)

    async def run(self, *made: Record) -> Handle[dict[str, list[str]]]:
        handle = await self.job.enqueue([one.id for one in made])
        await self.app.worker(drain=True).run()
        return handle

    async def found(self, made: Record) -> Record:
        found = await self.records.get(made.id)
        assert found is not None
        return found


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench, None]:
    app, records = app_at(tmp_path / "jobs.db"), records_at(f"sqlite:///{tmp_path / 'r.db'}?synchronous=OFF")
    await records.prepare()
    async with app:
        yield Bench(app, records, Files(str(tmp_path / "files"), 10_000))
    await records.close()
    app.close()


async def test_a_resume_goes_through_four_steps_and_the_job_keeps_nothing_of_it(bench: Bench) -> None:
    made = await bench.new(f"Zoë\0 {PLANTED} \ud800")
    handle = await bench.run(made)
    assert await handle.result() == {"completed": [made.id], "failed": [], "gone": []}
    found, job = await bench.found(made), await handle.job()
    assert found.extracted_text == f"Zoë {PLANTED} ?"
    assert found.structured_content == {"basics": {"name": "Zoë", "summary": f"Zoë {PLANTED} ?"}}
    assert found.business_metadata["structuring"]["dropped"] == 2
    assert found.business_metadata["facts"]["words"] == 2
    assert found.business_metadata["hidden"] == [{"why": "white", "page": 1, "characters": 3}]
    assert (found.draft, found.error, found.job_id, found.completed_at is None) == (None, None, job.id, False)
    assert set(json.loads(job.kept_json or "{}")) == {f"step:{name}:{made.id}" for name in STEPS}
    assert PLANTED not in str(job)


@pytest.mark.parametrize("step", ["extract", "structure"])
async def test_an_error_is_told_without_what_it_quotes_and_is_tried_again(bench: Bench, step: str) -> None:
    made, times = await bench.new(), list[int]()

    async def breaks() -> None:
        times.append(1)
        if len(times) == 1:
            raise ValueError(f"cannot read {PLANTED}")

    bench.before[step] = breaks
    async with working(bench.app):
        handle = await bench.job.enqueue([made.id])
        job = await until_status(handle, Status.SUCCEEDED, Status.FAILED)
    assert job.status is Status.SUCCEEDED
    history = await bench.app.jobs.history(job.id)
    told = " ".join(str(entry) for entry in history)
    assert f"{step}: ValueError in test_processing.py" in told
    assert PLANTED not in told
    assert bench.done.count("extract") == (2 if step == "extract" else 1)


async def test_what_is_refused_is_not_tried_again_and_says_why(bench: Bench) -> None:
    made = await bench.new()

    async def refuses() -> None:
        raise DocumentRefused("it is encrypted")

    bench.before["extract"] = refuses
    handle = await bench.run(made)
    job = await handle.job()
    assert (job.status, job.attempts) == (Status.FAILED, 1)
    assert job.error is not None
    assert job.error.message == "the document cannot be processed: it is encrypted"
    found = await bench.found(made)
    assert (found.error, found.draft) == ("it is encrypted", None)


async def test_a_file_that_is_gone_is_a_refusal(bench: Bench) -> None:
    made = await bench.new()
    await bench.files.remove("ann", made.file_hash)
    await bench.run(made)
    assert "not there any more" in ((await bench.found(made)).error or "")


async def test_one_that_is_refused_does_not_hold_up_the_others_of_its_job(bench: Bench) -> None:
    some = [await bench.new(f"N{number} x", number) for number in range(3)]

    async def refuses() -> None:
        if len(bench.done) == 3:  # extract, structure, extract
            raise DocumentRefused("it is empty")

    bench.before["extract"] = refuses
    handle = await bench.run(*some)
    assert await handle.result() == {"completed": [some[0].id, some[2].id], "failed": [some[1].id], "gone": []}
    assert [(await bench.found(one)).error for one in some] == [None, "it is empty", None]


async def test_what_is_removed_meanwhile_is_not_written_any_more(bench: Bench) -> None:
    made = await bench.new()

    async def removes() -> None:
        await bench.records.remove([made.id])

    bench.before["structure"] = removes
    handle = await bench.run(made)
    assert (await handle.job()).status is Status.CANCELLED
    assert await bench.records.find(None, 10) == []


async def test_a_structurer_that_asks_for_time_gets_it_and_nothing_is_read_again(bench: Bench) -> None:
    made, times = await bench.new(), list[int]()

    async def later() -> None:
        times.append(1)
        if len(times) == 1:
            raise Snooze(0.01)

    bench.before["structure"] = later
    async with working(bench.app):
        await until_status(await bench.job.enqueue([made.id]), Status.SUCCEEDED)
    assert bench.done == ["extract", "structure", "structure"]


async def test_a_structurer_that_puts_off_for_ever_is_followed_by_the_rules(bench: Bench) -> None:
    made = await bench.new("Ada Quillfeather\nada@example.org\n")

    async def never() -> None:
        raise Retry(after=0.01)

    bench.before["structure"] = never
    async with working(bench.app):
        await until_status(await bench.job.enqueue([made.id]), Status.SUCCEEDED)
    found = await bench.found(made)
    told = found.business_metadata["structuring"]
    assert (told["by"], told["fell_back"]) == ("rules", "it was put off as often as it may be")
    assert (found.structured_content or {})["basics"]["email"] == "ada@example.org"


async def test_what_a_worker_had_found_when_it_died_is_not_found_again(bench: Bench) -> None:
    """Between the record and the job's memory: the record has it, the job does not know."""
    made = await bench.new()
    from windlass.apps.resumes.records.record import Holder

    extracted, structured = document("Ann x"), Structured(resume=Resume(basics=Basics(name="Paid")), by="a model")
    await bench.records.begin(made.id, Holder())
    draft = {"extracted": storable(extracted.as_json()), "structured": structured.as_json()}
    await bench.records.write(made.id, Holder(), draft=draft)
    handle = await bench.run(made)
    assert (await handle.job()).status is Status.SUCCEEDED
    assert bench.done == []
    assert (await bench.found(made)).structured_content == {"basics": {"name": "Paid"}}


async def test_a_job_that_is_replayed_goes_on_with_what_is_not_complete(bench: Bench) -> None:
    some = [await bench.new("A x", 1), await bench.new("B x", 2)]

    async def refuses() -> None:
        if len(bench.done) == 3:
            raise DocumentRefused("not today")

    bench.before["extract"] = refuses
    handle = await bench.run(*some)
    del bench.before["extract"]
    again = await bench.app.jobs.replay(handle.id)
    await bench.app.worker(drain=True).run()
    assert await again.result() == {"completed": [one.id for one in some], "failed": [], "gone": []}
    assert [(await bench.found(one)).error for one in some] == [None, None]


async def test_a_second_job_leaves_alone_what_the_first_has(bench: Bench) -> None:
    made = await bench.new()
    await bench.records.attach([made.id], "another")
    handle = await bench.run(made)
    assert (await handle.job()).status is Status.CANCELLED
    assert bench.done == []


def test_what_no_database_keeps_is_left_out() -> None:
    assert storable({"a": ["x\0y", "\ud83d", "ok ü", 1, None, ("z\0",)]}) == {"a": ["xy", "?", "ok ü", 1, None, ["z"]]}
