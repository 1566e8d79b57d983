"""The proxy's faults, seen from both ends of plain connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest

from windlass.chaos.proxy import PostgresNotices, Proxy, RedisMessages


class Echo:
    """A server that says every line again, and remembers it."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.ended = 0

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[int, None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                self.heard.append(line)
                writer.write(line)
        except OSError:
            pass
        self.ended += 1
        writer.close()


@asynccontextmanager
async def connected(proxy: Proxy) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter], None]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def ask(proxy: Proxy, line: bytes = b"ahoy\n", within: float = 5.0) -> bytes:
    async with connected(proxy) as (reader, writer):
        writer.write(line)
        return await asyncio.wait_for(reader.readline(), within)


async def test_everything_passes_until_told_otherwise() -> None:
    async with Echo().serving() as port:
        with Proxy("127.0.0.1", port) as proxy:
            assert await ask(proxy) == b"ahoy\n"


async def test_a_lost_answer_follows_a_request_that_was_carried_out() -> None:
    echo = Echo()
    async with echo.serving() as port:
        with Proxy("127.0.0.1", port) as proxy:
            proxy.lose_answers(1.0)
            with pytest.raises(ConnectionResetError):
                await ask(proxy, b"pay\n")
            assert (echo.heard, proxy.lost) == ([b"pay\n"], 1)
            proxy.heal()
            assert await ask(proxy) == b"ahoy\n"


async def test_an_address_leads_elsewhere_once_it_is_told_to() -> None:
    old, new = Echo(), Echo()
    async with old.serving() as port, new.serving() as elsewhere:
        with Proxy("127.0.0.1", port) as proxy:
            async with connected(proxy) as (reader, writer):
                writer.write(b"old\n")
                assert await reader.readline() == b"old\n"
                proxy.lead_to("127.0.0.1", elsewhere)
                with pytest.raises(ConnectionResetError):
                    await reader.readline()
            assert await ask(proxy, b"new\n") == b"new\n"
            assert (old.heard, new.heard) == ([b"old\n"], [b"new\n"])


async def test_a_silenced_connection_is_neither_served_nor_closed() -> None:
    echo = Echo()
    async with echo.serving() as port:
        with Proxy("127.0.0.1", port) as proxy:
            async with connected(proxy) as (reader, writer):
                writer.write(b"one\n")
                assert await reader.readline() == b"one\n"
                proxy.silence()
                writer.write(b"two\n")
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(reader.readline(), 0.2)
                with pytest.raises(TimeoutError):
                    await ask(proxy, within=0.2)
                assert echo.heard == [b"one\n"]
                proxy.heal()
                with pytest.raises(ConnectionResetError):
                    await asyncio.wait_for(reader.readline(), 5)
                assert await ask(proxy) == b"ahoy\n"


async def test_only_connections_with_a_marked_request_fall_silent() -> None:
    async with Echo().serving() as port:
        with Proxy("127.0.0.1", port, marks=(b"listen",)) as proxy:
            async with connected(proxy) as (reader, writer):
                writer.write(b"listen\n")
                assert await reader.readline() == b"listen\n"
                proxy.silence_marked()
                writer.write(b"one\n")
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(reader.readline(), 0.2)
                assert await ask(proxy) == b"ahoy\n"
                with pytest.raises(TimeoutError):
                    await ask(proxy, b"listen\n", within=0.2)
                proxy.heal()
                assert await ask(proxy, b"listen\n") == b"listen\n"


async def test_a_half_open_connection_is_closed_for_the_server_alone() -> None:
    echo = Echo()
    async with echo.serving() as port:
        with Proxy("127.0.0.1", port) as proxy:
            async with connected(proxy) as (reader, writer):
                writer.write(b"one\n")
                assert await reader.readline() == b"one\n"
                proxy.half_open()
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(reader.readline(), 0.2)
                assert echo.ended == 1
                assert await ask(proxy) == b"ahoy\n"


async def refused(proxy: Proxy) -> bool:
    try:
        return await ask(proxy) == b""  # a reset before the first byte may come as an end
    except OSError:
        return True


async def test_reset_and_refusal() -> None:
    async with Echo().serving() as port:
        with Proxy("127.0.0.1", port) as proxy:
            async with connected(proxy) as (reader, writer):
                writer.write(b"one\n")
                await reader.readline()
                proxy.reset()
                with pytest.raises(ConnectionResetError):
                    await asyncio.wait_for(reader.readline(), 5)
                proxy.refuse()
                assert await refused(proxy)
                proxy.heal()
                assert await ask(proxy) == b"ahoy\n"


async def test_a_delay_holds_everything_up() -> None:
    async with Echo().serving() as port:
        with Proxy("127.0.0.1", port) as proxy:
            proxy.delay(0.15)
            began = asyncio.get_running_loop().time()
            await ask(proxy)
            assert asyncio.get_running_loop().time() - began >= 0.3


def message(kind: bytes, body: bytes) -> bytes:
    return kind + (4 + len(body)).to_bytes(4, "big") + body


@pytest.mark.parametrize("cut", range(1, 40, 7))
def test_notifications_of_postgresql_are_taken_out_wherever_the_bytes_are_cut(cut: int) -> None:
    ready, notice, row = message(b"Z", b"I"), message(b"A", b"\x00\x00\x00\x01news\x00\x00"), message(b"D", b"x" * 20)
    told = ready + notice + row + notice + ready
    sieve = PostgresNotices()
    assert sieve.feed(b"N") == b"N"
    passed = b"".join(sieve.feed(told[at : at + cut]) for at in range(0, len(told), cut))
    assert passed == ready + row + ready


def test_messages_of_redis_are_taken_out_and_answers_are_not() -> None:
    sieve = RedisMessages()
    assert sieve.feed(b"*3\r\n$7\r\nmessage\r\n$1\r\nn\r\n$0\r\n\r\n") == b""
    assert sieve.feed(b"+OK\r\n") == b"+OK\r\n"
