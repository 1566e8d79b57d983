"""`retry`, `cancel` and `delete`: one job by its id, or all that match a filter, after a question."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass.cli import filters
from windlass.cli.desk import Desk, at_desk
from windlass.cli.ids import check_beginning, whole_ids
from windlass.cli.output import NOT_FOUND, OK, REFUSED, USAGE, Stop
from windlass.cli.words import count, plural
from windlass.client.operating import operate
from windlass.client.searching import Search
from windlass.stores.contract import Action, Count, Operated, Order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.client.bulk import Bulk as Told
    from windlass.stores.contract import Answer

_DONE = {Action.CANCEL: "cancelled", Action.RETRY: "queued again", Action.DELETE: "deleted"}

IdsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[ID …]", help="These jobs, by id or its beginning; else a filter.")
]
AllOption = Annotated[bool, typer.Option("--all", help="Every job there is.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say how many it would be.")]
LimitOption = Annotated[int | None, typer.Option("--limit", "-n", help="At most so many, newest first.", min=1)]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ReasonOption = Annotated[str | None, typer.Option("--reason", help="Goes into the jobs' history.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """What is to be done, to which jobs."""

    action: Action
    ids: Sequence[str]
    wanted: Search
    everything: bool
    dry_run: bool
    limit: int | None
    yes: bool
    reason: str | None


@filters.searching()
def retry(
    ctx: typer.Context,
    wanted: Search,
    ids: IdsArgument = None,
    everything: AllOption = False,
    limit: LimitOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    reason: ReasonOption = None,
) -> None:
    """Queue jobs again: finished ones with fresh attempts, scheduled and retrying ones without their wait.

    Example: windlass retry --status failed --type send_receipt
    """
    _operate(
        ctx,
        Bulk(
            action=Action.RETRY,
            ids=ids or [],
            wanted=wanted,
            everything=everything,
            dry_run=dry_run,
            limit=limit,
            yes=yes,
            reason=reason,
        ),
    )


@filters.searching()
def cancel(
    ctx: typer.Context,
    wanted: Search,
    ids: IdsArgument = None,
    everything: AllOption = False,
    limit: LimitOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    reason: ReasonOption = None,
) -> None:
    """Cancel jobs: waiting ones at once, running ones are asked to stop.

    Example: windlass cancel --queue mail --status queued --reason "wrong address"
    """
    _operate(
        ctx,
        Bulk(
            action=Action.CANCEL,
            ids=ids or [],
            wanted=wanted,
            everything=everything,
            dry_run=dry_run,
            limit=limit,
            yes=yes,
            reason=reason,
        ),
    )


@filters.searching()
def delete(
    ctx: typer.Context,
    wanted: Search,
    ids: IdsArgument = None,
    everything: AllOption = False,
    limit: LimitOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    reason: ReasonOption = None,
) -> None:
    """Delete jobs with their history, except those that are running. This cannot be undone.

    Example: windlass delete --status cancelled --yes
    """
    _operate(
        ctx,
        Bulk(
            action=Action.DELETE,
            ids=ids or [],
            wanted=wanted,
            everything=everything,
            dry_run=dry_run,
            limit=limit,
            yes=yes,
            reason=reason,
        ),
    )


def _operate(ctx: typer.Context, bulk: Bulk) -> None:
    ids = chosen(bulk.ids, f"windlass {bulk.action}", by_filter=bool(bulk.wanted) or bulk.everything)
    if ids and (bulk.dry_run or bulk.limit is not None):
        raise Stop(USAGE, "--dry-run and --limit go with a filter, not with ids")

    async def work(desk: Desk) -> int:
        return await (_by_id(desk, bulk, await whole_ids(desk, ids)) if ids else _by_filter(desk, bulk))

    code = at_desk(ctx, work)
    if code != OK:
        raise Stop(code)


def chosen(ids: Sequence[str], command: str, *, by_filter: bool, such: str = "--status failed") -> list[str]:
    """The ids given, checked; none where a filter says which jobs. One of the two must be given, not both."""
    if bool(ids) == by_filter:
        raise Stop(USAGE, f"which jobs? Give ids, or a filter such as {such}, or --all: {command} …")
    return [check_beginning(one) for one in ids]


async def _by_id(desk: Desk, bulk: Bulk, ids: Sequence[str]) -> int:
    orders = [Order(id=one, action=bulk.action, actor=desk.actor, reason=bulk.reason) for one in ids]
    answers = await operate(desk.app.client, orders)
    for job_id, answer in zip(ids, answers, strict=True):
        if answer.verdict in (Operated.DONE, Operated.REQUESTED):
            before = None if answer.status is None else {"status": answer.status.value}
            requested = answer.verdict is Operated.REQUESTED or None
            told = {"before": before, "requested": requested, "reason": bulk.reason}
            await desk.record(f"job.{bulk.action}", f"job:{job_id}", **told)
        if desk.screen.as_json:
            desk.screen.fact(_answer_facts(job_id, answer))
        else:
            desk.screen.say(f"{job_id}  {_in_words(bulk.action, answer)}")
    verdicts = {answer.verdict for answer in answers}
    if Operated.MISSING in verdicts:
        return NOT_FOUND
    return REFUSED if verdicts & {Operated.REFUSED, Operated.DUPLICATE} else OK


async def _by_filter(desk: Desk, bulk: Bulk) -> int:
    order = {
        Action.CANCEL: desk.app.jobs.cancel_all,
        Action.RETRY: desk.app.jobs.retry_all,
        Action.DELETE: desk.app.jobs.delete_all,
    }[bulk.action]
    limit, everything = bulk.limit, bulk.everything
    told = await order(dry_run=True, limit=limit, everything=everything, **bulk.wanted)
    if told.of and not bulk.dry_run:
        total = count(Count(told.of, told.exact))
        confirm(f"{bulk.action} {total} {'job' if told.of == 1 else 'jobs'}", yes=bulk.yes)
        with desk.screen.bar(f"{bulk.action} {total} jobs") as bar:
            told = await order(
                actor=desk.actor,
                reason=bulk.reason,
                limit=limit,
                everything=everything,
                progress=lambda now: bar(now.met, max(now.of, now.met)),
                **bulk.wanted,
            )
        await record_bulk(desk, bulk.action, bulk.wanted, {**_tally(told), "limit": limit, "reason": bulk.reason})
    _show(desk, bulk, replace(told, dry_run=bulk.dry_run))
    return OK


def _show(desk: Desk, bulk: Bulk, told: Told) -> None:
    if desk.screen.as_json:
        desk.screen.fact(_summary(bulk.action, told))
    elif not told.of:
        desk.screen.say("no jobs match")
    elif bulk.dry_run:
        total = count(Count(told.of, told.exact))
        desk.screen.line(f"{total} {'job matches' if told.of == 1 else 'jobs match'}; nothing was changed")
    else:
        parts = [f"{plural(told.done, 'job')} {_DONE[bulk.action]}"]
        parts += [f"{told.requested:,} asked to stop"] * bool(told.requested)
        parts += [f"{told.refused:,} left: their status does not allow it"] * bool(told.refused)
        parts += [f"{told.duplicate:,} left: another job holds their key"] * bool(told.duplicate)
        parts += [f"{told.missing:,} gone meanwhile"] * bool(told.missing)
        desk.screen.line("; ".join(parts))


async def record_bulk(desk: Desk, deed: str, wanted: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Write down what was done to many, by which filter and with what end."""
    words = {name: one for name, one in wanted.items() if one is not None}
    plain: dict[str, Any] = json.loads(json.dumps(words, default=str))  # instants, sets and the like as text
    given = {name: one for name, one in told.items() if one is not None}
    await desk.record(f"bulk.{deed}.ended", "jobs", filter=plain, **given)


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is done to many; where nobody can be asked it must have been said before."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Stop(REFUSED, f"this would {question}: add --yes to do it")
    if not typer.confirm(f"{question}?", err=True):
        raise Stop(REFUSED, "nothing was changed")


