"""A stream of Server-Sent Events: one feed, from the client's place in it to its end.

Nothing is queued for a client: what it has not taken is in the buffer of its connection, which has a bound, and what
changes meanwhile is told as one state when it goes on.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.responses import Response

from windlass.web.live.live import Clock
from windlass.web.live.one_job import JobFeed
from windlass.web.live.words import COMMENT, MEDIA_TYPE, SLOW, STOPPING, UNAUTHORISED, Word, closing, retry, via

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from windlass.web.callers import Caller
    from windlass.web.live.hub import Target
    from windlass.web.live.live import Live
    from windlass.web.live.watching import Feed

_HEADERS = [
    (b"content-type", MEDIA_TYPE.encode()),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # else nginx waits for more
]
_LAST_WORD = 1.0
"""seconds that a slow client has to take the word that says so"""


class EventStream(Response):
    """Answers with the events of one target while there are any. What is refused is refused before it begins."""

    def __init__(self, live: Live, request: Request, caller: Caller, target: Target) -> None:
        super().__init__()
        self._live, self._request, self._caller, self._target = live, request, caller, target

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        live, room, woken = self._live, self._caller.jobs(self._live.app), asyncio.Event()
        with live.place(self._caller.name):
            watch = live.hub.join(room, self._target, woken)
            try:
                await watch.see()
                feed = watch.feed(self._request.headers.get("last-event-id"))
                if isinstance(feed, JobFeed) and feed.complete:
                    # The one status that tells a browser's EventSource not to come again.
                    await Response(status_code=204)(scope, receive, send)
                    return
                with live.hub.present(woken):
                    await _Telling(live, self._request, self._caller, feed, woken, send).tell(receive)
            finally:
                live.hub.leave(room, self._target, watch, woken)


class _Telling:
    """One stream while it is open."""

    def __init__(
        self, live: Live, request: Request, caller: Caller, feed: Feed, woken: asyncio.Event, send: Send
    ) -> None:
        self._live, self._request, self._caller, self._feed, self._send = live, request, caller, feed, send
        self._woken = woken
        self._clock = Clock(live.pace)
        self._via = ""
        self._gone = False

    async def tell(self, receive: Receive) -> None:
        listening = asyncio.create_task(self._listen(receive), name="windlass-live-client")
        try:
            await self._send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS]})
            await self._said(retry())
            last = await self._tell_all()
            if not self._gone:
                rest = retry() + last.as_event() if last is not None else b""
                await self._send({"type": "http.response.body", "body": rest})
        except TimeoutError:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORD):
                    await self._send({"type": "http.response.body", "body": retry() + closing(SLOW).as_event()})
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self._woken.set()

    async def _tell_all(self) -> Word | None:
        """Tell until the end; gives the last word where there is one more to be said."""
        while not self._gone:
            self._woken.clear()
            await self._say(self._news())
            if self._feed.over:
                return None
            if self._live.hub.closing:
                return closing(STOPPING)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._clock.left):
                    await self._woken.wait()
            if self._clock.asks() and not await self._live.still_may(self._request, self._caller):
                return closing(UNAUTHORISED)
            if self._clock.silent:
                await self._said(COMMENT)
        return None

    def _news(self) -> Sequence[Word]:
        words, how = self._feed.words(), self._live.hub.via
        if self._feed.over or how == self._via:
            return words
        self._via = how
        return [*words, via(how)]

    async def _say(self, words: Sequence[Word]) -> None:
        if words:
            await self._said(b"".join(word.as_event() for word in words))

    async def _said(self, body: bytes) -> None:
        async with asyncio.timeout(self._live.pace.slow):
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
        self._clock.said()
