"""Doubts: what a worker was told that is most likely a slip, such as a name with a letter too few."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.errors import StoreError

if TYPE_CHECKING:
    from windlass.core.registry import Registry
    from windlass.stores.contract import Store
    from windlass.worker.config import WorkerConfig


async def doubts(config: WorkerConfig, registry: Registry, store: Store) -> list[tuple[str, str]]:
    """What each is about, and the doubt in words. Asks the store only about queues that no handler here names."""
    types = {declaration.name for declaration in registry}
    doubtful = [
        ("exclude", f"exclude names {name!r}, but no handler here is called that: it excludes nothing")
        for name in config.exclude
        if name not in types
    ]
    declared = {declaration.options.queue for declaration in registry}
    strange = set(config.queues or ()) - declared
    if strange:
        strange -= await _known(store)
    return doubtful + [
        ("queues", f"queue {name!r} is named by no handler here, and has never had a job: nothing may ever come of it")
        for name in sorted(strange)
    ]


async def _known(store: Store) -> set[str]:
    try:
        return {queue.name for queue in await store.queues.list()}
    except StoreError:
        return set()
