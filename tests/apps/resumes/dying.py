"""A worker that processes resumes up to a given moment, says so, and waits to be killed.

`python -m tests.apps.resumes.dying STORE NAMESPACE DATABASE FOLDER MOMENT`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, cast

from tests.apps.resumes.test_routes import here
from windlass import Windlass
from windlass.apps.resumes.extraction.extracted import Extracted
from windlass.apps.resumes.records.record import Holder, Records
from windlass.apps.resumes.resumes import install
from windlass.apps.resumes.settings import ResumesSettings
from windlass.apps.resumes.structuring.rules import Rules
from windlass.apps.resumes.structuring.structurer import Structured


class Ending:
    """Writes down what is done, and stops at one moment."""

    def __init__(self, folder: Path, moment: str) -> None:
        self._ledger, self._moment = folder / "ledger", moment

    async def at(self, moment: str) -> None:
        with self._ledger.open("a") as file:
            file.write(f"{moment}\n")
        if moment == self._moment:
            with self._ledger.open("a") as file:
                file.write(f"waits {moment}\n")
            await asyncio.Event().wait()

    async def read(self, data: bytes, media_type: str) -> Extracted:
        await self.at("extract begun")
        return await here(data, media_type)

    async def structure(self, extracted: Extracted) -> Structured:
        await self.at("structure begun")
        return await Rules().structure(extracted)

    def around(self, records: Records) -> Records:
        """The same records, with a moment after each write of a step."""
        write = records.write

        async def writes(record_id: str, holder: Holder, **changed: Any) -> None:
            await write(record_id, holder, **changed)
            await self.at(f"{_step(changed)} written")

        cast("Any", records).write = writes
        return records


def _step(changed: dict[str, Any]) -> str:
    if "completed_at" in changed:
        return "complete"
    if "structured_content" in changed:
        return "store"
    return "structure" if "structured" in (changed["draft"] or {}) else "extract"


async def main(url: str, namespace: str, database: str, folder: Path, moment: str) -> None:
    """Work until killed."""
    app, ending = Windlass(url, namespace=namespace), Ending(folder, moment)
    settings = ResumesSettings(files=str(folder / "files"), database=database or None, crashes=1000)
    resumes = install(app, settings, ending)
    resumes.read = ending.read
    async with app:
        ending.around(await resumes.records())
        async with app.worker(lease=0.5, poll=0.05, rescue=0.05):
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]), sys.argv[5]))
