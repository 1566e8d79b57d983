"""What a warm child does: documents come in, what was read of them goes out, one after the other."""

from __future__ import annotations

import resource
from typing import Any, BinaryIO

from windlass.apps.limited.frames import read, write
from windlass.apps.resumes.extraction.extract import extract
from windlass.apps.resumes.extraction.limits import Limits
from windlass.apps.resumes.extraction.refused import DocumentRefused


def serve(file: BinaryIO, out: BinaryIO, asked: dict[str, Any]) -> None:
    """Read each document that comes; two frames are one: its media type, and its bytes."""
    limits = Limits.of(asked["limits"])
    write(out, {"ready": True})
    while (media_type := read(file)) is not None and (data := read(file)) is not None:
        _grant(limits.seconds)
        try:
            frame: dict[str, Any] = {
                "extracted": extract(data, media_type.decode("utf-8", "replace"), limits).as_json()
            }
        except DocumentRefused as refusal:
            frame = {"not": str(refusal)}
        except MemoryError:
            frame = {"not": "reading it needs more memory than a document may"}
        write(out, frame)


def _grant(seconds: float) -> None:
    """Processor time for one document: the kernel ends a child that takes more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = int(used.ru_utime + used.ru_stime + seconds) + 1
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
