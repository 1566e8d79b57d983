"""Drafts and wants in one line each."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import Any

from windlass.core.draft import Draft, Options, make_id
from windlass.core.handler import make_draft
from windlass.core.unique import Unique
from windlass.stores.contract import Want

LONG = timedelta(minutes=10)
"""a lease that outlives any test"""
INSTANT = timedelta(milliseconds=1)
"""a lease or delay that is over at once"""

_numbers = itertools.count(1)
_newest = 0


def new_id() -> str:
    """A later call's id sorts later, whatever the clock does: that is what "oldest first" is tested with."""
    global _newest  # noqa: PLW0603  # what the next one may not fall behind
    _newest = max(_newest, time.time_ns() // 1_000_000)
    return make_id(_newest, next(_numbers) << 32 | secrets.randbits(32))


def draft(
    type_: str = "noop",
    payload: str = "{}",
    *,
    id: str | None = None,
    unique: str | Unique | None = None,
    next_id: str | None = None,
    **options: Any,
) -> Draft:
    """A job about to be inserted, its keys resolved as a client resolves them."""
    made = make_draft(type_, id or new_id(), payload, Options(unique=Unique.of(unique), **options), templated=False)
    return made if next_id is None else made._replace(next_id=next_id)


def want(
    n: int = 10,
    worker: str = "w1",
    types: AbstractSet[str] = frozenset({"noop"}),
    lease: timedelta = LONG,
    queues: Mapping[str, int] | None = None,
) -> Want:
    return Want(worker_id=worker, n=n, lease=lease, queues=queues, types=frozenset(types))
