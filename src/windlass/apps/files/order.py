"""Orders: what a job of a write is given, and what it gives back."""

from __future__ import annotations

import base64
from typing import NotRequired

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict  # before Python 3.12 pydantic reads no other


class Order(BaseModel):
    """One write, as it was asked for."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    seq: int = 0
    """of this file, given when it was enqueued"""
    sha256: str
    size: int
    text: str | None = None
    """the content, if it is short and is text"""
    base64: str | None = None
    """the content, if it is short"""
    if_match: list[str] = []
    if_none_match: bool = False
    restores: int | None = None
    """the version whose content it is"""

    @property
    def content(self) -> bytes | None:
        """The content; None where it waits in the blob store."""
        if self.text is not None:
            return self.text.encode()
        return None if self.base64 is None else base64.b64decode(self.base64)


class Result(TypedDict):
    """What became of a write."""

    success: bool
    projectId: str
    fileId: str
    hash: str
    """SHA-256 of the current version"""
    lastModified: str
    """when it was committed: milliseconds since 1970, as text"""
    superseded: NotRequired[int]
    """the version that was written before it, of a write that came too late; then nothing was written"""


def held(content: bytes) -> tuple[str | None, str | None]:
    """Content as a job holds it: as text, or else in base64."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = None
    if text is None or "\0" in text:  # no store keeps it
        return None, base64.b64encode(content).decode()
    return text, None