def _in_words(action: Action, answer: Answer) -> str:
    match answer.verdict:
        case Operated.DONE:
            return _DONE[action]
        case Operated.REQUESTED:
            return "is running: its worker was asked to stop it"
        case Operated.REFUSED:
            return f"is {answer.status}: it cannot be {_DONE[action]}"
        case Operated.DUPLICATE:
            return f"cannot be queued again: job {answer.holder} holds its unique key"
        case Operated.KEPT:
            return "has not asked for the signal yet: it is kept until then"
        case Operated.FULL:
            return "keeps as much as it may: there is no room for the signal"
        case Operated.MISSING:
            return "is not there: never enqueued here, deleted, or pruned"


def _answer_facts(job_id: str, answer: Answer) -> dict[str, str | None]:
    status = None if answer.status is None else answer.status.value
    return {"id": job_id, "verdict": answer.verdict.value, "status": status, "holder": answer.holder}


def _tally(told: Told) -> dict[str, int]:
    return {name: getattr(told, name) for name in ("done", "requested", "refused", "duplicate", "missing")}


def _summary(action: Action, told: Told) -> dict[str, str | int]:
    verdicts = _tally(told)
    matched = {"matched": told.of if told.dry_run else told.met, "exact": told.exact or not told.dry_run}
    return {"action": action.value, **matched, **verdicts, "dry_run": told.dry_run}
