"""Many at once: jobs named by type, mixed with bound ones; written in one step, told one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast

from windlass.client.client import in_steps
from windlass.client.flows import Bound
from windlass.core.draft import check_id
from windlass.core.errors import WindlassError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from windlass.client.catalogue import Published
    from windlass.client.client import Client
    from windlass.client.handle import Handle
    from windlass.client.options import Asked
    from windlass.core.draft import Draft
    from windlass.core.payload import Codec

R = TypeVar("R")


class ByName(NamedTuple):
    """A job to be enqueued by the name of its type, with plain JSON values, as `app.enqueue` takes them."""

    type: str
    payload: Any = None
    options: Asked | None = None
    id: str | None = None
    """a UUIDv7 of your own: inserted twice under one id it is one job"""


Wanted: TypeAlias = "Bound[Any] | ByName | tuple[str, Any] | tuple[str, Any, Mapping[str, Any]]"
"""a bound job, or a name with its payload and options"""


async def make_all(client: Client, jobs: Sequence[Wanted]) -> list[tuple[Draft, Codec | None]]:
    """The drafts of these, in order."""
    return [_of_bound(client, one) if isinstance(one, Bound) else await _made(client, one) for one in jobs]


def make_now(client: Client, job: Wanted) -> tuple[Draft, Codec | None]:
    """The draft of one, from code without an event loop."""
    if isinstance(job, Bound):
        return _of_bound(client, job)
    named = job if isinstance(job, ByName) else ByName(*cast("tuple[str, Any]", job))
    published = None if named.type in client.registry else client.run_sync(client.published(named.type))
    return _of_name(client, named, published)


async def enqueue_each(
    client: Client, jobs: Iterable[Wanted], tx: object | None = None
) -> list[Handle[Any] | WindlassError]:
    """Enqueue each by itself, a thousand in one step; in the place of one that cannot be enqueued stands its error."""
    told: list[Handle[Any] | WindlassError] = []
    for some in in_steps(jobs):
        made: list[tuple[Draft, Codec | None] | WindlassError] = []
        for job in some:
            try:
                made.append(await _made(client, job))
            except WindlassError as error:
                made.append(error)
        good = [one for one in made if not isinstance(one, WindlassError)]
        found = iter(await client.insert_each(good, tx) if good else ())
        told += [one if isinstance(one, WindlassError) else next(found) for one in made]
    return told


async def _made(client: Client, job: Wanted) -> tuple[Draft, Codec | None]:
    if isinstance(job, Bound):
        return _of_bound(client, job)
    named = job if isinstance(job, ByName) else ByName(*cast("tuple[str, Any]", job))
    return _of_name(client, named, await client.published(named.type))


def _of_bound(client: Client, job: Bound[Any]) -> tuple[Draft, Codec | None]:
    declaration = client.registry.get(job.type)
    return client.draft(declaration, job.payload_json, job.options), declaration.codec


def _of_name(client: Client, named: ByName, published: Published | None) -> tuple[Draft, Codec | None]:
    draft, codec = client.draft_by_name(named.type, named.payload, named.options or {}, published)
    return (draft if named.id is None else draft._replace(id=check_id(named.id))), codec
