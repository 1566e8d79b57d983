"""What is asked for a view, in the words of a list."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, cast

from pydantic import Field

from windlass.client.searching import Search
from windlass.core.draft import check_id
from windlass.core.errors import SettingsError
from windlass.web.live.one_view import View
from windlass.web.shapes import Asked

MOST_ROWS = 100


class LiveWanted(Asked):
    """Which jobs a view shows."""

    status: list[str] | None = None
    type: str | None = None
    queue: str | None = None
    user_id: str | None = None
    entity_name: str | None = None
    entity_id: str | None = None
    correlation_id: str | None = None
    parent_id: str | None = None
    schedule: str | None = None
    unique_key: str | None = None
    tag: list[str] | None = None
    fingerprint: str | None = None
    created_since: datetime | None = None
    created_before: datetime | None = None
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
