"""The structurer that needs nothing but the text: rules, the same answer every time."""

from __future__ import annotations

import asyncio

from windlass.apps.resumes.extraction.extracted import Extracted
from windlass.apps.resumes.resume import Resume
from windlass.apps.resumes.structuring.structurer import Structured


class Rules:
    """Structures by rules. The work is done in a thread: a document has bounds, and so has the time it takes."""

    async def structure(self, extracted: Extracted) -> Structured:
        return Structured(resume=await asyncio.to_thread(structure_by_rules, extracted), by="rules")


def structure_by_rules(extracted: Extracted) -> Resume:  # noqa: ARG001
    """The resume in a document's text."""
    return Resume()
