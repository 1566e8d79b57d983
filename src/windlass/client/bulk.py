"""Orders for many jobs by a filter: which are meant, batch by batch, and how far it has come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, cast

from windlass.client.operating import operate
from windlass.client.searching import filter_of, narrows, words_of
from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.stores.contract import Action, Order

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Sequence

    from windlass.client.client import Client
    from windlass.client.jobs import JobsRoom
    from windlass.client.searching import DeadSearch, Search
    from windlass.core.job import Job
    from windlass.core.status import Status
    from windlass.stores.contract import Answer

PAGE = 500
"""how many jobs are read, and how many orders are given, in one step"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """How far an order for many jobs has come, and in the end what became of it."""

    of: int
    """how many matched when it began"""
    exact: bool = True
    """false when there were more than were counted, or fewer will turn out to be meant"""
    done: int = 0
    requested: int = 0
    """running jobs whose worker was asked to stop them"""
    refused: int = 0
    """jobs that were left as they are, because their status did not allow it, or was another when their turn came"""
    duplicate: int = 0
    """jobs that were not queued again, because another holds their unique key"""
    missing: int = 0
    """jobs that were gone when their turn came"""
    dry_run: bool = False

    @property
    def met(self) -> int:
        """How many have had their turn."""
        return self.done + self.requested + self.refused + self.duplicate + self.missing


OnProgress: TypeAlias = Callable[[Bulk], None]
"""told after every batch how far it has come"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be done to all jobs that match, and who asked for it."""

    action: Action
    actor: str
    reason: str | None
    dry_run: bool
    limit: int | None
    progress: OnProgress | None


async def operate_all(client: Client, jobs: JobsRoom, search: Search, wish: Wish, *, everything: bool) -> Bulk:
    """Give the order to every job that matches when this begins, newest first, a batch at a time.

    Only the status that was searched for is meant: a job that has left it when its turn comes is left alone.
    """
    check_wanted(search, everything=everything)
    bulk = await begun(jobs, search, wish.limit, dry_run=wish.dry_run)
    if wish.dry_run:
        return bulk
    filter_ = filter_of(search)
    only = None if filter_.status is None else filter_.statuses
    async for batch in batches(client, jobs, search, wish.limit):
        answers = await operate(client, orders(batch, wish.action, wish.actor, wish.reason, only, jobs.user))
        bulk = answered(bulk, answers)
        if wish.progress is not None:
            wish.progress(bulk)
    return bulk


def orders(
    batch: Sequence[Job],
    action: Action,
    actor: str,
    reason: str | None,
    only: frozenset[Status] | None,
    user: str | None = None,
) -> list[Order]:
    """The same order for each of these."""
    return [Order(id=job.id, action=action, actor=actor, reason=reason, only=only, user=user) for job in batch]


async def begun(jobs: JobsRoom, search: Search, limit: int | None, *, dry_run: bool = False) -> Bulk:
    """How many match, before anything is done; no more than `limit` are meant."""
    found = await jobs.count(**search)
    if limit is not None and check_count(limit, "limit") <= found.n:
        return Bulk(of=limit, dry_run=dry_run)
    return Bulk(of=found.n, exact=found.exact, dry_run=dry_run)


async def batches(
    client: Client,
    jobs: JobsRoom,
    search: Search,
    limit: int | None = None,
    fits: Callable[[Job], bool] | None = None,
) -> AsyncGenerator[list[Job], None]:
    """Those that match and fit, at most `limit`, newest first, page by page: each job is met once.

    None that came after it began: their ids are later than the first page's, and where the clock of the program that
    made the id is behind, the store's clock tells.
    """
    left = None if limit is None else check_count(limit, "limit")
    began, after = await (await client.ready()).now(), None
    while left != 0:
        page = await jobs.find(limit=PAGE, after=after, **search)
        if after is None:
            # A clock that is known by its answers may be a moment behind what it has stamped.
            began = max([began, *(job.created_at for job in page.jobs)])
        batch = [job for job in page.jobs if job.created_at <= began and (fits is None or fits(job))][:left]
        if batch:
            yield batch
        left, after = None if left is None else left - len(batch), page.next
        if after is None:
            return


def check_wanted(search: Search | DeadSearch, known: Collection[str] | None = None, *, everything: bool) -> None:
    """Refuse an order for all that does not say so, and one with a word that narrows nothing down."""
    words = words_of(search) if known is None else words_of(search, known)
    if not narrows(words) and not everything:
        raise SettingsError(
            "no filter was given: say which jobs, for instance by type, queue or user, or everything=True"
        )


def check_count(value: int, of: str, least: int = 1) -> int:
    """A number of things; anything else is refused."""
    if isinstance(value, bool) or not isinstance(cast("object", value), int) or value < least:
        raise SettingsError(f"{of} is {shown(value)}: expected a whole number from {least}")
    return value


def answered(bulk: Bulk, answers: Sequence[Answer]) -> Bulk:
    """How far it has come with these."""
    tally = Counter(answer.verdict.value for answer in answers)
    return replace(bulk, **{name: getattr(bulk, name) + n for name, n in tally.items()})
