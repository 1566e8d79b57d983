"""Words: what a stream says, as events of a stream and as messages of a WebSocket."""

from __future__ import annotations

import json
import random
from typing import NamedTuple

MEDIA_TYPE = "text/event-stream"
COMMENT = b":\n\n"
_AGAIN = (1.0, 3.0)
"""seconds after which a client is to come again: by chance, so that not all come at once"""


class Word(NamedTuple):
    """One thing that is said."""

    event: str
    data: str
    """JSON on one line"""
    id: str | None = None
    """names what has been said with it: a client that comes again gives the last one it has"""

    def as_event(self) -> bytes:
        """As Server-Sent Events have it."""
        named = "" if self.id is None else f"id: {self.id}\n"
        return f"{named}event: {self.event}\ndata: {self.data}\n\n".encode()

    def as_message(self, of: str | None) -> str:
        """As one message of a WebSocket, about one of its subscriptions."""
        head = (
            {"type": self.event} | ({} if of is None else {"id": of}) | ({} if self.id is None else {"event": self.id})
        )
        return f'{json.dumps(head)[:-1]}, "data": {self.data}}}'


def again() -> int:
    """Milliseconds until a client should come again."""
    return round(random.uniform(*_AGAIN) * 1000)


def retry() -> bytes:
    """The hint when to come again, as Server-Sent Events have it."""
    return f"retry: {again()}\n\n".encode()


def via(how: str) -> Word:
    """How changes are found out."""
    return Word("via", json.dumps({"via": how}))


STOPPING = "stopping"
UNAUTHORISED = "unauthorised"
SLOW = "slow"
UNREADABLE = "unreadable"
TOO_LARGE = "too-large"
BROKEN = "internal"
_TEXTS = {
    STOPPING: "the server stops: come again, another or the next one goes on from where you are",
    UNAUTHORISED: "the caller may not read this any more, or could not be asked for: authenticate anew",
    SLOW: "you take what is sent too slowly: come again, the state is told anew",
    UNREADABLE: "a message is text, in JSON",
    TOO_LARGE: "the message is too large",
    BROKEN: "something went wrong here",
}


def closing(why: str) -> Word:
    """The last word of a stream that has not come to its end."""
    come = why in (STOPPING, SLOW, BROKEN)
    said = {"why": why, "text": _TEXTS[why], "again": come, "retryMs": again() if come else None}
    return Word("closing", json.dumps(said))
