"""`enqueue` and `wait`: put a job in, and see how it ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass.cli.desk import Desk, at_desk, globals_of
from windlass.cli.following import follow_all
from windlass.cli.ids import whole_ids
from windlass.cli.words import duration, entity, instant, maybe_duration, value
from windlass.client.handle import Handle
from windlass.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.options import Asked

WaitTimeout = Annotated[
    str | None, typer.Option("--timeout-wait", metavar="DURATION", help="Give up waiting after this.")
]


def enqueue(
    ctx: typer.Context,
    type: Annotated[str, typer.Argument(metavar="TYPE", help="The handler's name.")],
    payload: Annotated[
        list[str] | None,
        typer.Argument(metavar="[JSON | @FILE | - | KEY=VALUE …]", help="Its arguments; - reads standard input."),
    ] = None,
    queue: Annotated[str | None, typer.Option("--queue", "-q", help="Where it waits.")] = None,
    priority: Annotated[
        str | None, typer.Option(help="critical, high, normal, low or a number; lower is first.")
    ] = None,
    delay: Annotated[str | None, typer.Option("--in", "--delay", metavar="DURATION", help="Not before this.")] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="Not before this time (ISO 8601).")] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Cancel it if no worker has taken it within this.")
    ] = None,
    unique: Annotated[str | None, typer.Option(metavar="KEY", help="At most one live job with this key.")] = None,
    idempotent: Annotated[bool, typer.Option("--idempotent", help="Once a day for the same type and payload.")] = False,
    max_attempts: Annotated[int | None, typer.Option(help="How often it may be tried.")] = None,
    timeout: Annotated[str | None, typer.Option(metavar="DURATION", help="How long one attempt may take.")] = None,
    user: Annotated[str | None, typer.Option(help="Whose job it is.")] = None,
    about: Annotated[str | None, typer.Option("--entity", metavar="NAME:ID", help="What it is about.")] = None,
    correlation: Annotated[str | None, typer.Option(metavar="ID", help="What it belongs to.")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="A word to find it by.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end; exit 6 if it fails.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="The same, telling what happens.")] = False,
    timeout_wait: WaitTimeout = None,
) -> None:
    """Enqueue a job and print its id.

    Values are read as JSON where they are JSON, else as text.

    For instance:

      windlass enqueue send_receipt order_id=42 copy_to=a@example.com

      windlass enqueue send_receipt '{"order_id": 42}' --in 5m --unique receipt:42

      windlass enqueue report --follow
    """
    asked = _asked(
        queue=queue,
        priority=None if priority is None else _priority(priority),
        delay=maybe_duration(delay, "--in"),
        at=None if at is None else instant(at, "--at"),
        expires=maybe_duration(expires, "--expires"),
        unique=unique,
        idempotent=idempotent or None,
        max_attempts=max_attempts,
        timeout=maybe_duration(timeout, "--timeout"),
        user=user,
        entity=entity(about),
        correlation=correlation,
        tags=tag or None,
    )
    content = read_payload(payload or [])
    longest = _seconds(timeout_wait)

    async def work(desk: Desk) -> None:
        handle = await desk.app.enqueue(type, content, **asked)
        if type not in desk.app.registry and not await desk.app.types.get(type):
            desk.screen.remark(
                f"no worker has told of the type {type}: it was enqueued with default options, its payload not checked"
            )
        if desk.screen.as_json:
            desk.screen.fact({"id": handle.id, "created": handle.created})
        else:
            desk.screen.line(handle.id)
            if not handle.created:
                desk.screen.say("was there already: its key is held by this job, nothing was enqueued")
        if globals_of(ctx).store is None:
            desk.screen.remark(f"in {desk.place}" + (", which was made for it" if desk.made else ""))
        if wait or follow:
            await follow_all(desk, [handle], tell=follow, seconds=longest)

    at_desk(ctx, work, makes=True)


def wait(
    ctx: typer.Context,
    ids: Annotated[list[str], typer.Argument(metavar="ID …", help="The jobs, by id or its beginning.")],
    follow: Annotated[bool, typer.Option("--follow", help="Tell what happens meanwhile.")] = False,
    timeout_wait: WaitTimeout = None,
) -> None:
    """Wait until the jobs have ended; exit 6 if one failed or was cancelled.

    Example: windlass wait $(windlass enqueue report) --timeout-wait 5m
    """
    seconds = _seconds(timeout_wait)

    async def work(desk: Desk) -> None:
        named = await whole_ids(desk, ids)
        handles = [Handle[Any](desk.app.client, job_id, created=False, codec=None) for job_id in named]
        await follow_all(desk, handles, tell=follow, seconds=seconds)

    at_desk(ctx, work)


def read_payload(words: Sequence[str]) -> dict[str, Any] | Any:
    """The arguments of a job: one JSON object, `-`, `@file`, or names with values."""
    if not words:
        return {}
    if len(words) == 1 and (words[0].startswith(("{", "[", "@")) or words[0] == "-"):
        return _document(words[0])
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise SettingsError(
                f"the payload has {word[:80]!r}: expected one JSON object, @FILE, -, or KEY=VALUE pairs"
            )
        found[name] = value(text)
    return found


def _document(word: str) -> Any:
    text = word
    if word == "-":
        text = sys.stdin.read()
    elif word.startswith("@"):
        try:
            text = Path(word[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"the payload file {word[1:]!r} cannot be read: {error}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"the payload is not JSON: {error}") from None


def _priority(text: str) -> int | str:
    return int(text) if text.removeprefix("-").isdecimal() else text


def _seconds(text: str | None) -> float | None:
    return None if text is None else duration(text, "--timeout-wait").total_seconds()


def _asked(**given: Any) -> Asked:
    """Only what was given: the rest stays as the handler declares it."""
    found: Asked = {}
    # The names are those of the parameters, which a checker cannot follow into the dictionary.
    found.update({name: one for name, one in given.items() if one is not None})  # type: ignore[typeddict-item]  # by name
    return found
