"""Keeping: what running jobs are to remember is written under their lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.stores.contract import Verdict
from windlass.stores.redis.settling import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.contract import Keep
    from windlass.stores.redis.connection import Link, Value

_AT_ONCE = 1000  # values in one script: others wait for as long as it runs


async def keep(link: Link, keeps: Sequence[Keep]) -> list[Verdict]:
    """Have running jobs remember values, one verdict each."""
    verdicts: list[Verdict] = []
    for first in range(0, len(keeps), _AT_ONCE):
        values: list[Value] = []
        for value in keeps[first : first + _AT_ONCE]:
            values += [value.lease.id, value.lease.token, value.name, value.json]
        verdicts += [VERDICTS[letter] for letter in (await link.run("remember", values)).decode()]
    return verdicts
