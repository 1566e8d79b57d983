"""`app.secrets`: the keys that seal the secrets of jobs, and what is still sealed with which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.client.vault import key_of
from windlass.core.sealing import sealed_in
from windlass.core.status import LIVE
from windlass.stores.contract import Filter

if TYPE_CHECKING:
    from windlass.client.client import Client
    from windlass.client.vault import Vault

MOST_LOOKED_AT = 100_000
_PAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedWith:
    """What cannot be run without which key. A key that is not among them can be taken away."""

    jobs: Mapping[str, int]
    """by the id of a key: how many jobs that have not ended"""
    schedules: Mapping[str, int]
    """the same of schedules, which hold theirs until they are put again"""
    looked_at: int
    """jobs"""
    complete: bool
    """whether these are all"""


class SecretsRoom:
    """The keys by their ids; nothing here tells a key or a secret."""

    def __init__(self, client: Client, vault: Vault) -> None:
        self._client, self._vault = client, vault

    @property
    def keys(self) -> tuple[str, ...]:
        """The ids of the keys that are here, the one that seals first."""
        return self._vault.key_ids

    async def in_use(self, most: int = MOST_LOOKED_AT) -> SealedWith:
        """With which keys the jobs that have not ended are sealed, and the schedules."""
        store = await self._client.ready()
        jobs, schedules = Counter[str](), Counter[str]()
        for schedule in await store.schedules.list():
            schedules.update({key_of(sealed) for sealed in sealed_in(schedule.payload_json)})
        looked_at, after = 0, None
        while looked_at < most:
            page = await store.views.find(Filter(status=LIVE), min(_PAGE, most - looked_at), after)
            looked_at += len(page.jobs)
            for job in page.jobs:
                jobs.update({key_of(sealed) for sealed in sealed_in(job.payload_json)})
            after = page.next
            if after is None:
                break
        return SealedWith(jobs=dict(jobs), schedules=dict(schedules), looked_at=looked_at, complete=after is None)
