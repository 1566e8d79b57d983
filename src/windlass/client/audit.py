"""`app.audit`: who did what to what, when and from where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.client.bulk import check_count
from windlass.core.errors import SettingsError
from windlass.core.keys import check_key, shown
from windlass.core.values import canonical
from windlass.stores.contract import AuditEntry, AuditFilter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from windlass.client.client import Client
    from windlass.stores.contract import AuditPage

LARGEST_DETAILS = 16 * 1024
"""bytes of JSON that one entry may say beside who, what and where"""
MOST_AT_ONCE = 1000


class AuditRoom:
    """What people and programs did. Entries are added, and go only by their age."""

    def __init__(self, client: Client, keep: timedelta) -> None:
        self._client, self._keep = client, keep

    async def record(
        self,
        actor: str,
        action: str,
        object_: str,
        *,
        origin: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> str:
        """Write down that `actor` did `action` to `object_`, stamped by the store; gives the entry's id.

        Say kinds before names, such as `queue.pause` and `queue:mail`. Details are plain JSON values of at most 16 KiB;
        never give secrets.
        """
        entry = AuditEntry(
            id=self._client.ids(),
            actor=check_key(actor, "the actor"),
            action=check_key(action, "the action"),
            object=check_key(object_, "the object"),
            origin=None if origin is None else check_key(origin, "the origin"),
            details_json=None if details is None else canonical(dict(details), "details", LARGEST_DETAILS),
        )
        await (await self._client.ready()).audit.append([entry], self._keep)
        return entry.id

    async def list(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        object_: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> AuditPage:
        """Entries that match all that is given, the newest first; give a page's `next` as `after` to go on.

        `since` is inclusive, `until` is not. A page may be short and still have a `next`.
        """
        check_count(limit, "limit")
        if limit > MOST_AT_ONCE:
            raise SettingsError(f"limit is {limit:,}: expected at most {MOST_AT_ONCE:,}, and after= for what follows")
        for of, instant in (("since", since), ("until", until)):
            if instant is not None and instant.utcoffset() is None:
                raise SettingsError(f"{of} is {shown(instant)}, without a zone: give an aware datetime")
        wanted = AuditFilter(actor=actor, action=action, object=object_, since=since, until=until)
        return await (await self._client.ready()).audit.list(wanted, limit, after)
