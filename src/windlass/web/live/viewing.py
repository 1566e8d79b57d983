"""What is asked for a view, in the words of a list."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import Field

from windlass.client.searching import Search
from windlass.core.draft import check_id
from windlass.core.errors import SettingsError
from windlass.core.status import Status
from windlass.web.given import Fingerprint, Key, Moment, Name, Sought
from windlass.web.live.one_view import View

MOST_ROWS = 100


class LiveWanted(Sought):
    """Which jobs a view shows."""

    status: list[Status] | None = None
    type: Name | None = None
    queue: Key | None = None
    user_id: Key | None = None
    entity_name: Key | None = None
    entity_id: Key | None = None
    correlation_id: Key | None = None
    parent_id: Key | None = None
    schedule: Key | None = None
    unique_key: Key | None = None
    tag: list[Name] | None = None
    fingerprint: Fingerprint | None = None
    created_since: Moment | None = None
    created_before: Moment | None = None
    id: Annotated[list[str] | None, Field(max_length=MOST_ROWS)] = None
    """these jobs instead of a filter; one that is not there, or not yours, is left out"""
    limit: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 50

    def view(self) -> View:
        """The view that is meant."""
        words = {"tag": "tags"}
        given = {name: getattr(self, name) for name in type(self).model_fields if name not in {"id", "limit"}}
        search: dict[str, Any] = {words.get(name, name): value for name, value in given.items() if value is not None}
        if self.id is not None and search:
            raise SettingsError("id names jobs, and a filter was given besides: give one of them")
        if self.id == []:
            raise SettingsError("id is empty: leave it out, or name jobs by it")
        return View.of(cast("Search", search), [check_id(one) for one in self.id or ()], self.limit)
