"""`dead`, `replay` and `discard`: failed jobs by what went wrong, done again, or thrown away."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass.cli import filters
from windlass.cli.desk import Desk, at_desk
from windlass.cli.enqueueing import read_payload
from windlass.cli.facts import at, job_facts, ms
from windlass.cli.ids import whole_ids
from windlass.cli.looking import show_jobs
from windlass.cli.operating import (
    AllOption,
    DryRunOption,
    IdsArgument,
    LimitOption,
    ReasonOption,
    YesOption,
    chosen,
    confirm,
    record_bulk,
)
from windlass.cli.output import OK, USAGE, Stop, exit_code
from windlass.cli.words import clock, plural, rate, span
from windlass.client.searching import DeadSearch
from windlass.core.errors import JobError, SettingsError
from windlass.observability.plain import short

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence

    from windlass.client.bulk import OnProgress
    from windlass.client.dead_letters import DeadGroup, DeadGroups, Replayed

_SUCH = "--fingerprint X or --type send"


@filters.searching("status")
def dead(
    ctx: typer.Context,
    wanted: DeadSearch,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many jobs of a fingerprint.", min=1)] = 50,
    most: Annotated[int, typer.Option(help="Look at so many of the newest failed jobs.", min=1)] = 10_000,
) -> None:
    """Show what went wrong: failed jobs in groups of one kind of failure, or the jobs of one such group.

    For instance:

      windlass dead --queue mail

      windlass dead --fingerprint 3f9c1d20ab47
    """

    async def work(desk: Desk) -> None:
        fingerprint = wanted.get("fingerprint")
        if fingerprint is None:
            _show_groups(desk, await desk.app.dead_letters.groups(most=most, **wanted))
            return
        found = await desk.app.dead_letters.find(limit=limit, most=most, **wanted)
        if desk.screen.as_json:
            for one in found.jobs:
                desk.screen.fact({**job_facts(one), "fingerprint": fingerprint})
        elif not found.jobs:
            desk.screen.say(f"no failed job among {plural(found.looked_at, 'job')} looked at has this fingerprint")
        else:
            show_jobs(desk.screen, found.jobs)
            more = "" if found.complete else "; there are more"
            desk.screen.say(
                f"{plural(len(found.jobs), 'job')}{more}; windlass job ID --traceback shows where it failed"
            )

    at_desk(ctx, work)


@filters.searching("status")
def replay(
    ctx: typer.Context,
    wanted: DeadSearch,
    ids: IdsArgument = None,
    everything: AllOption = False,
    at_rate: Annotated[
        str | None, typer.Option("--rate", metavar="N/s", help="At most so many by s, m or h: the others wait.")
    ] = None,
    limit: LimitOption = None,
    payload: Annotated[
        str | None, typer.Option("--payload", metavar="JSON | @FILE | -", help="Another payload; with ids only.")
    ] = None,
    edit: Annotated[list[str] | None, typer.Option("--edit", metavar="KEY=VALUE", help="Change a member.")] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Do the work of failed jobs again as new jobs. Replaying the same failure twice is replaying it once.

    Jobs given by id may have ended in any way. With --app, a payload is checked against its handler.

    For instance:

      windlass replay --fingerprint 3f9c1d20ab47 --rate 10/s --dry-run

      windlass replay 0190a3c4-5d6e-7f80-9123-456789abcdef --edit order_id=42 --app shop:app
    """
    named = chosen(ids or [], "windlass replay", by_filter=bool(wanted) or everything, such=_SUCH)
    if named and (dry_run or at_rate is not None or limit is not None):
        raise Stop(USAGE, "--dry-run, --rate and --limit go with a filter, not with ids")
    if payload is not None and not named:
        raise Stop(USAGE, "--payload goes with ids: to change one member of many payloads use --edit KEY=VALUE")
    other = None if payload is None else _document(payload)
    members = read_payload(edit) if edit else None
    pace = None if at_rate is None else rate(at_rate, "--rate")

    async def one(desk: Desk, job_id: str) -> None:
        handle = await desk.app.jobs.replay(job_id, other, edit=members, actor=desk.actor)
        if handle.created:
            edited = sorted(members) if members else None  # names alone: what a payload holds is nobody else's
            another = None if other is None else "another"
            await desk.record("job.replay", f"job:{job_id}", job=handle.id, edited=edited, payload=another)
        if desk.screen.as_json:
            desk.screen.fact({"id": job_id, "replay": handle.id, "created": handle.created})
        else:
            known = "not replayed: it already was, or another job holds its key; see"
            desk.screen.say(f"{job_id}  {'replayed as' if handle.created else known} job {handle.id}")

    async def many(desk: Desk) -> None:
        letters = desk.app.dead_letters
        told = await letters.replay_all(dry_run=True, limit=limit, everything=everything, **wanted)
        if told.matched and not dry_run:
            confirm(f"replay {plural(told.matched, 'failed job')}", yes=yes)
            with _bar(desk, "replay", told.matched) as progress:
                told = await letters.replay_all(
                    rate=pace,
                    limit=limit,
                    edit=members,
                    everything=everything,
                    actor=desk.actor,
                    progress=progress,
                    **wanted,
                )
            skipped = {why.value: n for why, n in told.skipped.items()}
            ended = {"replayed": told.replayed, "skipped": skipped or None, "rate": pace, "limit": limit}
            await record_bulk(desk, "replay", wanted, {**ended, "edited": sorted(members) if members else None})
        _show_replayed(desk, replace(told, dry_run=dry_run))

    _run(ctx, named, one, many)


