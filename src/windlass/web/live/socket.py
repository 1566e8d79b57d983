"""A WebSocket: any number of jobs and views, told as streams tell them.

As there, nothing is queued: each subscription remembers how far it was told, and what the client says is read as fast
as it takes the answers.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse
from starlette.websockets import WebSocketDisconnect, WebSocketState

from windlass.core.errors import SettingsError, WindlassError
from windlass.stores.contract import Scope
from windlass.web.access.addresses import address_of
from windlass.web.asking import limiter_of
from windlass.web.live.admission import offered, speaks, with_key
from windlass.web.live.live import Clock
from windlass.web.live.messages import LARGEST, Authenticate, Message, Ping, Subscribe, Unsubscribe, name_of, read
from windlass.web.live.words import BROKEN, SLOW, STOPPING, TOO_LARGE, UNAUTHORISED, UNREADABLE, Word, closing, via
from windlass.web.problems import MEDIA_TYPE, UNAUTHENTICATED, Refused, problem_of

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.websockets import WebSocket

    from windlass.client.jobs import JobsRoom
    from windlass.web.callers import Caller
    from windlass.web.live.live import Live
    from windlass.web.live.watching import Feed

LOG = logging.getLogger("windlass.web.live")
_CODES = {STOPPING: 1012, UNAUTHORISED: 1008, SLOW: 1013, UNREADABLE: 1003, TOO_LARGE: 1009, BROKEN: 1011}
_POLICY = 1008
_LAST_WORD = 1.0
_ALIVE = Word("alive", "{}")
_PONG = Word("pong", "{}")


class LiveSocket:
    """One WebSocket from its request to its end."""

    def __init__(self, live: Live, socket: WebSocket) -> None:
        self._live, self._socket = live, socket

    async def go(self) -> None:
        """Admit it, or not, and talk."""
        try:
            await self._admitted()
        except WebSocketDisconnect:
            return
        except (Refused, WindlassError) as error:
            await self._refuse(error)

    async def _admitted(self) -> None:
        live, socket = self._live, self._socket
        limiter = limiter_of(socket)
        limiter.come(socket)
        connection = with_key(socket, offered(socket))
        caller = await live.caller(connection)
        if caller is None:
            with live.place(f"address {address_of(socket)}"):
                await socket.accept(speaks(socket))
                connection = with_key(socket, await self._greeting())
                caller = await live.caller(connection)
        if caller is None:
            raise Refused(UNAUTHENTICATED, "give a key as a subprotocol, or in a first message: authenticate")
        limiter.ask(caller)
        caller.check(Scope.READ)
        with live.place(caller.name):
            if socket.application_state is WebSocketState.CONNECTING:
                await socket.accept(speaks(socket))
            await _Talk(live, socket, connection, caller).go()

    async def _greeting(self) -> str | None:
        try:
            async with asyncio.timeout(self._live.pace.greeting):
                text = await self._socket.receive_text()
        except (TimeoutError, KeyError):  # nothing, or bytes
            return None
        message = read(text) if len(text) <= LARGEST else None
        return message.key if isinstance(message, Authenticate) else None

    async def _refuse(self, error: Exception) -> None:
        kind, members, headers = problem_of(error, "")
        socket = self._socket
        with suppress(WebSocketDisconnect, TimeoutError):
            async with asyncio.timeout(_LAST_WORD):
                if socket.application_state is WebSocketState.CONNECTED:
                    await socket.send_text(Word("error", json.dumps(members)).as_message(None))
                    await socket.close(_POLICY, kind.title)
                elif "websocket.http.response" in socket.scope.get("extensions", {}):
                    await socket.send_denial_response(JSONResponse(members, kind.status, headers, MEDIA_TYPE))
                else:
                    await socket.close(_POLICY, kind.title)


class _Talk:
    """A WebSocket that is open, of a known caller."""

    def __init__(self, live: Live, socket: WebSocket, connection: HTTPConnection, caller: Caller) -> None:
        self._live, self._socket, self._connection, self._caller = live, socket, connection, caller
        self._room: JobsRoom = caller.jobs(live.app)
        self._woken = asyncio.Event()
        self._sending = asyncio.Lock()
        self._clock = Clock(live.pace)
        self._followed: dict[str, tuple[Feed, ExitStack]] = {}
        self._via = ""
        self._gone = False
        self._why: str | None = None

    async def go(self) -> None:
        listening = asyncio.create_task(self._listen(), name="windlass-live-client")
        try:
            with self._live.hub.present(self._woken):
                await self._tell()
        except TimeoutError:
            self._why = SLOW
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            for name in list(self._followed):
                self._unfollow(name)
        if self._why is not None and not self._gone:
            await self._end(self._why)

    async def _end(self, why: str) -> None:
        with suppress(WebSocketDisconnect, TimeoutError):
            async with asyncio.timeout(_LAST_WORD):
                await self._socket.send_text(closing(why).as_message(None))
                await self._socket.close(_CODES[why], why)

    async def _tell(self) -> None:
        while not self._gone and self._why is None:
            self._woken.clear()
            await self._say_news()
            if self._live.hub.closing:
                self._why = STOPPING
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(self._clock.left):
                    await self._woken.wait()
            if self._clock.asks() and not await self._live.still_may(self._connection, self._caller):
                self._why = UNAUTHORISED
            elif self._clock.silent:
                await self._say(_ALIVE, None)

    async def _say_news(self) -> None:
        for name, (feed, _) in list(self._followed.items()):
            for word in feed.words():
                await self._say(word, name)
            if feed.over:
                self._unfollow(name)
        if self._via != self._live.hub.via:
            self._via = self._live.hub.via
            await self._say(via(self._via), None)

    async def _say(self, word: Word, of: str | None) -> None:
        async with self._sending, asyncio.timeout(self._live.pace.slow):
            await self._socket.send_text(word.as_message(of))
        self._clock.said()

    async def _listen(self) -> None:
        try:
            while not self._gone:
                text = await self._socket.receive_text()
                if len(text) > LARGEST:
                    self._why = TOO_LARGE
                    return
                await self._hear(text)
        except WebSocketDisconnect:
            self._gone = True
        except KeyError:  # bytes
            self._why = UNREADABLE
        except TimeoutError:  # it does not take the answers
            self._why = SLOW
        except Exception:
            LOG.exception("a message on a WebSocket could not be handled")
            self._why = BROKEN
        finally:
            self._woken.set()

    async def _hear(self, text: str) -> None:
        try:
            limiter_of(self._socket).ask(self._caller)  # a subscription asks the store as a request does
            await self._handle(read(text))
        except (Refused, WindlassError) as error:
            members = problem_of(error, "")[1]
            await self._say(Word("error", json.dumps(members)), name_of(text))

    async def _handle(self, message: Message) -> None:
        match message:
            case Subscribe():
                await self._follow(message)
            case Unsubscribe():
                self._unfollow(message.id)
            case Ping():
                await self._say(_PONG, None)
            case Authenticate():
                raise SettingsError("who you are is known: open another WebSocket to be somebody else")

    async def _follow(self, asked: Subscribe) -> None:
        if asked.id in self._followed:
            raise SettingsError("a subscription of this id is there: give it another, or unsubscribe first")
        if len(self._followed) >= self._live.pace.per_socket:
            raise SettingsError(f"there are {self._live.pace.per_socket} subscriptions: unsubscribe from one first")
        hub, target = self._live.hub, asked.target()
        with ExitStack() as stack:
            watch = hub.join(self._room, target, self._woken)
            stack.callback(hub.leave, self._room, target, watch, self._woken)
            await watch.see()
            feed = watch.feed(None if asked.after is None else str(asked.after))
            self._followed[asked.id] = feed, stack.pop_all()
        self._woken.set()

    def _unfollow(self, name: str) -> None:
        _, stack = self._followed.pop(name, (None, ExitStack()))
        stack.close()
