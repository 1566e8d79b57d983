"""Between documents and values: what a job, a history line or an instant looks like in MongoDB.

Fields that have no value are absent, never null. Payload, result, metadata and error are JSON text, opaque to the
server, so that any member name survives. `moves` counts every line a job's history ever had and so is its version:
a change of a job names the `moves` that was read, and writes nothing if the job has moved since. How long a job
waited and ran follows from its instants, and is written down only when those are about to be overwritten. `called` is
what a queued job was blocked by before `promote` called it from the line of its rate; those who still wait have
`blocked_by`, and only they are in that index. `fair_key` is empty for a job that takes no part, in a queue where others
do. `confirmed` is the token of the last lease that was extended, `charged` that of the lease whose loss was last
counted as a crash, while it still is. `begin_by` is when a job expires, until a worker takes it: only those that may
still expire are in that index, and what becomes of others does not touch it. `kept` has a field for each name, in which
the characters that mean something in a path are written as in URLs.
"""

from __future__ import annotations

import json
from datetime import UTC, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from windlass.core.fields import Kind
from windlass.core.history import HISTORY_LIMIT, Entry, Happened
from windlass.core.job import Error, Progress
from windlass.core.status import Status
from windlass.stores.columns import NAMES, Columns, reader, writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from bson import ObjectId

    from windlass.core.job import Job
    from windlass.stores.mongo.connection import Doc, Link

STATUSES = {status.value: status for status in Status}
KEPT = Columns({**NAMES, "id": "_id"})
_INSTANTS = (*(name for name, kind in KEPT.kinds.items() if kind is Kind.INSTANT), "idempotent_until", "begin_by")
NO_HISTORY = {"history": 0}
"""A job can have a long one, and only one view shows it."""


