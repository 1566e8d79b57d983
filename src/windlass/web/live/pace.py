"""The pace and the bounds of live streams."""

from __future__ import annotations

from dataclasses import dataclass, fields

from windlass.core.errors import SettingsError

_COUNTS = ("per_caller", "per_process", "per_socket")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often streams look, and how many there may be. Give it to `app.asgi(live=…)`; times are in seconds."""

    gap: float = 0.25
    """between two looks at watched jobs, however many changes there are"""
    view_gap: float = 1.0
    """between two looks at one view, however many changes there are"""
    floor: float = 1.0
    """so often is looked without a notice, too: not every change is told of, and notices may be lost"""
    comment: float = 15.0
    """after so long of silence a comment is sent, so that nobody on the way takes the connection for dead"""
    reauthorise: float = 60.0
    """so often it is asked anew whether the caller still may"""
    slow: float = 10.0
    """a client that takes nothing for so long is dropped"""
    greeting: float = 5.0
    """so long a WebSocket may take to say who it is"""
    per_caller: int = 100
    """streams and WebSockets of one caller"""
    per_process: int = 2000
    """streams and WebSockets of all"""
    per_socket: int = 50
    """subscriptions on one WebSocket"""
    origins: frozenset[str] = frozenset()
    """web origins besides the server's own that may open a WebSocket, as https://shop.example"""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "origins" and not value > 0:
                raise SettingsError(f"{field.name} is {value!r}: expected a number above 0")
            if field.name in _COUNTS and not isinstance(value, int):
                raise SettingsError(f"{field.name} is {value!r}: expected a whole number")
        for origin in self.origins:
            scheme, found, host = origin.partition("://")
            if not found or scheme not in {"http", "https"} or not host or "/" in host:
                raise SettingsError(f"origins has {origin!r}: expected scheme and host, as https://shop.example")
