"""One attempt at one write: wait for earlier ones, store the content, commit it, put it on disk."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from windlass import Reject, Signal, Snooze, Status, WindlassError
from windlass.apps.blobs.blobs import BlobDamaged, BlobMissing
from windlass.apps.files.disk import PathHeld, PathRefused
from windlass.apps.files.order import Order, Result
from windlass.apps.files.state import (
    Overtaken,
    State,
    Superseded,
    Unmet,
    Version,
    Write,
    before,
    begin,
    commit,
    withdraw,
)

if TYPE_CHECKING:
    from windlass import Ctx
    from windlass.apps.files.files import Files
    from windlass.apps.files.names import Name
    from windlass.apps.files.records.records import Records

ARRIVING = 5_000
"""milliseconds for which the job of a write that was given its place is waited for, if it is not there yet"""
_SOON, _EACH, _LONGEST = 0.1, 0.02, 5.0
"""seconds until the next look: after an earlier write's turn, for each that waits before, at most"""
_HELD = 1.0
"""seconds for which a write is put off whose file on disk is held"""
ENDED = (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)
_LOG = logging.getLogger("windlass.files")


class Writing:
    """One attempt."""

    def __init__(self, files: Files, records: Records, ctx: Ctx, name: Name, order: Order) -> None:
        self.files, self._ctx = files, ctx
        self.records, self.name, self.order = records, name, order
        self.disk: str | None = None
        """where the file is on disk, once that is known"""

    async def carry_out(self) -> Result:
        """Do it. What can never succeed is rejected, and every end makes room for the writes behind it."""
        seq, name = self.order.seq, self.name.text
        try:
            version = await self.begun() or await self.committed()
            if self.disk:
                await self._put_on_disk(version)
        except Superseded as error:
            await self._let_go()
            _LOG.info("write %s of file %s is %s", seq, name, error)
            return self._result(error.by, superseded=error.by.seq)
        except (Unmet, Overtaken, BlobMissing, PathRefused) as error:
            await self._let_go()
            _LOG.warning("write %s of file %s is refused: %s", seq, name, error)
            raise Reject(str(error)) from None
        except PathHeld as error:
            _LOG.warning("write %s of file %s is put off: %s", seq, name, error)
            raise Snooze(_HELD, str(error)) from None
        except Signal:
            raise
        except Exception as error:
            _LOG.warning("attempt %s at write %s of file %s failed: %s", self._ctx.attempt, seq, name, error)
            if self._ctx.attempt >= self._ctx.job.max_attempts:
                with suppress(WindlassError):  # a later write finds out by itself that this one has ended
                    await self._let_go()
            raise
        _LOG.info("file %s is at version %s, %s bytes: job %s", name, version.seq, version.size, self._ctx.id)
        return self._result(version)

    async def begun(self) -> Version | None:
        """Wait for earlier writes. Gives the version if an attempt before has committed it."""
        seq, token = self.order.seq, self._ctx.token
        if token == 1:  # no attempt came before, which this one would have to keep from committing
            state = await self.records.read(self.name) or State()
            _, done = begin(state, seq, token)
        else:

            def work(state: State) -> tuple[State, tuple[State, Version | None]]:
                begun, done = begin(state, seq, token)
                return begun, (begun, done)

            state, done = await self.records.change(self.name, work)
        self.disk = state.disk
        if done is None:
            while earlier := before(state, seq):
                ended = await self._waits_for(earlier[0].seq, earlier[0].at, len(earlier))
                if ended is None:
                    break
                state = await self.records.change(self.name, partial(_without, seq=earlier[0].seq, token=ended))
        return done

    async def _waits_for(self, seq: int, at: int, waiting: int) -> int | None:
        """Raise Snooze while an earlier write has not ended. The token of its job's last attempt when it has; None if
        it is waited for no longer.
        """
        now = time.time_ns() // 1_000_000
        job = await self.files.job_of(self.name, seq)
        if job is not None and job.status in ENDED:
            return job.lease_token
        if job is None and now - at > ARRIVING:
            return 0
        since = self._ctx.saved
        if since is None:
            await self._ctx.save(since := now)
        if now - since > self.files.settings.patience * 1000:
            _LOG.warning("write %s of file %s goes before write %s", self.order.seq, self.name.text, seq)
            return None
        wait = _SOON
        if job is not None and job.status in (Status.RETRYING, Status.SCHEDULED):
            wait += max(0.0, (job.run_at - datetime.now(UTC)).total_seconds())
        raise Snooze(min(wait + _EACH * waiting, _LONGEST), f"waits for write {seq}, which was enqueued before")

    async def committed(self) -> Version:
        """Store the content, then make it the current version: in this order, so that no version names nothing."""
        order, ctx, settings = self.order, self._ctx, self.files.settings
        content = order.content
        if content is None:
            await self.files.blobs.touch(order.sha256)
        elif (await self.files.blobs.put(content, largest=settings.largest)).sha256 != order.sha256:
            raise BlobDamaged(order.sha256)
        ctx.check()
        write = self.write()
        at = time.time_ns() // 1_000_000
        return await self.records.change(self.name, lambda state: commit(state, write, at=at, keep=settings.versions))

    def write(self) -> Write:
        """What this attempt asks of the law."""
        order, ctx = self.order, self._ctx
        return Write(
            seq=order.seq,
            token=ctx.token,
            job=ctx.id,
            sha256=order.sha256,
            size=order.size,
            who=ctx.job.user_id,
            if_match=order.if_match,
            if_none_match=order.if_none_match,
        )

    async def _put_on_disk(self, version: Version) -> None:
        """Project what is committed to the file on disk, if it has a place there."""
        path = self.disk or ""
        async with self.files.disk.held(self.name.space, path, self.files.settings.lock_timeout) as target:
            # Again, now that no other process writes there: what this attempt knows may be old.
            state = await self.records.read(self.name)
            if state is None or state.current is None or state.disk != path:
                return
            current = state.current
            if current.seq != version.seq and target.digest() == current.sha256:
                return
            await target.write(self.files.blobs.open(current.sha256), current.sha256)

    async def _let_go(self) -> None:
        seq, token = self.order.seq, self._ctx.token
        await self.records.change(self.name, lambda state: (withdraw(state, seq, token), None))

    def _result(self, version: Version, superseded: int | None = None) -> Result:
        result = Result(
            success=superseded is None,
            projectId=self.name.space.project,
            fileId=self.name.file,
            hash=version.sha256,
            lastModified=str(version.at),
        )
        if superseded is not None:
            result["superseded"] = superseded
        return result


def _without(state: State, seq: int, token: int) -> tuple[State, State]:
    left = withdraw(state, seq, token)
    return left, left
