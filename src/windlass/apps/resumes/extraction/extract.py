"""The one door into reading documents: by what a file is, not by what it is called. Runs in a limited child."""

from __future__ import annotations

from pathlib import Path

from windlass.apps.resumes.extraction.extracted import Extracted
from windlass.apps.resumes.extraction.limits import Limits
from windlass.apps.resumes.extraction.refused import DocumentRefused


def extract(source: Path | bytes, media_type: str, limits: Limits | None = None) -> Extracted:  # noqa: ARG001
    """Read a document; DocumentRefused says why it never can be.

    The media type is what the sender says: it decides only where the content does not.
    """
    bounds = limits if limits is not None else Limits()
    data = source if isinstance(source, bytes) else source.read_bytes()
    if len(data) > bounds.largest:
        raise DocumentRefused(f"it has {len(data):,} bytes: {bounds.largest:,} may be")
    if not data.strip():
        raise DocumentRefused("it is empty")
    raise DocumentRefused("it is neither a PDF nor a DOCX nor a text file")
