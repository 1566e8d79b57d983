"""Warm children that read documents: under limits, one document at a time, replaced when they die or are old."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from windlass.apps.resumes.extraction.extracted import Extracted
from windlass.apps.resumes.extraction.limits import Limits


class Pool:
    """`async with Pool(2) as pool: extracted = await pool.extract(data, media_type)`.

    Children start when they are first needed, and end with the pool.
    """

    def __init__(self, size: int = 2, limits: Limits | None = None) -> None:
        self._size = size
        self._limits = limits if limits is not None else Limits()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def extract(self, data: bytes, media_type: str) -> Extracted:
        """Read a document in a child; DocumentRefused says why it never can be."""
        raise NotImplementedError
