"""Duty: of the workers that would do the same chores, one does them for a while.

A leased lock says who. Nothing hangs on it: every chore is safe for anyone at any time, and a duty whose holder died is
another's soon after its time is over.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from datetime import timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING

from windlass.core.errors import StoreError
from windlass.stores.contract import About, Granted, Notice
from windlass.worker.steady import Steady

if TYPE_CHECKING:
    from windlass.core.events import Hub
    from windlass.core.registry import Registry
    from windlass.stores.contract import Store
    from windlass.worker.config import WorkerConfig
    from windlass.worker.fleet import Fleet

PREFIX = "windlass:duty:"
"""how the names of these locks begin"""
_LOOK = 0.05  # seconds between two looks for other workers while it is not known whether there are any
_SHORT = timedelta(seconds=1)
_PARTING = 2.0  # seconds that a stopping worker takes for letting go
_EACH = 1.0  # seconds: after a duty's end, one worker of the fleet asks for it in so long on average


class Duty:
    """Whether this worker does the chores now."""

    def __init__(self, store: Store, config: WorkerConfig, registry: Registry, hub: Hub, fleet: Fleet) -> None:
        self._store, self._config, self._fleet = store, config, fleet
        self._name = duty_of(config, registry)
        self._steady = Steady(hub, "ask for the chores")
        # Where jobs are looked for very often, the duty need not change hands as often.
        self._ttl = max(config.rescue, min(_SHORT, config.lease / 2))
        self._token: int | None = None
        self._on = asyncio.Event()
        self._soon = asyncio.Event()
        # Alone until it hears of others: a worker that is alone, or stops when all is done, does every chore itself.
        self._on.set()

    async def on(self) -> None:
        """Wait until the chores are this worker's."""
        await self._on.wait()

    def free(self) -> None:
        """The duty was released: ask for it now."""
        if not self._on.is_set():
            self._soon.set()

    async def run(self) -> None:
        """Take part until cancelled."""
        while True:
            pause = _LOOK if not self._fleet.size else self._ttl.total_seconds() / 2
            if self._fleet.size > 1 and not self._config.drain:
                pause = await self._ask()
            elif self._fleet.size:
                self._on.set()
            self._soon.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._soon.wait()

    async def let_go(self) -> None:
        """Leave the duty to the others at once."""
        token, self._token = self._token, None
        self._on.clear()
        if token is not None:
            # With a store that is away the stop must not wait for it: the duty's time is over soon by itself.
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(_PARTING):
                    await self._store.locks.release(self._name, token)
                    await self._store.notices.publish(Notice(About.DUE, n=1, draw=random.getrandbits(24), hop=1))

    async def _ask(self) -> float:
        """Keep or take the duty; how many seconds until it is to be asked for again."""
        ttl = self._ttl.total_seconds()
        before = time.monotonic()
        answer = await self._steady.attempt(
            lambda: self._store.locks.acquire(self._name, self._config.worker_id, self._ttl)
        )
        if answer is None:
            return 0.0  # the wait was Steady's; until then all stays as it is
        if isinstance(answer, Granted):
            self._token = answer.token
            self._on.set()
            return max(0.0, ttl / 2 - (time.monotonic() - before))
        self._token = None
        self._on.clear()
        return ttl + random.uniform(0, self._spread)

    @property
    def _spread(self) -> float:
        # The more there are, the rarer each asks. Never so rare that jobs of a killed worker, had it been on duty,
        # would not begin again within lease, rescue and poll.
        most = (self._config.lease + self._config.poll).total_seconds() / 2
        return min(_EACH * self._fleet.size, most)


def duty_of(config: WorkerConfig, registry: Registry) -> str:
    """The lock's name: the same for workers that would do the same, with the same handlers and settings."""
    chores = (config.retention, config.ageing, sorted(declaration.name for declaration in registry))
    if config.own:  # it leaves out what needs the handlers
        return f"{PREFIX}own"
    return PREFIX + blake2b(repr(chores).encode(), digest_size=8).hexdigest()
