"""The form of a schedule: what was typed so far, what is wrong with it, and when it would run."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

from windlass.core.errors import ScheduleNotFound, SettingsError
from windlass.core.every import Every, every
from windlass.core.job import PRIORITIES
from windlass.core.keys import check_name
from windlass.core.schedule import cron
from windlass.core.sealing import masked
from windlass.web.dashboard.pages.schedules import telling
from windlass.web.problems import FORBIDDEN, Refused
from windlass.web.routes.schedules import options_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.core.every import When
    from windlass.stores.contract import Schedule
    from windlass.web.dashboard.visit import Visit

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
EXAMPLES = (
    ("Every 5 minutes", "*/5 * * * *"),
    ("Every hour", "0 * * * *"),
    ("Daily at 02:00", "0 2 * * *"),
    ("Weekdays at 09:00", "0 9 * * mon-fri"),
    ("Mondays at 08:00", "0 8 * * mon"),
    ("First of the month", "0 0 1 * *"),
)
_EMPTY = {
    "name": "",
    "type": "",
    "rule": "cron",
    "cron": "0 9 * * mon-fri",
    "tz": "UTC",
    "amount": "30",
    "unit": "m",
    "overlap": "skip",
    "missed": "latest",
    "limit": "100",
    "queue": "",
    "priority": "",
}


async def form(visit: Visit) -> dict[str, Any]:
    """The form with what the address says was typed, over the schedule that is changed, if one is."""
    if not visit.operates:
        raise Refused(FORBIDDEN, "to change schedules needs the scope operate, for the jobs of all")
    name = visit.asked("change")
    known = {one.type: one for one in await visit.app.types.known()}
    found = await visit.app.schedules.list()
    there = next((one for one in found if one.name == name), None)
    if name and there is None:
        raise ScheduleNotFound(name[:200])
    usual = _EMPTY if there is None else _of(there)
    typed = {field: visit.asked(field, value) for field, value in usual.items()}
    touched = "rule" in visit.request.query_params
    rule, wrong = _read(typed)
    if touched:
        wrong |= _wrong_names(typed, known, {one.name for one in found}, new=there is None)
    now = datetime.now(UTC)
    return {
        "title": f"Change {name}" if there else "New schedule",
        "there": there,
        "typed": typed,
        "wrong": wrong,
        "words": None if rule is None else telling.in_words(rule),
        "runs": [] if rule is None else telling.runs(rule, rule.after(now)),
        "affected": None if rule is None else telling.next_affected(rule, now),
        "types": sorted(known),
        "payload": "" if there is None else json.dumps(masked(there.payload_json), indent=2, ensure_ascii=False),
        "kept": {} if there is None else _kept_options(there),
        "zones": sorted(available_timezones()),
        "examples": EXAMPLES,
        "priorities": PRIORITIES,
        "telling": telling,
    }


def _of(one: Schedule) -> dict[str, str]:
    """What the form shows of a schedule."""
    rule = one.cron
    typed = _EMPTY | {"name": one.name, "type": one.type, "queue": one.queue, "tz": rule.tz}
    typed |= {"overlap": rule.overlap, "missed": rule.missed, "limit": str(rule.missed_limit)}
    priority = json.loads(one.options_json).get("priority")
    typed["priority"] = "" if priority is None else str(priority)
    if isinstance(rule, Every):
        seconds = int(rule.interval.total_seconds())
        unit = next(unit for unit, size in reversed(UNITS.items()) if seconds % size == 0)
        return typed | {"rule": "every", "amount": str(seconds // UNITS[unit]), "unit": unit}
    return typed | {"rule": "cron", "cron": rule.expression}


def _read(typed: Mapping[str, str]) -> tuple[When | None, dict[str, str]]:
    """The rule, or what is wrong, by field."""
    try:
        policy: dict[str, Any] = {
            "overlap": typed["overlap"],
            "missed": typed["missed"],
            "limit": _whole(typed["limit"]),
        }
    except ValueError:
        return None, {"limit": f"{typed['limit'][:40]!r} is no whole number: expected 1 to 1000"}
    try:
        if typed["rule"] == "every":
            return every(_whole(typed["amount"]) * UNITS.get(typed["unit"], 1), **policy), {}
        return cron(typed["cron"].strip(), typed["tz"].strip() or "UTC", **policy), {}
    except ValueError:
        return None, {"amount": f"{typed['amount'][:40]!r} is no whole number: expected such as 30"}
    except SettingsError as error:
        return None, {_field_of(str(error), typed["rule"]): str(error)}


def _whole(text: str) -> int:
    return int(text.strip()[:12])


def _field_of(said: str, rule: str) -> str:
    """Which field an error of the rule is about."""
    for begins, field in (
        ("time zone", "tz"),
        ("the limit", "limit"),
        ("the overlap", "overlap"),
        ("the missed", "missed"),
    ):
        if said.startswith(begins):
            return field
    return "amount" if rule == "every" else "cron"


def _wrong_names(typed: Mapping[str, str], known: Mapping[str, Any], taken: set[str], *, new: bool) -> dict[str, str]:
    wrong: dict[str, str] = {}
    for field, of in (("name", "the schedule's name"), ("queue", "the queue")):
        if typed[field] or field == "name":
            try:
                check_name(typed[field], of)
            except SettingsError as error:
                wrong[field] = str(error)
    if new and typed["name"] in taken:
        wrong["name"] = f"there is a schedule {typed['name']!r} already: change that, or take another name"
    if typed["type"] not in known:
        wrong["type"] = "no handler is known of this type: choose one, or start a worker that handles it first"
    return wrong


_RESENT = frozenset(
    ("maxAttempts", "timeout", "expires", "userId", "entityName", "entityId", "correlationId", "tags", "metadata")
)


def _kept_options(one: Schedule) -> dict[str, Any]:
    """Options that the form has no field for: they are sent again as they are, in the words of a request."""
    return {name: value for name, value in options_of(one.options_json).items() if name in _RESENT}
