"""Sweeping: content that nothing names is collected; writes whose jobs ended without a word make room."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from windlass.apps.files.state import State, withdraw
from windlass.apps.files.writing import ENDED

if TYPE_CHECKING:
    from windlass.apps.files.files import Files
    from windlass.apps.files.names import Name
    from windlass.apps.files.records.records import Records

_LOG = logging.getLogger("windlass.files")
_FORGOTTEN = 600_000
"""milliseconds after which a write that still waits is asked after"""


async def sweep(files: Files) -> int:
    """How many blobs were collected."""
    records, named = await files.records(), set[bytes]()
    now = time.time_ns() // 1_000_000
    # What is named while this goes on was put or touched just before, so it is not old enough to be collected.
    async for name, state in records.walk():
        named |= {bytes.fromhex(one.sha256) for one in state.versions}
        named |= {bytes.fromhex(one.sha256) for one in (*state.waiting, *state.ended)}
        for one in state.waiting:
            if now - one.at > _FORGOTTEN:
                job = await files.job_of(name, one.seq)
                if job is None or job.status in ENDED:
                    await _let_go(records, name, one.seq, 0 if job is None else job.lease_token)
    collected = 0
    async for blob in files.blobs.older_than(files.settings.keep):
        if bytes.fromhex(blob.sha256) not in named:
            collected += await files.blobs.collect(blob.sha256, files.settings.keep)
    if collected:
        _LOG.info("collected %s contents that no version names", collected)
    return collected


async def _let_go(records: Records, name: Name, seq: int, token: int) -> None:
    def work(state: State) -> tuple[State, None]:
        return withdraw(state, seq, token), None

    await records.change(name, work)
    _LOG.info("write %s of file %s has ended without a word: let go", seq, name.text)
