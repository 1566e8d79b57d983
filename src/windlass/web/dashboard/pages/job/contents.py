"""Contents: what a job was given, what it gave back and what it keeps, as the page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from windlass.core.kept import GATHER, SAVED, read_kept
from windlass.web.dashboard.json_tree import shown_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.job import Job

LARGEST_SHOWN = 8 * 1024
"""bytes of a kept value that is shown where it stands; a larger one is in the file"""
LARGEST_EDITED = 64 * 1024
"""bytes of a payload that is put into a field to be edited"""


@dataclass(frozen=True, slots=True)
class Content:
    """One JSON value."""

    part: str
    """as the API calls it"""
    title: str
    value: Any
    size: int
    note: str = ""


def payload_of(job: Job) -> Content:
    """Its arguments."""
    return Content("payload", "Payload", shown_json(job.payload_json), _size(job.payload_json))


def result_of(job: Job) -> Content | None:
    """What its handler returned, once it has."""
    if job.result_json is None:
        return None
    return Content("result", "Result", shown_json(job.result_json), _size(job.result_json))


def metadata_of(job: Job) -> Content | None:
    """What the caller attached."""
    if job.metadata_json is None:
        return None
    return Content("metadata", "Metadata", shown_json(job.metadata_json), _size(job.metadata_json))


@dataclass(frozen=True, slots=True)
class Kept:
    """One value that the job remembers from one attempt to the next."""

    kind: str
    name: str
    size: int
    value: Any
    shown: bool


_KINDS = {"step": "step", "signal": "signal", GATHER: "gathered", SAVED: "place in a loop"}


def kept_of(job: Job) -> Sequence[Kept]:
    """Everything that it keeps, in the order in which it came."""
    found: list[Kept] = []
    for label, text in read_kept(job.kept_json).items():
        kind, _, name = label.partition(":")
        size = _size(text)
        shown = size <= LARGEST_SHOWN
        value = shown_json(text) if shown else None
        if kind == GATHER and isinstance(value, list):
            value = {"jobs": cast("list[object]", value)[-1]}
        found.append(Kept(_KINDS.get(kind, kind), name or label, size, value, shown))
    return found


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
