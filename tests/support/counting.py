"""A store that counts the calls made of it: what a fleet of workers asks for, whichever store it works on."""

from __future__ import annotations

import inspect
from collections import Counter
from functools import wraps
from typing import Any, cast

from windlass.stores.contract import Store

_PARTS = ("jobs", "views", "queues", "schedules", "workers", "locks", "types", "keys", "audit")


class Calls:
    """How often each operation was called, by any of the stores that count here."""

    def __init__(self) -> None:
        self.by_name: Counter[str] = Counter()

    def on(self, store: Store) -> Store:
        """The same store, counted; so are its siblings."""
        return cast("Store", _Counted(store, self))

    def count(self, name: str) -> None:
        self.by_name[name] += 1  # several threads count here, each in one step of the interpreter or nearly so

    def since(self, before: Counter[str]) -> Counter[str]:
        return self.by_name - before

    def now(self) -> Counter[str]:
        return Counter(self.by_name)


class _Counted:
    def __init__(self, store: Store, calls: Calls) -> None:
        self._store, self._calls = store, calls
        for part in _PARTS:
            setattr(self, part, _Part(getattr(store, part), part, calls))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def now(self) -> Any:
        self._calls.count("now")
        return await self._store.now()

    def sibling(self) -> Store:
        return self._calls.on(self._store.sibling())


class _Part:
    def __init__(self, part: object, name: str, calls: Calls) -> None:
        self._part, self._name, self._calls = part, name, calls

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)
        if not inspect.iscoroutinefunction(method):
            return method

        @wraps(method)
        async def counted(*args: Any, **kwargs: Any) -> Any:
            self._calls.count(f"{self._name}.{name}")
            return await method(*args, **kwargs)

        return counted
