"""Processing a resume in four steps: extract, structure, store, complete. What a step has found stands in the record.

The job's own memory holds that a step is done, and nothing of what is in a resume.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from windlass import Cancel, Reject, Retry, Signal, WindlassError
from windlass.apps.resumes.extraction.extracted import Extracted
from windlass.apps.resumes.extraction.refused import DocumentRefused
from windlass.apps.resumes.files import FileGone
from windlass.apps.resumes.records.record import Holder, Overtaken, now
from windlass.apps.resumes.structuring.rules import Rules
from windlass.apps.resumes.structuring.structurer import Structured

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from windlass import Ctx
    from windlass.apps.resumes.files import Files
    from windlass.apps.resumes.records.record import Record, Records
    from windlass.apps.resumes.structuring.structurer import Structurer

Read: TypeAlias = Callable[[bytes, str], Awaitable[Extracted]]
STEPS = {
    "extract": "reading the document",
    "structure": "finding its parts",
    "store": "storing what was found",
    "complete": "completing",
}
"""in their order, with what people are told meanwhile"""


class ProcessingFailed(Exception):
    """A step went wrong: which one, how and where. What the error said is not quoted: it may be people's data."""


class Processing:
    """What the steps need, and how a job goes through them."""

    def __init__(self, records: Records, files: Files, read: Read, structurer: Structurer) -> None:
        self.records, self.files, self.read, self.structurer = records, files, read, structurer

    async def carry_out(self, ctx: Ctx, record_ids: Sequence[str]) -> dict[str, list[str]]:
        """Process the resumes that a job tracks; one that is refused does not hold up the others."""
        if ctx.job.replay_of is not None:
            await self.records.hand_over(record_ids, ctx.job.replay_of, ctx.id)
        steps, refused = len(STEPS) * len(record_ids), list[str]()
        ends: dict[str, list[str]] = {"completed": [], "failed": [], "gone": []}
        for index, record_id in enumerate(record_ids):
            try:
                end = await self._one(ctx, record_id, index * len(STEPS), steps)
            except DocumentRefused as error:
                end = "failed"
                refused.append(str(error))
            ends[end].append(record_id)
        ctx.progress(steps, steps)
        if not ends["completed"]:
            raise Reject(f"the document cannot be processed: {refused[0]}") if refused else Cancel("it was removed")
        return ends

    async def _one(self, ctx: Ctx, record_id: str, done: int, of: int) -> str:
        holder = Holder(ctx.id, ctx.token)
        try:
            record = await self.records.begin(record_id, holder)
            if record.completed_at is None:
                last = ctx.attempt >= ctx.job.max_attempts
                await self._steps(ctx, OneResume(self, record, holder, last=last), done, of)
        except Overtaken:
            known = await self.records.get(record_id)
            return "gone" if known is None or known.completed_at is None else "completed"
        return "completed"

    async def _steps(self, ctx: Ctx, one: OneResume, done: int, of: int) -> None:
        for offset, (name, note) in enumerate(STEPS.items()):
            ctx.progress(done + offset, of, note)
            await ctx.step(name, one.step(name), key=one.record.id)

    async def at_once(self, record_id: str) -> None:
        """Process a resume here and now, without a job; DocumentRefused says why it never can be."""
        holder = Holder()
        one = OneResume(self, await self.records.begin(record_id, holder), holder)
        for name in STEPS:
            await one.step(name)()


class OneResume:
    """One attempt at one resume. Each step may be carried out again: it begins with what the record has."""

    def __init__(self, processing: Processing, record: Record, holder: Holder, *, last: bool = False) -> None:
        self._by, self.record, self._holder, self._last = processing, record, holder, last
        self._draft: dict[str, Any] = record.draft or {}

    def step(self, name: str) -> Callable[[], Awaitable[None]]:
        """A step by its name. A refusal is written down, and an error is told without what it quotes."""

        async def carry_out() -> None:
            step: Callable[[], Awaitable[None]] = getattr(self, name)
            try:
                with _told(name):
                    await step()
            except DocumentRefused as error:
                await self._write(error=str(error), draft=None)
                raise

        return carry_out

    async def extract(self) -> None:
        """From the file to its visible text with its layout."""
        if self._draft:  # a worker died between the record and the job's memory
            return
        data = await self._by.files.read(self.record.user_id, self.record.file_hash)
        extracted = await self._by.read(data, self.record.media_type)
        await self._keep(extracted=storable(extracted.as_json()))

    async def structure(self) -> None:
        """From the text to JSON Resume."""
        if "structured" in self._draft:  # the same: a model is not paid twice
            return
        extracted = Extracted.of(self._draft["extracted"])
        try:
            structured = await self._by.structurer.structure(extracted)
        except Retry:
            if not self._last:
                raise
            structured = replace(await Rules().structure(extracted), fell_back="it was put off as often as it may be")
        await self._keep(structured=storable(structured.as_json()))

    async def store(self) -> None:
        """What was found becomes the record's, checked once more as JSON Resume, with how it came about."""
        extracted, structured = Extracted.of(self._draft["extracted"]), Structured.of(self._draft["structured"])
        told = {name: value for name, value in structured.as_json().items() if name != "resume"}
        hidden = [{"why": one.why, "page": one.page, "characters": one.characters} for one in extracted.hidden]
        await self._write(
            extracted_text=extracted.text,
            structured_content=structured.resume.as_json(),
            business_metadata={"facts": extracted.facts.as_json(), "structuring": told, "hidden": hidden},
        )

    async def complete(self) -> None:
        """From now on resumes are generated of it; what stood there between the steps is gone."""
        await self._write(draft=None, completed_at=now())

    async def _keep(self, **found: Any) -> None:
        self._draft = {**self._draft, **found}
        await self._write(draft=self._draft)

    async def _write(self, **changed: Any) -> None:
        await self._by.records.write(self.record.id, self._holder, **changed)


@contextmanager
def _told(step: str) -> Generator[None, None, None]:
    """Errors without what they quote: they are kept with the job, and written to logs."""
    try:
        yield
    except (DocumentRefused, Overtaken, Signal, WindlassError):
        raise
    except FileGone as error:
        raise DocumentRefused(str(error)) from None
    except Exception as error:  # noqa: BLE001  # whatever it is, it may quote a resume
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        raise ProcessingFailed(f"{step}: {type(error).__name__} in {where}") from None


def storable(value: Any) -> Any:
    """Without what no database keeps: zeros in text, and halves of characters."""
    match value:
        case str():
            return value if _is_plain(value) else value.replace("\0", "").encode("utf-8", "replace").decode()
        case dict():
            return {name: storable(one) for name, one in cast("dict[str, Any]", value).items()}
        case list() | tuple():
            return [storable(one) for one in cast("list[Any]", value)]
        case _:
            return value


def _is_plain(text: str) -> bool:
    return "\0" not in text and (text.isascii() or not any("\ud800" <= one <= "\udfff" for one in text))
