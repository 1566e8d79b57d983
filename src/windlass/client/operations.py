"""`app.operations`: orders for many jobs by a filter that run as jobs of their own, in a queue of their own.

The caller gets a job at once, with its progress and its result. Any worker of the application runs it, and so
does a process that serves the HTTP API. It goes on after a crash with the batch that was under way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from windlass.client.bulk import Bulk, begun, check_wanted
from windlass.client.carrying import OWN, Errand, carry_out
from windlass.client.dead_letters import check_rate
from windlass.client.searching import Search, filter_of, settled, with_line, words_of
from windlass.core.context import Ctx
from windlass.core.errors import QueueFull, SettingsError
from windlass.core.grants import ANYTHING
from windlass.core.handler import declare
from windlass.core.keys import check_key, shown
from windlass.core.retry import Retry
from windlass.core.status import LIVE, Status
from windlass.core.unique import Unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.client.audit import AuditRoom
    from windlass.client.client import Client
    from windlass.client.handle import Handle
    from windlass.client.jobs import JobsRoom
    from windlass.core.draft import Options
    from windlass.core.grants import Grants
    from windlass.core.handler import Declaration

TYPE = "windlass.bulk"
QUEUE = "windlass"
DEEDS = ("retry", "cancel", "delete", "replay")
MOST = 5
"""operations of one owner that are under way at a time"""
MOST_NAMED = 200
"""jobs that one operation is given by their ids"""


@dataclass(frozen=True, slots=True)
class Begun:
    """An operation that was begun: its job, and how many jobs matched then."""

    handle: Handle[dict[str, Any]]
    told: Bulk


class OperationsRoom:
    """Retry, cancel, delete or replay all jobs that match, in the background."""

    queue = QUEUE
    type = TYPE

    def __init__(self, client: Client, jobs: JobsRoom, declaration: Declaration) -> None:
        self._client, self._jobs, self._declaration = client, jobs, declaration

    def only(self, user: str) -> OperationsRoom:
        """The same for the jobs of one user: those of others are as if they were not there, for its operations, too."""
        return OperationsRoom(self._client, self._jobs.only(user), self._declaration)

    async def count(
        self,
        deed: str,
        *,
        ids: Sequence[str] | None = None,
        limit: int | None = None,
        everything: bool = False,
        grants: Grants = ANYTHING,
        **search: Any,
    ) -> Bulk:
        """How many an operation would be about; nothing is changed."""
        wanted = _wanted(deed, cast("Search", search), ids, limit, everything=everything)
        told = await (self._told(wanted, limit, grants) if ids is None else self._named(ids, grants))
        return replace(told, dry_run=True)

    async def begin(
        self,
        deed: str,
        *,
        actor: str = "operator",
        reason: str | None = None,
        ids: Sequence[str] | None = None,
        limit: int | None = None,
        rate: float | None = None,
        everything: bool = False,
        grants: Grants = ANYTHING,
        origin: str | None = None,
        request: str | None = None,
        job_id: str | None = None,
        **search: Any,
    ) -> Begun:
        """Begin to retry, cancel, delete or replay what matches now, newest first, at most `limit`.

        Its words are those of `app.jobs.find`; without any it needs `everything`, or the `ids` of at most 200 jobs. A
        replay is of failed jobs, at most `rate` by the second. Jobs that came or ended later are left alone, as are
        windlass's own, and those that `grants` do not cover. The result tells how many were `done`, `requested` to
        stop, `refused`, `duplicate` and `missing`. QueueFull when as many as may are under way for this user. Its end
        is in the audit list. Begun again under the same `job_id` it is the same one.
        """
        wanted = settled(_wanted(deed, cast("Search", search), ids, limit, everything=everything), datetime.now(UTC))
        told = await (self._told(wanted, limit, grants) if ids is None else self._named(ids, grants))
        errand = Errand(
            deed=deed,
            search=_kept_words(wanted),
            actor=check_key(actor, "the actor"),
            user=self._jobs.user,
            queues=None if grants.queues is None else sorted(grants.queues),
            types=None if grants.types is None else sorted(grants.types),
            of=told.of,
            limit=limit,
            rate=_rate(rate, deed),
            reason=reason,
            origin=origin,
            request=request,
            ids=None if ids is None else [*dict.fromkeys(ids)],
        )
        text = self._declaration.codec.encode_plain({"errand": asdict(errand)})
        for place in range(MOST):
            handle = await self._enqueue(text, place, job_id or self._client.ids())
            if handle.created:
                return Begun(handle, told)
        raise QueueFull(QUEUE, MOST)

    async def _told(self, wanted: Search, limit: int | None, grants: Grants) -> Bulk:
        """How many match but for windlass's own; not exact where a key is limited, whose others are left out later."""
        told = await begun(self._jobs, wanted, limit)
        told = replace(told, exact=told.exact and grants.queues is None and grants.types is None)
        if "type" in with_line(words_of(wanted)) or not told.of or told.of == limit:
            return told
        own = await self._jobs.count(**cast("Search", {**wanted, "type": f"{OWN}*"}))
        return replace(told, of=max(0, told.of - own.n))

    async def _named(self, ids: Sequence[str], grants: Grants) -> Bulk:
        """How many of these jobs it would be about."""
        found = await self._jobs.several([*dict.fromkeys(ids)])
        meant = [job for job in found if job is not None and not job.type.startswith(OWN)]
        return Bulk(of=sum(grants.allow(type_=job.type, queue=job.queue) for job in meant))

    async def under_way(self) -> bool:
        """Whether any has not ended yet."""
        return (await self._jobs.count(type=TYPE, status=LIVE)).n > 0

    async def _enqueue(self, text: str, place: int, job_id: str) -> Handle[Any]:
        user = self._jobs.user
        # One key for each that may be under way: so many and no more, however many ask at once.
        key = f"{TYPE}/{'*' if user is None else user}/{place}"
        options = replace(self._declaration.options, unique=Unique(key, key), user_id=user)
        draft = self._declaration.draft(job_id, text, options)
        return await self._client.enqueue_bare(draft, self._declaration.codec)


