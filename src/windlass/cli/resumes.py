"""`resumes`: what is kept of people's resumes: forget a user, delete a job's, count."""

from __future__ import annotations

from dataclasses import asdict, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from windlass.apps.installed import SHIPPED, shipped
from windlass.cli.desk import at_desk, globals_of
from windlass.cli.operating import confirm
from windlass.cli.output import FAILURE, NOT_FOUND, REFUSED, USAGE, Stop
from windlass.cli.words import plural
from windlass.core.errors import JobNotFound, MoveRefused

if TYPE_CHECKING:
    from windlass.apps.resumes.forgetting import Forgotten
    from windlass.apps.resumes.resumes import Resumes
    from windlass.cli.desk import Desk


class Deed(StrEnum):
    """What to do with resumes."""

    LIST = "list"
    FORGET = "forget"
    DELETE = "delete"


def resumes(
    ctx: typer.Context,
    deed: Annotated[Deed, typer.Argument(metavar="[list | forget | delete]", help="What to do.")] = Deed.LIST,
    name: Annotated[str | None, typer.Argument(metavar="USER | JOB", help="Who is forgotten, or a job's id.")] = None,
    cascade: Annotated[bool, typer.Option("--cascade", help="With a job also the resumes that it tracks.")] = False,
    database: Annotated[
        str | None, typer.Option(metavar="URL", help="Where records are; else as it is set, else the store's.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """List resumes; forget all that is known of a user; delete a job, with --cascade its resumes, too.

    For instance:

      windlass resumes forget ann

      windlass resumes delete 01a1f22e-3ecb-7000-8000-c0461c139424 --cascade
    """
    if "resumes" not in shipped():
        raise Stop(USAGE, 'resumes need the extra "resumes": pip install "windlass[resumes]"')
    if deed is not Deed.LIST and not name:
        raise Stop(USAGE, "whose? windlass resumes forget USER" if deed is Deed.FORGET else "which job? Give its id")
    given = globals_of(ctx)
    ctx.find_root().obj = replace(given, app=given.app or SHIPPED)

    async def work(desk: Desk) -> None:
        found = _resumes(desk, database)
        if deed is Deed.FORGET:
            confirm(f"delete all resumes of {name} with their files, jobs, payloads and results", yes=yes)
            await _forget(desk, found, str(name))
        elif deed is Deed.DELETE:
            await _delete(desk, found, str(name), cascade=cascade)
        else:
            await _list(desk, found)

    at_desk(ctx, work)


def _resumes(desk: Desk, database: str | None) -> Resumes:
    from windlass.apps.resumes.resumes import resumes_of

    found = resumes_of(desk.app)
    if found is None:
        raise Stop(USAGE, "this application has no resumes: windlass.apps.resumes.resumes.install(app) gives it some")
    if database is not None:
        found.address = database
    return found


async def _forget(desk: Desk, found: Resumes, user: str) -> None:
    told = await (await found.forgetting()).user(user, desk.actor)
    # The trail says that somebody was forgotten, and how much of theirs; not who.
    await desk.record("resumes.forget", "user", records=told.records, files=told.files, jobs=told.jobs)
    _tell(desk, told)
    if told.missing:
        raise Stop(
            FAILURE,
            f"{plural(told.missing, 'file')} had not been in {found.settings.files!r}: if the service keeps its files"
            " elsewhere, forget the user again with WINDLASS_RESUMES_FILES set to that place",
        )
    if told.running:
        raise Stop(
            FAILURE,
            f"{plural(len(told.running), 'job')} of theirs would not stop ({', '.join(told.running)}): nothing of a"
            " resume is in them any more; forget the user again once they have ended",
        )


async def _delete(desk: Desk, found: Resumes, job_id: str, *, cascade: bool) -> None:
    try:
        told = await (await found.forgetting()).job(job_id, desk.actor, cascade=cascade)
    except JobNotFound:
        raise Stop(NOT_FOUND, f"there is no job {job_id}") from None
    except MoveRefused as error:
        raise Stop(REFUSED, str(error)) from None
    await desk.record("job.delete", f"job:{job_id}", records=told.records, files=told.files)
    _tell(desk, told)


def _tell(desk: Desk, told: Forgotten) -> None:
    if desk.screen.as_json:
        desk.screen.fact(asdict(told) | {"running": list(told.running)})
    else:
        desk.screen.say(
            f"deleted: {plural(told.records, 'record')}, {plural(told.files, 'file')},"
            f" {plural(told.jobs, 'job')} with payloads, results and histories"
        )


async def _list(desk: Desk, found: Resumes) -> None:
    newest = await found.find(None, 50)
    if desk.screen.as_json:
        for one in newest:
            desk.screen.fact({"id": one.record.id, "user": one.record.user_id, "status": one.standing.value})
    elif not newest:
        desk.screen.say("no resumes yet: they come over HTTP, POST /api/v1/resumes/upload")
    else:
        rows = [(one.record.id, one.record.user_id, one.standing.value, one.record.usage_count) for one in newest]
        desk.screen.table(("id", "user", "status", "used"), rows)
