"""Suggesting: how a line of a search could go on, with names that there are, and what is wrong with it so far."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from windlass.client.completing import suggested
from windlass.client.grammar import WORDS
from windlass.core.errors import WindlassError
from windlass.web.dashboard.pages.jobs.line import Line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.core.job import Job
    from windlass.web.dashboard.visit import Visit

SAMPLE = 200
"""the newest jobs, of which tags, users and the like are learnt"""
SAMPLED = 30.0
MOST = 50
"""names of one kind"""


async def show(visit: Visit) -> dict[str, Any]:
    """Suggestions for the line at the place where it is written in, and all words."""
    text = visit.asked("q")
    place = _place(visit.asked("at"), text)
    line = Line(text)
    written = [token for token in line.tokens if token.problem] if line.query is not None else []
    here = text[:place].split(" ")[-1]
    return {
        "suggestions": suggested(text, place, await _names(visit)) if visit.again else [],
        "wrong": line.trouble or next((one.problem for one in written if not one.text.startswith(here or " ")), None),
        "words": WORDS.values(),
        "line": line,
        "query": text,
    }


def _place(given: str, text: str) -> int:
    return min(int(given), len(text)) if given.isascii() and given.isdigit() and len(given) < 6 else len(text)


async def _names(visit: Visit) -> dict[str, list[str]]:
    """What there is, by word, the newest first; a part that cannot be asked for now is left out."""
    names: dict[str, list[str]] = {}
    with suppress(WindlassError):
        page = await visit.jobs.find(limit=SAMPLE, max_age=SAMPLED)
        names = {word: _several(values) for word, values in _of(page.jobs).items()}
    if visit.sees_all:
        with suppress(WindlassError):
            queues = await visit.app.queues.list(max_age=SAMPLED)
            names["queue"] = _several([*names.get("queue", ()), *(queue.name for queue in queues)])
        with suppress(WindlassError):
            types = await visit.app.types.list()
            names["type"] = _several([*names.get("type", ()), *(one.declared.type for one in types)])
        with suppress(WindlassError):
            schedules = await visit.app.schedules.list()
            names["schedule"] = _several(one.name for one in schedules)
        with suppress(WindlassError):
            names["worker"] = _several(one.id for one in await visit.app.workers.list())
    return names


def _of(jobs: Iterable[Job]) -> dict[str, list[str | None]]:
    found: dict[str, list[str | None]] = {}
    for job in jobs:
        entity = None if job.entity_name is None else f"{job.entity_name}:{job.entity_id}"
        told = {
            "type": job.type,
            "queue": job.queue,
            "user": job.user_id,
            "correlation": job.correlation_id,
            "schedule": job.schedule,
            "entity": entity,
            "unique": job.unique_key,
            "error": None if job.error is None else job.error.type,
        }
        for word, value in told.items():
            found.setdefault(word, []).append(value)
        found.setdefault("tag", []).extend(job.tags)
    return found


def _several(values: Iterable[str | None]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value][:MOST]
