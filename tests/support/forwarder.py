"""An address that stays while the server behind it changes, and a line that can lose what is on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from tests.support.processes import HOST


class Forwarder:
    """Between clients and a server on this host: can lose an answer, hold everything, or lead elsewhere."""

    def __init__(self, to: int) -> None:
        self.to = to
        """the port of the server; whoever connects from now on is led there"""
        self.port = 0
        self.lose = 0
        """how many answers to lose, each with its connection"""
        self.spare = 0
        """how many answers pass before the first is lost"""
        self.held = 0
        """how many answers wait to be let go"""
        self._flows, self._answers_flow = asyncio.Event(), asyncio.Event()
        self.let_go()
        self._open: set[asyncio.StreamWriter] = set()

    def hold(self) -> None:
        """Nothing passes any more, in either direction; connections stay."""
        self._flows.clear()

    def hold_answers(self) -> None:
        """Questions pass, their answers do not."""
        self._answers_flow.clear()

    def let_go(self) -> None:
        """All passes again."""
        self._flows.set()
        self._answers_flow.set()

    def cut(self) -> None:
        """Every connection ends, and what was held with it."""
        for writer in tuple(self._open):
            writer.transport.abort()

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(HOST, self.to)
        except OSError:
            writer.close()
            return
        both = {writer, back}
        self._open |= both
        try:
            async with asyncio.TaskGroup() as passing:
                passing.create_task(self._pass(reader, back, answers=False))
                passing.create_task(self._pass(there, writer, answers=True))
        except* OSError:
            pass
        finally:
            self._open -= both
            writer.close()
            back.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        while data := await reader.read(65536):
            if answers and self.lose:
                if not self.spare:
                    self.lose -= 1
                    raise ConnectionResetError
                self.spare -= 1
            await self._flows.wait()
            if answers:
                await self._let_go_of()
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError  # ends the other direction, too

    async def _let_go_of(self) -> None:
        self.held += 1
        try:
            await self._answers_flow.wait()
        finally:
            self.held -= 1


@asynccontextmanager
async def forwarder(to: int) -> AsyncGenerator[Forwarder, None]:
    """One that listens on a free port and leads to this one."""
    made = Forwarder(to)
    server = await asyncio.start_server(made.join, HOST, 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        made.cut()
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await server.wait_closed()
