"""One job: its state, the entries of its history and its end.

The number of an entry is the id of its event. The state has none: it comes before the entries that led to it, so that
who has seen an entry has seen the state, too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from windlass.core.errors import JobNotFound
from windlass.web.live.watching import Watch
from windlass.web.live.words import Word
from windlass.web.shapes import entry_shape, job_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.jobs import JobsRoom
    from windlass.core.job import Job


class JobWatch(Watch):
    """A job that somebody watches, as its user or operators see it."""

    def __init__(self, room: JobsRoom, job_id: str) -> None:
        super().__init__()
        self.id = job_id
        self._room = room
        self._job: Job | None = None
        self.text = ""
        self.revision = 0
        """counts the states that were seen"""
        self.entries: list[tuple[int, str]] = []
        self.status = ""
        self.finished = False

    def differs(self, job: Job | None) -> bool:
        """Whether the job is not as it was looked at; that its lease was prolonged is no change."""
        return job is None or self._job is None or _still(job) != _still(self._job)

    async def look(self) -> None:
        """Read it with its history, by the caller's own question."""
        try:
            looked = await self._room.look(self.id)
        except JobNotFound:
            if not self.seen:
                raise
            self.over = True
            self.tell()
            return
        inside = self._room.user is None
        text = job_shape(looked.job, inside=inside).model_dump_json(by_alias=True)
        known = self.entries[-1][0] if self.entries else 0
        fresh = [
            (entry.number, entry_shape(entry, inside=inside).model_dump_json(by_alias=True))
            for entry in looked.history
            if entry.number > known
        ]
        first = looked.history[0].number if looked.history else 0
        self.entries = [pair for pair in self.entries if pair[0] >= first] + fresh
        self._job, self.status, self.finished = looked.job, looked.job.status.value, looked.job.status.finished
        if text != self.text:
            self.text, self.revision = text, self.revision + 1
            self.tell()
        elif fresh:
            self.tell()

    def feed(self, after: str | None) -> JobFeed:
        """From the entry after the one that the client has; all of them where it has none, or one unknown here."""
        last = self.entries[-1][0] if self.entries else 0
        number = int(after) if after is not None and after.isascii() and after.isdigit() and len(after) < 10 else 0
        return JobFeed(self, number if number <= last else 0)


def _still(job: Job) -> Job:
    return job._replace(lease_expires_at=None)


class JobFeed:
    """One client's place in a job."""

    def __init__(self, watch: JobWatch, told: int) -> None:
        self._watch, self._told, self._revision = watch, told, 0
        self.over = False

    @property
    def complete(self) -> bool:
        """Whether the client had everything when it came: the job has ended, and it has the last entry."""
        watch = self._watch
        return watch.finished and bool(watch.entries) and watch.entries[-1][0] == self._told

    def words(self) -> Sequence[Word]:
        """The state if it is new, the entries that are new, and the end."""
        watch, said = self._watch, list[Word]()
        if watch.revision > self._revision:
            self._revision = watch.revision
            said.append(Word("job", watch.text))
        for number, text in watch.entries:
            if number > self._told:
                self._told = number
                said.append(Word("entry", text, str(number)))
        if watch.over or watch.finished:
            self.over = True
            end = {"jobId": watch.id, "status": None if watch.over else watch.status}
            said.append(Word("end", json.dumps(end), str(self._told)))
        return said
