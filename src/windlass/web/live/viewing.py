"""What is asked for a view, in the words of a list."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from windlass.core.draft import check_id
from windlass.core.errors import SettingsError
from windlass.web.filtering import WhichInQuery
from windlass.web.live.one_view import View

MOST_ROWS = 100


class LiveWanted(WhichInQuery):
    """Which jobs a view shows."""

    id: Annotated[list[str] | None, Field(max_length=MOST_ROWS)] = None
    """these jobs instead of a filter; one that is not there, or not yours, is left out"""
    limit: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 50

    def view(self) -> View:
        """The view that is meant."""
        search = self.search()
        if self.id is not None and search:
            raise SettingsError("id names jobs, and a filter was given besides: give one of them")
        if self.id == []:
            raise SettingsError("id is empty: leave it out, or name jobs by it")
        return View.of(search, [check_id(one) for one in self.id or ()], self.limit)
