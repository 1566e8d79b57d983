"""Lines: a job's history as text, one JSON object on each line, as SQLite and PostgreSQL keep it in a column."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from windlass.core.history import Entry, Happened
from windlass.core.status import Status

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def line_end(
    happened: Happened,
    status: Status,
    actor: str | None = None,
    token: int | None = None,
    note: str | None = None,
    *,
    ascii_only: bool = True,
) -> str:
    """The rest of a line after its number and instant, which the statement that appends it writes."""
    told: dict[str, Any] = {}
    if actor is not None:
        told["by"] = actor
    if token is not None:
        told["token"] = token
    if note is not None:
        told["note"] = note
    more = "," + json.dumps(told, ensure_ascii=ascii_only)[1:-1] if told else ""
    return f',"what":"{happened.value}","status":"{status.value}"{more}}}'


def entries_of(history: str) -> list[Entry]:
    """A job's history, oldest first."""
    return [
        Entry(
            number=line["n"],
            at=_EPOCH + timedelta(milliseconds=line["at"]),
            happened=Happened(line["what"]),
            status=Status(line["status"]),
            actor=line.get("by"),
            token=line.get("token"),
            note=line.get("note"),
        )
        for line in json.loads(f"[{','.join(history.split(chr(10)))}]")
    ]