def as_ms(value: timedelta) -> int:
    """A timedelta in milliseconds, rounded up: never earlier than asked."""
    return -(-value // timedelta(milliseconds=1))


def whole(value: timedelta) -> timedelta:
    """The same as a timedelta."""
    return timedelta(milliseconds=as_ms(value))


@lru_cache(maxsize=1024)
def duration(ms: int) -> timedelta:
    """Milliseconds as a timedelta."""
    return timedelta(milliseconds=ms)


def in_ms(value: timedelta) -> int:
    """The whole milliseconds of a difference between two stored instants."""
    return value // timedelta(milliseconds=1)


def latest(now: datetime, docs: Iterable[Mapping[str, Any]]) -> datetime:
    """The instant to write: now, but never before what these documents tell of already."""
    found: datetime = max([now, *[doc["updated_at"] for doc in docs]])
    return found


def in_utc(doc: Doc) -> Doc:
    """The same document, which was read without time zones, with all its instants in UTC."""
    for name in _INSTANTS:
        if name in doc:
            doc[name] = doc[name].replace(tzinfo=UTC)
    return doc


_IN_KEPT = "kept."
_HELD_BY_PATHS = str.maketrans({"%": "%25", ".": "%2E", "$": "%24"})


def kept_at(name: str) -> str:
    """The path of what a job keeps under a name."""
    return f"{_IN_KEPT}{name.translate(_HELD_BY_PATHS)}"


def kept_of(kept: Mapping[str, str]) -> dict[str, str]:
    """What a job keeps, by name, from the field of that."""
    return {unquote(field): text for field, text in kept.items()}


def keeps(doc: Doc, name: str) -> bool:
    """Whether a job keeps something under a name."""
    return kept_at(name).removeprefix(_IN_KEPT) in doc.get("kept", ())


def with_values(doc: Doc, values: Mapping[str, Any]) -> Doc:
    """The document after these fields were set, None removing one."""
    kept = {**doc.get("kept", {}), **{path[len(_IN_KEPT) :]: text for path, text in values.items() if _inside(path)}}
    others = {name: value for name, value in values.items() if not _inside(name)}
    return present({**doc, **others, "kept": kept or None})


def _inside(path: str) -> bool:
    return path.startswith(_IN_KEPT)


_job_of = reader(
    {
        Kind.STATUS: STATUSES.__getitem__,
        Kind.DURATION: duration,
        Kind.ERROR: Error.of_text,
        Kind.PROGRESS: Progress.of_text,
        Kind.TAGS: tuple,
    },
    {"fair_key": lambda key: key or None, "kept_json": lambda kept: json.dumps(kept_of(kept), ensure_ascii=False)},
)
_RAN, _WAITED, _BLOCKED_BY = (KEPT.names.index(name) for name in ("duration_ms", "wait_ms", "blocked_by"))


def job_of(doc: Doc) -> Job:
    """The job of a document."""
    values = list(map(doc.get, KEPT.names))
    if values[_WAITED] is None:
        values[_WAITED] = waited(doc)
    if values[_RAN] is None:
        values[_RAN] = ran(doc)
    if values[_BLOCKED_BY] is None:
        values[_BLOCKED_BY] = doc.get("called")
    return _job_of(values)


asked_of = writer({Kind.DURATION: as_ms, Kind.TAGS: lambda tags: list(tags) or None})
"""What the documents of new jobs have from their options; None is left out."""


def line(
    now: datetime,
    happened: Happened,
    status: Status,
    *,
    by: str | None = None,
    token: int | None = None,
    note: str | None = None,
    mark: ObjectId | None = None,
) -> Doc:
    """One line of history; its number follows from its place and from `moves`.

    The mark tells whose write it was: a batch that changed fewer jobs than asked finds its own by it.
    """
    told = {"at": now, "what": happened.value, "status": status.value, "by": by, "token": token, "note": note}
    return present({**told, "mark": mark})


def present(values: Mapping[str, Any]) -> Doc:
    """What has a value."""
    return {name: value for name, value in values.items() if value is not None}


def change(
    told: Doc,
    values: Mapping[str, Any],
    *,
    more: Mapping[str, int] | None = None,
    wake: str | None = None,
    of: Sequence[Doc] | None = None,
) -> Doc:
    """An update that sets these fields (None removes one), adds to others and appends its line of history.

    It may wake listeners. Plain operators and not a pipeline: they cost the server less. So does leaving out what
    there is nothing to do for, a field to remove or a history to shorten: `of` are the jobs as they were read, if that
    was with `moves` and all fields that it may remove.
    """
    appended: Doc = {"$each": [told]}
    if of is None or any(doc["moves"] >= HISTORY_LIMIT for doc in of):
        appended["$slice"] = -HISTORY_LIMIT
    update: Doc = {
        "$set": {"updated_at": told["at"], "status": told["status"], **present({**values, "wake": wake})},
        "$inc": {"moves": 1, **{name: n for name, n in (more or {}).items() if n}},
        "$push": {"history": appended},
    }
    removed = {
        name: "" for name, value in values.items() if value is None and (of is None or any(name in doc for doc in of))
    }
    if removed:
        update["$unset"] = removed
    return update


def as_pipeline(update: Doc, looked_up: Doc) -> list[Doc]:
    """The same change as a pipeline, which can also look values up in the document itself."""
    history = {"$concatArrays": ["$history", [{"$literal": told} for told in update["$push"]["history"]["$each"]]]}
    return [
        {
            "$set": {
                **{name: {"$literal": value} for name, value in update["$set"].items()},
                **dict.fromkeys(update.get("$unset", ()), "$$REMOVE"),
                **{name: {"$add": [f"${name}", n]} for name, n in update["$inc"].items()},
                "history": {"$slice": [history, -HISTORY_LIMIT]},
                **looked_up,
            }
        }
    ]


def waited(doc: Doc) -> int | None:
    """How long the job waited before it was last claimed, in milliseconds."""
    if "wait_ms" in doc or "started_at" not in doc or "queued_at" not in doc:
        return doc.get("wait_ms")
    return in_ms(doc["started_at"] - doc["queued_at"])


def ran(doc: Doc) -> int | None:
    """How long its last attempt that ended took, in milliseconds."""
    if "duration_ms" in doc or "started_at" not in doc or "finished_at" not in doc:
        return doc.get("duration_ms")
    return in_ms(doc["finished_at"] - doc["started_at"])


async def marked(link: Link, ids: Iterable[str], mark: ObjectId) -> set[str]:
    """Which of these jobs were changed by the write of this mark, even if others have changed them since."""
    docs = await link.jobs.find({"_id": {"$in": list(ids)}, "history.mark": mark}, {"_id": 1}).to_list()
    return {doc["_id"] for doc in docs}


def entries_of(doc: Doc) -> list[Entry]:
    """A job's history, oldest first."""
    lines: list[Doc] = doc["history"]
    first = doc["moves"] - len(lines) + 1
    return [
        Entry(
            number=number,
            at=told["at"],
            happened=Happened(told["what"]),
            status=STATUSES[told["status"]],
            actor=told.get("by"),
            token=told.get("token"),
            note=told.get("note"),
        )
        for number, told in enumerate(lines, first)
    ]
