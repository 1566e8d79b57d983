"""Following: wait for jobs, show how far they are, and end with their outcome."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from windlass.cli.facts import entry_facts, job_facts, progress_facts
from windlass.cli.output import FAILURE, JOB_FAILED, STYLES, Stop
from windlass.cli.timeline import describe_entry
from windlass.cli.words import milliseconds
from windlass.core.job import Job, Progress
from windlass.core.sealing import masked_text
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.cli.desk import Desk
    from windlass.cli.output import Bar
    from windlass.client.handle import Handle


async def follow_all(desk: Desk, handles: Sequence[Handle[Any]], *, tell: bool, seconds: float | None) -> None:
    """Wait for every job. Exit 6 when one did not succeed; 1 when they take longer than `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            jobs = [await _follow(desk, handle, tell=tell) for handle in handles]
    except TimeoutError:
        raise Stop(FAILURE, f"gave up waiting after {seconds:g} s: the jobs go on") from None
    if any(job.status is not Status.SUCCEEDED for job in jobs):
        raise Stop(JOB_FAILED)


async def _follow(desk: Desk, handle: Handle[Any], *, tell: bool) -> Job:
    with desk.screen.bar(f"job {handle.id}") as bar:
        async for happened in handle.events():
            if isinstance(happened, Progress):
                _progress(desk, handle.id, happened, bar, tell=tell)
            elif tell and desk.screen.as_json:
                desk.screen.fact({"job": handle.id, **entry_facts(happened)})
            elif tell:
                desk.screen.say(f"{happened.at:%H:%M:%S}  {describe_entry(happened)}")
    job = await handle.job()
    _outcome(desk, job)
    return job


def _progress(desk: Desk, job_id: str, progress: Progress, bar: Bar, *, tell: bool) -> None:
    bar(progress.done, progress.of, progress.note)
    if tell and desk.screen.as_json:
        desk.screen.fact({"job": job_id, "happened": "progress", **progress_facts(progress)})
    elif tell and not desk.screen.lively:
        share = f" of {progress.of:g}" if progress.of is not None else ""
        desk.screen.say(f"progress  {progress.done:g}{share}  {progress.note or ''}".rstrip())


def _outcome(desk: Desk, job: Job) -> None:
    screen = desk.screen
    if screen.as_json:
        screen.fact(job_facts(job, contents=True))
        return
    ran = f" after {milliseconds(job.duration_ms)}" if job.duration_ms is not None else ""
    screen.say(f"{job.type} {job.id} {job.status}{ran}", STYLES.get(job.status.value))
    if job.error is not None and job.status is not Status.SUCCEEDED:
        screen.say(f"  {job.error.type}: {job.error.message}")
        screen.say(f"  look: windlass job {job.id} --traceback")
    elif job.result_json not in (None, "null"):
        screen.say(f"  {masked_text(job.result_json)}")
