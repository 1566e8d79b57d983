"""Expiring: what no worker has taken in time is cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from windlass.core.admission import EXPIRED
from windlass.stores.contract import Action, Operated, Order
from windlass.stores.postgres.connection import carry
from windlass.stores.postgres.operating import carrying_out
from windlass.stores.postgres.records import CLOCK

if TYPE_CHECKING:
    from windlass.stores.contract import Notice
    from windlass.stores.postgres.connection import Ask, Link

EXPIRES = "expires_at IS NOT NULL AND lease_token = 0 AND finished_at IS NULL"
"""Whether a job will expire unless a worker takes it."""
# Rows that somebody is at are passed over: it may be a worker that takes one just in time.
OVER = f"""
WITH {CLOCK}
SELECT id FROM windlass_jobs WHERE {EXPIRES} AND expires_at <= (SELECT now FROM clock)
ORDER BY expires_at LIMIT $1::int FOR UPDATE SKIP LOCKED
"""  # noqa: S608  # made of constants


class Expired(NamedTuple):
    """What was cancelled, the queues of those that had waited for it and go on, and what is to be told of both."""

    ids: tuple[str, ...]
    freed: list[str]
    notices: list[Notice]


NOTHING = Expired((), [], [])


async def expire(link: Link, n: int) -> Expired:
    """Cancel at most `n` jobs whose time to begin is over."""
    return await link.transaction(lambda ask: _expire(link, ask, n))


async def _expire(link: Link, ask: Ask, n: int) -> Expired:
    """The expiry is read under a row lock that is held until the change is made."""
    ids = [id_ for (id_,) in await ask(OVER, n)]
    if not ids:
        return NOTHING
    orders = [Order(id=id_, action=Action.CANCEL, actor="windlass", reason=EXPIRED) for id_ in ids]
    carried = await carry(ask, carrying_out(link, orders))
    done = zip(ids, carried.answers, strict=True)
    return Expired(
        tuple(id_ for id_, answer in done if answer.verdict is Operated.DONE), carried.queued, carried.notices
    )