def declared(client: Client, audit: AuditRoom, defaults: Options) -> Declaration:
    """The handler of operations, as workers have it."""

    async def bulk(ctx: Ctx, errand: dict[str, Any]) -> dict[str, Any]:
        return await carry_out(client, audit, ctx, Errand(**errand))

    attempts = 20
    options = replace(defaults, queue=QUEUE, timeout=None, max_attempts=attempts, max_crashes=attempts)
    return declare(bulk, name=TYPE, options=options, policy=Retry(attempts))


def _wanted(deed: str, search: Search, ids: Sequence[str] | None, limit: int | None, *, everything: bool) -> Search:
    """The search of an operation, checked."""
    if deed not in DEEDS:
        raise SettingsError(f"{shown(deed)} cannot be done to many jobs: expected one of {', '.join(DEEDS)}")
    if ids is not None:
        if search or everything:
            raise SettingsError("ids name the jobs, and others were asked for besides: give one of them")
        if limit is not None:
            raise SettingsError("ids name the jobs, so there is nothing to limit: leave the limit out")
        if not 1 <= len(ids) <= MOST_NAMED:
            raise SettingsError(f"{len(ids)} ids were given: expected 1 to {MOST_NAMED:,}, or a filter")
        if deed == "replay":
            raise SettingsError("a replay is of failed jobs by a filter: retry those that are named by ids")
        return search
    check_wanted(search, everything=everything)
    words = cast("Search", words_of(search))
    if deed != "replay":
        return words
    if words.get("status", Status.FAILED) not in (Status.FAILED, [Status.FAILED]):
        raise SettingsError("a replay is of failed jobs: leave the status out")
    return {**words, "status": Status.FAILED}


def _kept_words(search: Search) -> dict[str, Any]:
    """A search as plain values: instants as text, several as lists."""
    words: dict[str, Any] = {}
    for word, value in filter(lambda pair: pair[0] != "status", search.items()):
        if isinstance(value, datetime):
            words[word] = value.isoformat()
        elif isinstance(value, Iterable) and not isinstance(value, str):
            words[word] = list(cast("Iterable[object]", value))
        else:
            words[word] = value
    statuses = filter_of(search)
    return words if statuses.status is None else {**words, "status": sorted(statuses.statuses)}


def _rate(rate: float | None, deed: str) -> float | None:
    check_rate(rate)
    if rate is not None and deed != "replay":
        raise SettingsError(f"rate goes with a replay: to {deed} does not make jobs that could come slower")
    return None if rate is None else float(rate)