@filters.searching("status")
def discard(
    ctx: typer.Context,
    wanted: DeadSearch,
    ids: IdsArgument = None,
    everything: AllOption = False,
    limit: LimitOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    reason: ReasonOption = None,
) -> None:
    """Delete failed jobs with their history. This cannot be undone.

    Example: windlass discard --fingerprint 3f9c1d20ab47 --reason "orders of a test"
    """
    named = chosen(ids or [], "windlass discard", by_filter=bool(wanted) or everything, such=_SUCH)
    if named and (dry_run or limit is not None):
        raise Stop(USAGE, "--dry-run and --limit go with a filter, not with ids")

    async def one(desk: Desk, job_id: str) -> None:
        await desk.app.dead_letters.discard(job_id, actor=desk.actor, reason=reason)
        await desk.record("job.discard", f"job:{job_id}", reason=reason)
        if desk.screen.as_json:
            desk.screen.fact({"id": job_id, "discarded": True})
        else:
            desk.screen.say(f"{job_id}  discarded")

    async def many(desk: Desk) -> None:
        letters = desk.app.dead_letters
        told = await letters.discard_all(dry_run=True, limit=limit, everything=everything, **wanted)
        if told.matched and not dry_run:
            confirm(f"discard {plural(told.matched, 'failed job')}", yes=yes)
            with _bar(desk, "discard", told.matched) as progress:
                told = await letters.discard_all(
                    actor=desk.actor, reason=reason, limit=limit, everything=everything, progress=progress, **wanted
                )
            ended = {"discarded": told.discarded, "left": told.left, "limit": limit, "reason": reason}
            await record_bulk(desk, "discard", wanted, ended)
        if desk.screen.as_json:
            facts = {"matched": told.matched, "discarded": told.discarded, "left": told.left}
            desk.screen.fact({**facts, "dry_run": dry_run})
        elif not told.matched:
            desk.screen.say("no failed jobs match")
        elif dry_run:
            desk.screen.line(f"{plural(told.matched, 'failed job')} would be discarded")
        else:
            left = f"; {told.left:,} left: no longer failed" if told.left else ""
            desk.screen.line(f"{plural(told.discarded, 'job')} discarded{left}")

    _run(ctx, named, one, many)


@contextmanager
def _bar(desk: Desk, verb: str, matched: int) -> Generator[OnProgress, None, None]:
    with desk.screen.bar(f"{verb} {plural(matched, 'failed job')}") as bar:
        yield lambda now: bar(now.met, max(matched, now.met))


def _run(
    ctx: typer.Context,
    ids: Sequence[str],
    one: Callable[[Desk, str], Awaitable[None]],
    many: Callable[[Desk], Awaitable[None]],
) -> None:
    async def work(desk: Desk) -> int:
        if not ids:
            await many(desk)
            return OK
        codes = [await _tried(desk, one, job_id) for job_id in await whole_ids(desk, ids)]
        return max(codes, key=lambda code: (code != OK, -code))

    code = at_desk(ctx, work)
    if code != OK:
        raise Stop(code)


async def _tried(desk: Desk, one: Callable[[Desk, str], Awaitable[None]], job_id: str) -> int:
    """One of several: what is wrong with it keeps nobody from the others."""
    try:
        await one(desk, job_id)
    except JobError as error:
        if desk.screen.as_json:
            desk.screen.fact({"id": job_id, "error": str(error)})
        else:
            desk.screen.line(f"{job_id}  {error}")
        return exit_code(error)
    return OK


def _document(text: str) -> Any:
    if not text.startswith(("{", "[", "@")) and text != "-":
        raise SettingsError(f"--payload is {text[:80]!r}: expected a JSON object or list, @FILE or -")
    return read_payload([text])


def _show_groups(desk: Desk, found: DeadGroups) -> None:
    screen = desk.screen
    if screen.as_json:
        for one in found.groups:
            screen.fact({**_group_facts(one), "looked_at": found.looked_at, "complete": found.complete})
        return
    if not found.groups:
        screen.say("no failed jobs")
        return
    heads = ("fingerprint", "jobs", "type", "error", "first seen", "last seen", "newest")
    screen.table(heads, [_group_row(one) for one in found.groups])
    beyond = "" if found.complete else "; there are more that were not looked at: see --most"
    screen.say(f"{plural(found.looked_at, 'failed job')} of {plural(len(found.groups), 'kind')}{beyond}")


def _group_row(one: DeadGroup) -> tuple[object, ...]:
    error = short(f"{one.error}: {one.message}", 60)
    return one.fingerprint, f"{one.count:,}", one.type, error, clock(one.first_seen), clock(one.last_seen), one.example


def _group_facts(one: DeadGroup) -> dict[str, Any]:
    return {
        "fingerprint": one.fingerprint,
        "count": one.count,
        "type": one.type,
        "error": {"type": one.error, "message": one.message},
        "first_seen": at(one.first_seen),
        "last_seen": at(one.last_seen),
        "example": one.example,
    }


def _show_replayed(desk: Desk, told: Replayed) -> None:
    if desk.screen.as_json:
        desk.screen.fact(
            {
                "matched": told.matched,
                "replayed": told.replayed,
                "skipped": {why.value: n for why, n in told.skipped.items()},
                "takes_ms": ms(told.takes),
                "dry_run": told.dry_run,
                "ids": list(told.ids),
            }
        )
    elif not told.matched:
        desk.screen.say("no failed jobs match")
    elif told.dry_run:
        desk.screen.line(f"{plural(told.matched, 'failed job')} would be replayed")
    else:
        parts = [f"{plural(told.replayed, 'job')} replayed"]
        parts += [f"the last is due in {span(told.takes)}"] * bool(told.takes)
        parts += [f"{n:,} skipped: {why.value.replace('_', ' ')}" for why, n in sorted(told.skipped.items())]
        desk.screen.line("; ".join(parts))
