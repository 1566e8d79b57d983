"""One command and its answer over a connection of the driver's, without what the driver lays around each command.

Its own way asks its pool for a connection, measures, counts and retries, and packs the words in Python: as much work as
all the rest of a short call. What may be retried is said in `connection.py`. So the connections that lie idle are kept
here, checked by the driver before each use, and the words are packed by hiredis, whose parser reads the answers.
"""

from __future__ import annotations

import time
from typing import Any

import hiredis
from redis.exceptions import ConnectionError as Lost

_RESTED = 1.0
"""seconds after which a connection that lay idle is looked at before it is used: the server may have closed it"""
_packer: Any = hiredis
_pack = _packer.pack_command  # its own types know tuples of one word only


class Exchange:
    """The idle connections of one client; as many are made as commands are under way at the same moment."""

    def __init__(self, client: Any, rested: float = _RESTED) -> None:
        self.client = client
        """for commands whose answers the driver puts into a form of its own"""
        self._pool = client.connection_pool
        # A pool gives connections new credentials when they come back to it.
        self._gives_back = self._pool.connection_kwargs.get("credential_provider") is not None
        self._rested = rested
        self._idle: list[tuple[Any, float]] = []
        """each with the moment at which it was used last"""
        self._broken = 0.0
        """when one was found broken: the others may be, too"""

    async def ask(self, words: tuple[str | bytes | int, ...]) -> Any:
        """Send one command, and give its answer; a connection whose answer did not come is closed by the driver."""
        packed = _pack(words)
        connection, used = self._idle.pop() if self._idle else (await self._pool.get_connection(), 0.0)
        try:
            if used < max(time.monotonic() - self._rested, self._broken):
                await self._pool.ensure_connection(connection)
            await connection.send_packed_command(packed)
            return await connection.read_response()
        except (Lost, OSError):
            self._broken = time.monotonic()
            raise
        finally:
            if self._gives_back:
                await self._pool.release(connection)
            else:
                self._idle.append((connection, time.monotonic()))

    async def hang_up(self) -> None:
        """Close what lies idle: the next command connects anew, maybe to another server of that name."""
        await self._pool.disconnect(inuse_connections=False)
        for connection, _ in self._idle.copy():
            await connection.disconnect()
