"""Types: the list, and one of them with what it takes, how it does, and a form to enqueue it by hand."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windlass.client.figures import By, RunFigures
from windlass.client.workers import Presence
from windlass.core.errors import HandlerNotFound
from windlass.core.keys import shown
from windlass.core.status import Status
from windlass.core.wording import span
from windlass.stores.contract import Scope
from windlass.web.dashboard.pages.types.fields import Field, fields_of, says
from windlass.web.dashboard.room import Page, Rail, Room

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.core.declared import Declared
    from windlass.stores.contract import Count
    from windlass.web.dashboard.visit import Visit

HOUR = timedelta(hours=1)
ROWS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One type as the list shows it."""

    declared: Declared
    takes: str
    workers: int
    runs: RunFigures
    series: Sequence[int]


async def show_all(visit: Visit) -> dict[str, Any]:
    """Every type that the caller may know of, by name."""
    wanted = visit.asked("find").strip()
    found = await _known(visit)
    matching = [one for one in found if wanted.casefold() in f"{one.type} {one.queue}".casefold()]
    later = [one for one in matching if one.type > visit.asked("after")]
    seen = await visit.stats.read(since=HOUR, max_age=visit.age)
    runs, workers = seen.figures(By.TYPE), await _workers(visit)
    return {
        "rows": [
            Row(
                declared=one,
                takes=_takes(one),
                workers=sum(one.type in types for types in workers),
                runs=runs.get(one.type, RunFigures()),
                series=[ended.total() for _, ended in seen.series(type=one.type)],
            )
            for one in later[:ROWS]
        ],
        "total": len(found),
        "matching": len(matching),
        "wanted": wanted,
        "before": visit.here(after=None) if visit.asked("after") else None,
        "after": visit.here(after=later[ROWS - 1].type) if len(later) > ROWS else None,
    }


async def show_one(visit: Visit) -> dict[str, Any]:
    """One type."""
    name = visit.asked("type")
    declared = next((one for one in await _known(visit) if one.type == name), None)
    if declared is None:
        raise HandlerNotFound(f"no handler is known of the type {shown(name)}")
    seen = await visit.stats.read(since=HOUR, max_age=visit.age)
    fields = fields_of(declared.payload_schema)
    return {
        "title": name,
        "declared": declared,
        "runs": seen.figures(By.TYPE).get(name, RunFigures()),
        "series": [ended.total() for _, ended in seen.series(type=name)],
        "counts": dict(zip(_COUNTED, await _counts(visit, name), strict=True)),
        "versions": [one for one in await visit.app.types.list() if one.declared.type == name],
        "workers": sum(name in types for types in await _workers(visit)),
        "options": _in_words(declared.options),
        "fields": fields,
        "takes": says(declared.payload_schema),
        "gives": says(declared.result_schema),
        "result_fields": fields_of(declared.result_schema),
        "schemas": (("Payload", declared.payload_schema), ("Result", declared.result_schema)),
        "example": _example(fields),
        "enqueues": visit.may(Scope.ENQUEUE),
    }


_COUNTED = (Status.QUEUED, Status.PROCESSING, Status.FAILED)


async def _counts(visit: Visit, name: str) -> Sequence[Count]:
    return await asyncio.gather(*(visit.jobs.count(type=name, status=one, max_age=3) for one in _COUNTED))


async def _known(visit: Visit) -> Sequence[Declared]:
    grants = visit.caller.grants
    return [one for one in await visit.app.types.known() if grants.allow(type_=one.type, queue=one.queue)]


async def _workers(visit: Visit) -> Sequence[Sequence[str]]:
    """The types of each worker that takes jobs."""
    return [one.types for one in await visit.app.workers.list() if one.presence is Presence.ALIVE]


def _takes(declared: Declared) -> str:
    fields = fields_of(declared.payload_schema)
    if fields is None:
        return says(declared.payload_schema)
    return ", ".join(one.name if one.required else f"[{one.name}]" for one in fields) or "nothing"


def _example(fields: Sequence[Field] | None) -> str:
    """A payload to begin with, where JSON is typed by hand."""
    return json.dumps({one.name: None for one in fields or () if one.required}, indent=2, ensure_ascii=False)


def _in_words(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a handler declares beside its queue, as lines of a name and what it says; attempts stand with retries."""
    shown_ = {name: value for name, value in options.items() if name != "max_attempts"}
    words = {name: "attempts" if name == "retry" else name.removesuffix("_ms").removesuffix("_json") for name in shown_}
    return [(words[name].replace("_", " "), _option(name, value)) for name, value in shown_.items()]


def _option(name: str, value: Any) -> str:
    match name:
        case "retry":
            return _retry(value)
        case "limit":
            return f"{value['n']:,} at once of {value['key'] or 'the type'}"
        case "rate":
            return f"{value['n']:,} in {span(value['per_ms'] / 1000)} of {value['key'] or 'the type'}"
        case "unique":
            return " and ".join(f"{value[phase]} while {phase}" for phase in ("queued", "running") if value[phase])
        case "tags" | "decided":
            return ", ".join(value)
        case _ if name.endswith("_ms"):
            return "none" if value is None else span(value / 1000)
        case _:
            return str(value)


def _retry(value: Mapping[str, Any]) -> str:
    attempts = value["attempts"]
    if attempts == 1:
        return "1: not tried again"
    waits = f"waits from {span(value['base'])} to {span(value['cap'])}" if "base" in value else "waits of its own"
    never = f", never after {', '.join(value['never'])}" if value.get("never") else ""
    return f"{attempts}, with {waits}{never}"


ROOM = Room(
    name="types",
    folder=Path(__file__).parent,
    pages=(
        Page(
            path="/types",
            title="Types",
            template="types.html",
            show=show_all,
            rail=Rail(
                word="Types",
                icon="M7 4C4.5 4 6.5 9 3.5 10c3 1 1 6 3.5 6M13 4c2.5 0 .5 5 3.5 6-3 1-1 6-3.5 6",
                order=70,
                key="y",
            ),
        ),
        Page(path="/types/one", title="Type", template="type.html", show=show_one, under="/types"),
    ),
)
