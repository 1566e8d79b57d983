"""`types` and `check`: what workers handle, and whether new code could run what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass.cli.desk import Desk, at_desk, globals_of, refuse_missing, run_async, the_app
from windlass.cli.facts import at
from windlass.cli.output import FAILURE, NOT_FOUND, STYLES, Stop
from windlass.cli.words import clock, count, plural, span
from windlass.client.comparing import MOST_LOOKED_AT
from windlass.client.describing import options_of

if TYPE_CHECKING:
    from windlass.cli.output import Screen
    from windlass.client.comparing import Comparison, Missing
    from windlass.client.types import TypeState
    from windlass.stores.contract import TypeInfo

_SHOWN = 5
"""jobs that are named for one reason"""


def types(
    ctx: typer.Context,
    type: Annotated[str | None, typer.Argument(metavar="[TYPE]", help="One type, and all about it.")] = None,
) -> None:
    """List what workers handle, as they have published it: jobs enqueued by name are made by that.

    For instance:

      windlass types

      windlass types send_receipt
    """

    async def work(desk: Desk) -> None:
        found = await desk.app.types.overview(type)
        if desk.screen.as_json:
            for one in found:
                desk.screen.fact(_facts(one))
        elif type is not None and found:
            _show_one(desk.screen, found[0])
        elif found:
            desk.screen.table(_HEADS, [_row(one) for one in found])
        elif type is None:
            desk.screen.say("no types yet: a worker publishes what it handles when it starts")
        if type is not None and not found:
            raise Stop(NOT_FOUND, f"no worker has told of the type {type!r} lately: see them all with: windlass types")

    at_desk(ctx, work)


def check(
    ctx: typer.Context,
    spec: Annotated[str | None, typer.Argument(metavar="[MODULE:APP]", help="The code to compare.")] = None,
    most: Annotated[int, typer.Option("--most", metavar="N", help="Look at so many waiting jobs.")] = MOST_LOOKED_AT,
) -> None:
    """Compare code with the store before it is deployed; exit 1 if a waiting job could not be read by it.

    Nothing is changed. Types that the code does not have and options that differ are told, and are no failure.

    For instance, in CI:

      windlass check shop.jobs:app --store postgresql://localhost/shop
    """
    given = globals_of(ctx)
    app = the_app(given, spec)
    refuse_missing(app)

    async def compared() -> Comparison:
        async with app:
            return await app.types.compare(most)

    found = run_async(compared())
    if given.as_json:
        given.screen.fact(_comparison_facts(found))
    else:
        _show_comparison(given.screen, found)
    if not found.fine:
        raise Stop(FAILURE)


_FIX = "let the handler take the old arguments too, or give it an upgrade with @job.upgrade"
_HEADS = ("type", "queue", "options", "versions", "last seen", "workers", "waiting")


def _row(one: TypeState) -> tuple[object, ...]:
    newest = one.versions[0]
    versions = ", ".join(dict.fromkeys(_version(version) for version in one.versions))
    seen = f"{span(one.seen_ago)} ago"
    options = "; ".join(f"{name} {words}" for name, words in options_of(newest.declared).items())
    return one.type, newest.declared.queue, options, versions, seen, one.workers or "none", count(one.waiting)


def _version(one: TypeInfo) -> str:
    short = one.declared.fingerprint[:8]
    return short if one.declared.version is None else f"{one.declared.version} ({short})"


def _show_one(screen: Screen, one: TypeState) -> None:
    screen.line(f"{one.type}: {plural(one.workers, 'live worker')}, {count(one.waiting)} waiting")
    for place, version in enumerate(one.versions):
        declared = version.declared
        newest = ", used for jobs enqueued by name" if place == 0 and len(one.versions) > 1 else ""
        screen.line("")
        screen.line(f"version {_version(version)}{newest}")
        facts = {"queue": declared.queue, **options_of(declared), "takes": _taken(declared.payload_schema)}
        facts |= {"first seen": clock(version.first_seen), "last seen": clock(version.last_seen)}
        for name, words in facts.items():
            screen.line(f"  {name:<12} {words}")


def _taken(schema: Any) -> str:
    """The arguments as people write them; those that may be left out come last, in brackets."""
    if schema is None:
        return "unknown: its types cannot be told in JSON Schema"
    if "properties" not in schema:
        return "one value" if schema.get("type") != "object" else "nothing"
    texts = {name: f"{name}: {_kind(part)}" for name, part in schema["properties"].items()}
    required = [texts[name] for name in schema.get("required", [])]
    return ", ".join([*required, *(f"[{text}]" for text in texts.values() if text not in required)]) or "nothing"


def _kind(part: Any) -> str:
    if "anyOf" in part:
        return " or ".join(_kind(branch) for branch in part["anyOf"])
    if "enum" in part:
        return " or ".join(map(repr, part["enum"]))
    named = str(part.get("$ref", "")).rpartition("/")[2]
    return str(part.get("format") or named or part.get("type") or "anything")


def _facts(one: TypeState) -> dict[str, Any]:
    return {
        "type": one.type,
        "workers": one.workers,
        "waiting": one.waiting.n,
        "waiting_exact": one.waiting.exact,
        "versions": [
            {
                "fingerprint": version.declared.fingerprint,
                "version": version.declared.version,
                "queue": version.declared.queue,
                "options": version.declared.options,
                "payload_schema": version.declared.payload_schema,
                "result_schema": version.declared.result_schema,
                "first_seen": at(version.first_seen),
                "last_seen": at(version.last_seen),
                "announced_at": at(version.announced_at),
            }
            for version in one.versions
        ],
    }


def _comparison_facts(found: Comparison) -> dict[str, Any]:
    return {
        "fine": found.fine,
        "looked_at": found.looked_at,
        "complete": found.complete,
        "unreadable_in_all": found.unreadable_in_all,
        "unreadable": [
            {"id": one.job_id, "type": one.type, "queue": one.queue, "reason": one.reason} for one in found.unreadable
        ],
        "missing": [
            {"type": one.type, "waiting": one.waiting, "last_seen": at(one.last_seen)} for one in found.missing
        ],
        "changed": [{"type": one.type, "what": list(one.what)} for one in found.changed],
        "new": list(found.new),
    }


def _show_comparison(screen: Screen, found: Comparison) -> None:
    for (type_, reason), ids in _grouped(found).items():
        screen.line(f"FAIL {type_}: {reason}", STYLES["FAIL"])
        for job_id in ids[:_SHOWN]:
            screen.line(f"       {job_id}")
        if len(ids) > _SHOWN:
            screen.line(f"       and {plural(len(ids) - _SHOWN, 'job')} more")
    unnamed = found.unreadable_in_all - len(found.unreadable)
    if unnamed:
        screen.line(f"FAIL and {plural(unnamed, 'job')} that are not named here", STYLES["FAIL"])
    for gone in found.missing:
        screen.line(f"WARN {gone.type}: {_absent(gone)}", STYLES["WARN"])
    for changed in found.changed:
        screen.say(f"INFO {changed.type} differs from what workers run now:")
        for what in changed.what:
            screen.say(f"       {what}")
    if found.new:
        screen.say(f"INFO no worker has told yet of {', '.join(found.new)}")
    screen.line(_verdict(found), STYLES["PASS" if found.fine else "FAIL"])
    if not found.fine:
        screen.line(f"     fix: {_FIX}")


def _grouped(found: Comparison) -> dict[tuple[str, str], list[str]]:
    """The ids of jobs that cannot be read for the same reason."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in found.unreadable:
        groups.setdefault((one.type, one.reason.removeprefix(f"{one.type} ")), []).append(one.job_id)
    return groups


def _absent(gone: Missing) -> str:
    jobs = f"{plural(gone.waiting, 'job')} wait" + ("s" if gone.waiting == 1 else "")
    return f"not in this code; {jobs}" + ("" if gone.waiting else ", workers handled it lately")


def _verdict(found: Comparison) -> str:
    looked = f"{plural(found.looked_at, 'waiting job')} looked at"
    looked += "" if found.complete else ", the oldest; more are waiting, --most looks at more"
    if found.fine:
        return f"PASS this code can read what waits: {looked}"
    bad = plural(found.unreadable_in_all, "waiting job")
    return f"FAIL this code cannot read {bad}, its workers would put them aside: {looked}"
