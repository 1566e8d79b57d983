"""A Redis server that is killed, frozen, robbed of its scripts or of its place as the primary."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from tests.faults.one_server import OneServer
from tests.support.processes import Server
from tests.support.until import until
from windlass.stores.redis.records import FIELDS


class Faults(OneServer):
    """What may befall the one server."""

    async def answers(self) -> bool:
        return await asyncio.to_thread(lambda: ask(self.server, "PING", timeout=1) is not None)

    async def forget_scripts(self) -> None:
        """Again and again, so that it meets every kind of call."""
        ends = time.monotonic() + 3
        while time.monotonic() < ends:
            ask(self.server, "SCRIPT", "FLUSH")
            await asyncio.sleep(0.02)  # in which they are loaded again

    def end_leases(self) -> int:
        """The control: every lease is said to be over, long before it is; returns how many there were."""
        place = str(FIELDS.index("expires_at"))
        return int(ask(self.server, "EVAL", END_LEASES, "1", "{windlass}:", place))


END_LEASES = r"""
local leases = KEYS[1] .. 'leases:default\31held'
local ids = redis.call('ZRANGE', leases, 0, -1)
for _, id in ipairs(ids) do
  local key = KEYS[1] .. 'j:' .. id
  local before, at, after = string.match(redis.call('GET', key), '^(' .. string.rep('%Z*%z', ARGV[1]) .. ')(%Z*)(.*)$')
  redis.call('SET', key, before .. string.rep('0', #at) .. after)
  redis.call('ZADD', leases, 0, id)
end
redis.call('ZADD', KEYS[1] .. 'leased', 0, 'default\31held')
return #ids
"""


def ask(server: Server, *words: str | bytes, timeout: float = 10) -> Any:
    """What the server answers to a connection of its own; None if it does not."""
    driver: Any = Redis  # half of its methods have no types
    with driver.from_url(server.url, socket_timeout=timeout) as client:
        try:
            return client.execute_command(*words)
        except (RedisError, OSError):
            return None


async def until_following(replica: Server) -> None:
    """The replica has all that its primary had when asked."""

    def follows() -> bool:
        found = ask(replica, "INFO", "replication")
        return found is not None and found.get("master_link_status") == "up"

    await until(follows, "the replica to follow", within=20)


def promote(replica: Server) -> None:
    assert ask(replica, "REPLICAOF", "NO", "ONE") == b"OK"
