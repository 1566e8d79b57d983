"""Commands: the same by the command line and by curl, fit to be pasted into a shell."""

from __future__ import annotations

import json
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from windlass.core.sealing import holds_sealed
from windlass.core.status import Status
from windlass.web.dashboard.json_tree import masked_json

if TYPE_CHECKING:
    from windlass.core.job import Job
    from windlass.web.dashboard.visit import Visit

_LONGEST = 1_000
"""characters of a payload that is written into a command; a longer one is named as a file"""
_LARGEST = 16_000
"""characters of one that is enqueued once more from the page"""
_KEY = '-H "Authorization: Bearer $WINDLASS_KEY"'


@dataclass(frozen=True, slots=True)
class Command:
    """A line for a shell, and what it does."""

    does: str
    text: str


def commands(job: Job, visit: Visit) -> list[tuple[str, list[Command]]]:
    """By the command line where the caller sees the jobs of all, and over HTTP."""
    over_http = ("With curl", _over_http(job, visit))
    return [("With windlass", _by_command_line(job)), over_http] if visit.sees_all else [over_http]


def _over_http(job: Job, visit: Visit) -> list[Command]:
    place = absolute(visit, visit.api(f"queue/{job.id}"))
    found = [Command("Look at it", f"curl -sS {_KEY} {quote(place)}")]
    if visit.may("operate"):
        deed = "retry" if job.status.finished else "cancel"
        does = "Queue it again" if job.status.finished else "Cancel it"
        found.append(Command(does, f"curl -sS -X POST {_KEY} {quote(f'{place}/{deed}')}"))
    if visit.may("enqueue"):
        body = quote(json.dumps(_body(job, masked_json(job.payload_json)))) if _is_short(job) else "@job.json"
        to = quote(absolute(visit, visit.api("queue/enqueue")))
        found.append(
            Command("Enqueue one like it", f"curl -sS {_KEY} -H 'Content-Type: application/json' -d {body} {to}")
        )
    return found


def _by_command_line(job: Job) -> list[Command]:
    payload = quote(json.dumps(masked_json(job.payload_json))) if _is_short(job) else "@payload.json"
    found = [
        Command("Look at it", f"windlass job {job.id} --payload --traceback"),
        Command("Why the job is in this status", f"windlass explain {job.id}"),
    ]
    if job.status.finished or job.status in (Status.SCHEDULED, Status.RETRYING):
        found.append(Command("Queue it now", f"windlass retry {job.id}"))
    else:
        found.append(Command("Follow it to its end", f"windlass wait {job.id} --follow"))
    found.append(Command("Enqueue one like it", f"windlass enqueue {quote(job.type)} {payload} -q {quote(job.queue)}"))
    return found


def _is_short(job: Job) -> bool:
    return len(job.payload_json) <= _LONGEST


def hides(job: Job) -> bool:
    """Whether something of its payload is not shown, and so is not in the commands either."""
    return _is_short(job) and masked_json(job.payload_json) != json.loads(job.payload_json)


def _body(job: Job, payload: object) -> dict[str, object]:
    return {"type": job.type, "payload": payload, "queue": job.queue, "priority": job.priority}


def duplicate(job: Job, visit: Visit) -> dict[str, object] | None:
    """What is asked of the API for one more like it; None where that cannot be, or is another route's to do."""
    if (
        job.status.finished
        or holds_sealed(job.payload_json)
        or len(job.payload_json) > _LARGEST
        or job.type.startswith("windlass.")
    ):
        return None
    more: dict[str, object] = {
        "maxAttempts": job.max_attempts,
        "timeout": None if job.timeout is None else job.timeout.total_seconds(),
        "entityName": job.entity_name,
        "entityId": job.entity_id,
        "correlationId": job.correlation_id,
        "tags": list(job.tags) or None,
        "metadata": job.metadata or None,
        "userId": job.user_id if visit.sees_all else None,
    }
    return _body(job, job.payload) | {name: value for name, value in more.items() if value is not None}


def absolute(visit: Visit, path: str) -> str:
    """With the host that the viewer asks, to be pasted elsewhere."""
    asked = visit.request.url
    return f"{asked.scheme}://{asked.netloc}{path}"
