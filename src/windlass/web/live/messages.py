"""Messages: what a client may say on a WebSocket, read strictly."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, cast

from pydantic import Field, TypeAdapter, ValidationError

from windlass.core.draft import check_id
from windlass.core.errors import JobNotFound, SettingsError
from windlass.web.given import Asked
from windlass.web.live.hub import OneJob, Target
from windlass.web.live.viewing import LiveWanted
from windlass.web.mistakes import place_of_mistake

LARGEST = 64 * 1024
"""characters of a message"""
_MOST_TOLD = 3
_Name = Annotated[str, Field(min_length=1, max_length=100)]


class Authenticate(Asked):
    """Who the client is, where it could not be said in a header."""

    type: Literal["authenticate"]
    key: Annotated[str, Field(min_length=1, max_length=16 * 1024)]


class Subscribe(Asked):
    """Follow a job or a view; what is told of it bears the name that is given here."""

    type: Literal["subscribe"]
    id: _Name
    job: str | None = None
    view: LiveWanted | None = None
    after: Annotated[str, Field(max_length=100)] | int | None = None
    """the last event of it that the client has"""

    def target(self) -> Target:
        """What is meant."""
        if (self.job is None) == (self.view is None):
            raise SettingsError("a subscription names a job or has a view: give one of them")
        if self.view is not None:
            return self.view.view()
        try:
            return OneJob(check_id(self.job))
        except SettingsError:
            raise JobNotFound(str(self.job)[:80]) from None


class Unsubscribe(Asked):
    """Follow it no more."""

    type: Literal["unsubscribe"]
    id: _Name


class Ping(Asked):
    """Is anybody there."""

    type: Literal["ping"]


Message = Authenticate | Subscribe | Unsubscribe | Ping
_READER: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="type")])


def read(text: str) -> Message:
    """A message; SettingsError says what is wrong with it, without what was sent."""
    try:
        found: Any = json.loads(text)
        return _READER.validate_python(found)
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False)[:_MOST_TOLD]
        told = "; ".join(f"{place_of_mistake(one['loc'])}: {one['msg'][:300]}" for one in wrong)
        raise SettingsError(f"the message does not fit: {told}") from None
    except (ValueError, RecursionError):
        raise SettingsError("the message is no JSON: expected an object with a type") from None


def name_of(text: str) -> str | None:
    """The name in a message that could not be read, so that its error can be told with it."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    name: object = cast("dict[str, object]", found).get("id") if isinstance(found, dict) else None
    return name[:100] if isinstance(name, str) else None
