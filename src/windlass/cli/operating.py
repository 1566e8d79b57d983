"""`retry`, `cancel` and `delete`: one job by its id, or all that match a filter, after a question."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from windlass.cli import filters
from windlass.cli.desk import Desk, at_desk
from windlass.cli.ids import check_beginning, whole_ids
from windlass.cli.output import NOT_FOUND, OK, REFUSED, USAGE, Stop
from windlass.cli.words import count, plural
from windlass.client.operating import operate
from windlass.stores.contract import Action, Operated, Order

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from windlass.client.searching import Search
    from windlass.stores.contract import Answer

ACTOR = "operator"
_PAGE = 500
_DONE = {Action.CANCEL: "cancelled", Action.RETRY: "queued again", Action.DELETE: "deleted"}

IdsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[ID …]", help="These jobs, by id or its beginning; else a filter.")
]
AllOption = Annotated[bool, typer.Option("--all", help="Every job there is.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ReasonOption = Annotated[str | None, typer.Option("--reason", help="Goes into the jobs' history.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """What is to be done, to which jobs."""

    action: Action
    ids: Sequence[str]
    wanted: Search
    everything: bool
    yes: bool
    reason: str | None


def retry(
    ctx: typer.Context,
    ids: IdsArgument = None,
    status: filters.StatusOption = None,
    type: filters.TypeOption = None,
    queue: filters.QueueOption = None,
    user: filters.UserOption = None,
    about: filters.EntityOption = None,
    correlation: filters.CorrelationOption = None,
    everything: AllOption = False,
    yes: YesOption = False,
    reason: ReasonOption = None,
) -> None:
    """Queue jobs again: finished ones with fresh attempts, scheduled and retrying ones without their wait.

    Example: windlass retry --status failed --type send_receipt
    """
    wanted = filters.search(status=status, type=type, queue=queue, user=user, about=about, correlation=correlation)
    _operate(
        ctx, Bulk(action=Action.RETRY, ids=ids or [], wanted=wanted, everything=everything, yes=yes, reason=reason)
    )


def cancel(
    ctx: typer.Context,
    ids: IdsArgument = None,
    status: filters.StatusOption = None,
    type: filters.TypeOption = None,
    queue: filters.QueueOption = None,
    user: filters.UserOption = None,
    about: filters.EntityOption = None,
    correlation: filters.CorrelationOption = None,
    everything: AllOption = False,
    yes: YesOption = False,
    reason: ReasonOption = None,
) -> None:
    """Cancel jobs: waiting ones at once, running ones are asked to stop.

    Example: windlass cancel --queue mail --status queued --reason "wrong address"
    """
    wanted = filters.search(status=status, type=type, queue=queue, user=user, about=about, correlation=correlation)
    _operate(
        ctx, Bulk(action=Action.CANCEL, ids=ids or [], wanted=wanted, everything=everything, yes=yes, reason=reason)
    )


def delete(
    ctx: typer.Context,
    ids: IdsArgument = None,
    status: filters.StatusOption = None,
    type: filters.TypeOption = None,
    queue: filters.QueueOption = None,
    user: filters.UserOption = None,
    about: filters.EntityOption = None,
    correlation: filters.CorrelationOption = None,
    everything: AllOption = False,
    yes: YesOption = False,
    reason: ReasonOption = None,
) -> None:
    """Delete jobs with their history, except those that are running. This cannot be undone.

    Example: windlass delete --status cancelled --yes
    """
    wanted = filters.search(status=status, type=type, queue=queue, user=user, about=about, correlation=correlation)
    _operate(
        ctx, Bulk(action=Action.DELETE, ids=ids or [], wanted=wanted, everything=everything, yes=yes, reason=reason)
    )


def _operate(ctx: typer.Context, bulk: Bulk) -> None:
    ids = chosen(bulk.ids, f"windlass {bulk.action}", by_filter=bool(bulk.wanted) or bulk.everything)

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
    orders = [Order(id=one, action=bulk.action, actor=ACTOR, reason=bulk.reason) for one in ids]
    answers = await operate(desk.app.client, orders)
    for job_id, answer in zip(ids, answers, strict=True):
        if desk.screen.as_json:
            desk.screen.fact(_answer_facts(job_id, answer))
        else:
            desk.screen.say(f"{job_id}  {_in_words(bulk.action, answer)}")
    verdicts = {answer.verdict for answer in answers}
    if Operated.MISSING in verdicts:
        return NOT_FOUND
    return REFUSED if verdicts & {Operated.REFUSED, Operated.DUPLICATE} else OK


async def _by_filter(desk: Desk, bulk: Bulk) -> int:
    total = await desk.app.jobs.count(**bulk.wanted)
    if total.n == 0:
        desk.screen.say("no jobs match")
        if desk.screen.as_json:
            desk.screen.fact(_summary(bulk.action, Counter()))
        return OK
    confirm(f"{bulk.action} {count(total)} {'job' if total.n == 1 else 'jobs'}", yes=bulk.yes)
    tally: Counter[str] = Counter()
    with desk.screen.bar(f"{bulk.action} {count(total)} jobs") as bar:
        async for page in _pages(desk, bulk.wanted):
            orders = [Order(id=one, action=bulk.action, actor=ACTOR, reason=bulk.reason) for one in page]
            tally.update(answer.verdict.value for answer in await operate(desk.app.client, orders))
            bar(tally.total(), max(total.n, tally.total()))
    if desk.screen.as_json:
        desk.screen.fact(_summary(bulk.action, tally))
    else:
        parts = [f"{plural(tally['done'], 'job')} {_DONE[bulk.action]}"]
        parts += [f"{tally['requested']:,} asked to stop"] * bool(tally["requested"])
        parts += [f"{tally['refused']:,} left: their status does not allow it"] * bool(tally["refused"])
        parts += [f"{tally['duplicate']:,} left: another job holds their key"] * bool(tally["duplicate"])
        desk.screen.line("; ".join(parts))
    return OK


async def _pages(desk: Desk, wanted: Search) -> AsyncIterator[list[str]]:
    """Ids page by page, newest first: each job is met once, also when what is done to it takes it out of the filter."""
    after: str | None = None
    while True:
        page = await desk.app.jobs.find(limit=_PAGE, after=after, **wanted)
        if page.jobs:
            yield [one.id for one in page.jobs]
        if page.next is None:
            return
        after = page.next


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
        case Operated.MISSING:
            return "is not there: never enqueued here, deleted, or pruned"


def _answer_facts(job_id: str, answer: Answer) -> dict[str, str | None]:
    status = None if answer.status is None else answer.status.value
    return {"id": job_id, "verdict": answer.verdict.value, "status": status, "holder": answer.holder}


def _summary(action: Action, tally: Counter[str]) -> dict[str, str | int]:
    return {"action": action.value, "matched": tally.total(), **{one.value: tally[one.value] for one in Operated}}
