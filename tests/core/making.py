"""Jobs, codecs and declarations in one line each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from inspect import Parameter
from typing import Any

from windlass.core.draft import Options
from windlass.core.handler import Declaration, declare
from windlass.core.job import Job
from windlass.core.payload import Codec
from windlass.core.retry import DEFAULT_POLICY
from windlass.core.status import Status

NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)


def a_job(**changes: Any) -> Job:
    """A job in its first attempt, under lease 7 of worker w1."""
    job = Job(
        id="018f4d2e-0000-7000-8000-000000000001",
        type="mail.send",
        queue="default",
        payload_json="{}",
        status=Status.PROCESSING,
        priority=100,
        run_at=NOON,
        attempts=1,
        max_attempts=5,
        crashes=0,
        max_crashes=3,
        timeout=timedelta(hours=1),
        created_at=NOON,
        updated_at=NOON,
        queued_at=NOON,
        worker_id="w1",
        lease_token=7,
    )
    return job._replace(**changes)


def declared(
    function: Callable[..., Any], *, name: str = "mail.send", process: bool = False, **options: Any
) -> Declaration:
    return declare(function, name=name, options=Options(**options), policy=DEFAULT_POLICY, process=process)


@cache
def codec_of(hint: Any) -> Codec:
    """The codec of a handler `mail.send` that takes and returns one value `x` of this type."""
    return Codec("mail.send", {"x": Parameter("x", Parameter.POSITIONAL_OR_KEYWORD)}, {"x": hint, "return": hint})


def through(hint: Any, value: Any) -> Any:
    """The value as the handler gets it."""
    codec = codec_of(hint)
    return codec.decode(codec.encode((value,), {}))["x"]


def text_of(hint: Any, value: Any) -> str:
    """The value as it is stored."""
    return codec_of(hint).encode((value,), {}).removeprefix('{"x":').removesuffix("}")
