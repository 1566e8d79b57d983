"""Auditing: who did what to what, what it was before and after, from where and by which request; one line in a route.

An entry is written once its action has taken place. Where it cannot be written the action stands: an answer that it
failed would be untrue, and would have it done again. The entry then goes to the log, whole, as an error under
`windlass.audit`; and what becomes of a job is in the job's own history besides, written in the same step.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Annotated, Any, cast

from fastapi import Depends, Request

from windlass.core.errors import WindlassError
from windlass.web.access.addresses import address_of

if TYPE_CHECKING:
    from windlass.web.answers import Answers
    from windlass.web.callers import Caller

LOG = logging.getLogger("windlass.audit")


class Auditing:
    """Writes down what the caller of one request does. Payloads and secrets are never given to it."""

    def __init__(self, request: Request) -> None:
        self._request = request

    @property
    def origin(self) -> str | None:
        """Where the request came from, through trusted proxies only."""
        return address_of(self._request) or None

    @property
    def request_id(self) -> str:
        """By which the answer is found again."""
        return str(getattr(self._request.state, "request_id", ""))

    async def record(self, action: str, object_: str, *, before: Any = None, after: Any = None, **more: Any) -> None:
        """Write down that the caller did this; `before` and `after` where it changed something."""
        app = cast("Answers", self._request.app.state.windlass)
        caller = cast("Caller", self._request.state.caller)
        changed = {"before": before, "after": after}
        given = {**changed, **more, "requestId": self.request_id}
        details = {name: value for name, value in given.items() if value is not None}
        try:
            await app.audit.record(caller.name, action, object_, origin=self.origin, details=details)
        except WindlassError as error:
            entry = {"actor": caller.name, "action": action, "object": object_, "origin": self.origin, **details}
            LOG.critical("an audit entry could not be written (%s): %s", type(error).__name__, json.dumps(entry))


Audit = Annotated[Auditing, Depends(Auditing)]
