"""Live: what happens to one job or to many, as it happens."""

from __future__ import annotations

from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Request, WebSocket
from fastapi.responses import Response

from windlass.core.draft import check_id
from windlass.core.errors import JobNotFound, SettingsError
from windlass.web.asking import Reader
from windlass.web.live.hub import OneJob
from windlass.web.live.live import Live
from windlass.web.live.socket import LiveSocket
from windlass.web.live.stream import EventStream
from windlass.web.live.viewing import LiveWanted
from windlass.web.live.words import MEDIA_TYPE

router = APIRouter(tags=["live"])
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "The events, until the end", "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}},
}
_ENDED: dict[int | str, dict[str, Any]] = {
    204: {"description": "The job has ended, and the client was told everything: it need not come again"}
}


def _live(connection: Request | WebSocket) -> Live:
    return cast("Live", connection.app.state.live)


@router.get(
    "/queue/{job_id}/events",
    summary="What happens to a job, as it happens",
    response_class=Response,
    responses=_STREAM | _ENDED,
)
async def events(job_id: str, request: Request, caller: Reader) -> Response:
    """The job's state, every entry of its history, and its end, as Server-Sent Events.

    `Last-Event-ID` is the number of the last entry that the client has: those after it are sent, once each.
    """
    try:
        target = OneJob(check_id(job_id))
    except SettingsError:
        raise JobNotFound(job_id[:80]) from None  # what is no id names no job
    return EventStream(_live(request), request, caller, target)


@router.get("/live", summary="A view of many jobs, as it changes", response_class=Response, responses=_STREAM)
async def live(wanted: Annotated[LiveWanted, Query()], request: Request, caller: Reader) -> Response:
    """How many of your jobs stand where, and the newest that match or those named by `id`, as Server-Sent Events.

    The first event has everything, each that follows what has changed. With `Last-Event-ID` only what has changed since
    then is sent, if this process still knows that; else everything.
    """
    return EventStream(_live(request), request, caller, wanted.view())


@router.websocket("/live")
async def live_socket(socket: WebSocket) -> None:
    """The same over one WebSocket, for any number of jobs and views."""
    await LiveSocket(_live(socket), socket).go()
