"""Origins: which pages may ask with the credentials that a browser adds by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.web.access.authenticating import bearer_of
from windlass.web.access.hosts import Host, host_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import HTTPConnection

ANY = "*"
EXPECTED = "origins such as https://shop.example.com, or * for any, without cookies"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Origins:
    """The pages of other hosts that may read answers (CORS): none, unless some are named."""

    named: frozenset[str] = frozenset()
    any: bool = False
    """every page, but never with a user's cookies"""

    @staticmethod
    def of(texts: Iterable[str], of: str = "origins") -> Origins:
        """From origins as text."""
        given = list(texts)
        return Origins(frozenset(_origin(one, of) for one in given if one != ANY), any=ANY in given)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return self.any or bool(self.named)

    def cors(self) -> dict[str, Any]:
        """What browsers are told about them. Cookies are for those only that have a name."""
        return {
            "allow_origins": [ANY] if self.any else sorted(self.named),
            "allow_credentials": not self.any,
            "allow_methods": ["GET", "POST", "PUT", "PATCH", "DELETE"],
            "allow_headers": ["Authorization", "Content-Type", "Idempotency-Key", "If-None-Match", "Last-Event-ID"],
            "expose_headers": ["ETag", "Location", "Retry-After", "X-Request-Id"],
        }


def is_forged(request: HTTPConnection, origins: Origins) -> bool:
    """Whether a page of somebody else may have had a browser send this, with credentials that it did not know.

    Only what changes something, or opens a channel, can do harm. A key or token in a header was put there by who knows
    it. Browsers say where a request comes from; one that does not, and sends a cookie, is not believed.
    """
    if request.scope["type"] == "http" and request.scope["method"] in _SAFE:
        return False
    if bearer_of(request) is not None:
        return False
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if origin is not None and not origins.any and origin in origins.named:
        return False
    if site is not None:
        return site not in ("same-origin", "none")
    if origin is not None:
        return not _is_own(origin, request.headers.get("host", ""))
    return "cookie" in request.headers


def _is_own(origin: str, host: str) -> bool:
    try:
        scheme, place = urlsplit(origin).scheme, urlsplit(origin).netloc
    except ValueError:
        return False
    asked, own = host_of(place), host_of(host)
    usual = _PORTS.get(scheme)
    return None not in (asked, own, usual) and _with_port(asked, usual) == _with_port(own, usual)


def _with_port(host: Host | None, usual: int | None) -> tuple[str, int | None] | None:
    return None if host is None else (host.name, host.port or usual)


def _origin(text: str, of: str) -> str:
    try:
        parts = urlsplit(text)
        fits = (
            parts.scheme in _PORTS and host_of(parts.netloc) is not None and text == f"{parts.scheme}://{parts.netloc}"
        )
    except ValueError:
        fits = False
    if not fits or text != text.lower():
        raise SettingsError(f"{of} has {shown(text)}: expected {EXPECTED}")
    return text
