"""Replaying: a finished job's work once more, as a new job that names the old one. Twice by accident is once."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from windlass.core.draft import Draft, Options
from windlass.core.errors import MoveRefused, PayloadInvalid
from windlass.core.rate import Rate
from windlass.core.redaction import MASK
from windlass.core.sealing import holds_sealed, opened
from windlass.core.values import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.client.client import Client
    from windlass.core.job import Job
    from windlass.core.payload import Codec

WINDOW = timedelta(days=30)
"""for so long a second replay of one ending answers with the job that the first made"""


def replay(
    client: Client,
    job: Job,
    *,
    payload: Any = None,
    edit: Mapping[str, Any] | None = None,
    delay: timedelta | None = None,
) -> Draft:
    """The job that does a finished job's work again: with its context, keys and limit, and the payload if not edited.

    Its idempotency key is made of the job's id and of how and when it ended, and of the payload where that is another.
    """
    if not job.status.finished:
        raise MoveRefused(job.id, job.status, "replayed")
    text = _payload(client, job, payload, edit)
    own = _own_keys(client, job, text)
    return Draft(
        id=client.ids(),
        type=job.type,
        payload_json=text,
        options=_options(job, delay),
        unique_queued=own.unique_queued,
        unique_running=own.unique_running,
        limit_key=own.limit_key,
        limit=job.limit,
        rate_key=own.rate_key,
        fair_key=own.fair_key,
        idempotency_key=_once(job, text),
    )


def _payload(client: Client, job: Job, payload: Any, edit: Mapping[str, Any] | None) -> str:
    if payload is None and edit is None:
        return job.payload_json
    codec = client.registry.get(job.type).codec if job.type in client.registry else None
    found: Any = _before(client, job, codec) if payload is None else payload
    if edit is not None:
        if not isinstance(found, dict):
            raise PayloadInvalid(
                f"the payload of job {job.id} is no object but {type(found).__name__}: it has no members to edit, give"
                " it as a whole"
            )
        found = {**cast("dict[str, Any]", found), **edit}
    if codec is not None:
        if holds_sealed(job.payload_json):
            found = _unmasked(found, _before(client, job, codec))
        return codec.encode_plain(found)
    if holds_sealed(job.payload_json):
        raise PayloadInvalid(
            f"job {job.id} holds secrets, and the handler of {job.type}, which says where, is not here: replay it as it"
            " is, or edit it where its handler is"
        )
    return canonical(found, job.type)


def _before(client: Client, job: Job, codec: Codec | None) -> Any:
    """The payload as it was, its secrets opened where they will be sealed anew."""
    if codec is None or not holds_sealed(job.payload_json):
        return job.payload
    return opened(job.payload_json, client.seals, "payload", job.type, lambda value: value)


def _unmasked(given: Any, before: Any) -> Any:
    """What was given, with what was there before wherever it has the mask that a view shows in place of a secret."""
    if given == MASK:
        return before
    if isinstance(given, dict) and isinstance(before, dict):
        known = cast("dict[str, Any]", before)
        members = cast("dict[str, Any]", given).items()
        return {name: _unmasked(member, known[name]) if name in known else member for name, member in members}
    if isinstance(given, list) and isinstance(before, list):
        was = cast("list[object]", before)
        ones = enumerate(cast("list[object]", given))
        return [_unmasked(one, was[index]) if index < len(was) else one for index, one in ones]
    return cast("object", given)


def _own_keys(client: Client, job: Job, text: str) -> Job:
    """The job with the keys of its replay: of the new payload where its handler's templates made them of the old."""
    if text == job.payload_json or job.type not in client.registry:
        return job
    declaration = client.registry.get(job.type)
    try:
        was = declaration.draft(job.id, job.payload_json, declaration.options)
    except PayloadInvalid:
        return job  # the old payload does not even fill the templates
    now = declaration.draft(job.id, text, declaration.options)
    if (job.unique_queued, job.unique_running) == (was.unique_queued, was.unique_running):
        job = job._replace(unique_queued=now.unique_queued, unique_running=now.unique_running)
    changed = {
        name: getattr(now, name)
        for name in ("limit_key", "rate_key", "fair_key")
        if getattr(job, name) == getattr(was, name)
    }
    return job._replace(**changed)


def _once(job: Job, text: str) -> str:
    ended = "" if job.finished_at is None else job.finished_at.isoformat(timespec="milliseconds")
    edited = "" if text == job.payload_json else f":{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return f"replay:{job.id}:{job.attempts}:{ended}{edited}"


def _options(job: Job, delay: timedelta | None) -> Options:
    return Options(
        queue=job.queue,
        priority=job.priority,
        max_attempts=job.max_attempts,
        max_crashes=job.max_crashes,
        timeout=job.timeout,
        delay=delay,
        idempotency_window=WINDOW,
        rate=None
        if job.rate_n is None or job.rate_ms is None
        else Rate(job.rate_n, timedelta(milliseconds=job.rate_ms)),
        replay_of=job.id,
        origin=job.origin or job.id,
        parent_id=job.parent_id,
        correlation_id=job.correlation_id,
        user_id=job.user_id,
        entity_name=job.entity_name,
        entity_id=job.entity_id,
        tags=job.tags,
        metadata_json=job.metadata_json,
    )
