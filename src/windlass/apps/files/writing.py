"""One attempt at one write: wait for earlier ones, store the content, commit it, put it on disk."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
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
    Waiting,
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
_SOON, _LONGEST = 0.5, 5.0
"""seconds until a write looks again whether those before it have ended, and for which it waits to be told that"""
_HELD = 1.0
"""seconds for which a write is put off whose file on disk is held"""
ENDED = (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)
_LOG = logging.getLogger("windlass.files")


class Writing:
    """One attempt."""

    def __init__(self, files: Files, records: Records, ctx: Ctx, name: Name, order: Order) -> None:
        self.files, self._ctx = files, ctx
        self.records, self.name, self.order = records, name, order
        self.state = State()
        """of the file, as this attempt saw it last"""

    async def carry_out(self) -> Result:
        """Do it. What can never succeed is rejected, and every end makes room for the writes behind it."""
        seq, name = self.order.seq, self.name.text
        try:
            version = await self.begun() or await self.committed()
            await self._tell_next()
            if self.state.disk:
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
        if done is None:
            while earlier := before(state, seq):
                ended = await self._waits_for(earlier)
                if ended is None:
                    break
                state = await self.records.change(self.name, partial(_without, seq=earlier[0].seq, token=ended))
        self.state = state
        return done

    async def _waits_for(self, earlier: list[Waiting]) -> int | None:
        """Leave the worker until earlier writes have ended. The token of the first one's last attempt when that has
        ended without a word; None if it is waited for no longer.
        """
        now, first, last = time.time_ns() // 1_000_000, earlier[0], earlier[-1]
        job = await self.files.job_of(self.name, first.seq)
        if job is not None and job.status in ENDED:
            return job.lease_token
        if job is None and now - first.at > ARRIVING:
            return 0
        saved = self._ctx.saved
        if saved is None or saved["first"] != first.seq:
            await self._ctx.save({"first": first.seq, "since": now})
        elif now - saved["since"] > self.files.settings.patience * 1000:
            _LOG.warning("write %s of file %s goes before write %s", self.order.seq, self.name.text, first.seq)
            return None
        # The one right before this says when it has ended. It may die before it does, so this looks for itself, too.
        await self._ctx.wait(_word(last.seq), min(_LONGEST, self.files.settings.patience))
        raise Snooze(_SOON, f"waits for write {first.seq}, which was enqueued before")

    async def _tell_next(self) -> None:
        """Wake the write behind this one if it waits for it. While this one runs, that one does not."""
        behind = [one.seq for one in self.state.waiting if one.seq > self.order.seq]
        if not behind:
            return
        with suppress(WindlassError):  # then it looks for itself
            job = await self.files.job_of(self.name, behind[0])
            if job is not None and job.blocked_by == f"signal:{_word(self.order.seq)}":
                await self.files.app.jobs.signal(job.id, _word(self.order.seq), value=True)

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

        def work(state: State) -> tuple[State, tuple[State, Version]]:
            made, version = commit(state, write, at=at, keep=settings.versions)
            return made, (made, version)

        self.state, version = await self.records.change(self.name, work)
        return version

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
        path = self.state.disk or ""
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
        self.state = await self.records.change(self.name, partial(_without, seq=seq, token=token))
        await self._tell_next()

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


def _word(seq: int) -> str:
    """What a write is told when the one before it has ended."""
    return f"after {seq}"


def _without(state: State, seq: int, token: int) -> tuple[State, State]:
    left = withdraw(state, seq, token)
    return left, left
