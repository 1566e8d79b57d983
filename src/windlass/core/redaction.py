"""Redaction: what a text is without the passwords and tokens that errors and addresses bring along.

Texts are redacted where they are about to be kept or shown: errors before a store has them, lines before a log does.
What is a secret by its type is never in a text to begin with: see `secret` and `sealing`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MASK = "***"
"""what stands in the place of a secret"""
_LEAST = 4
"""characters of a text that is looked for in others: a shorter one is in every second word"""
_WORD = (
    r"(?:[\w-]*(?:password|passwd|passphrase|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential)s?"
    r"|(?:proxy[-_]?)?authorization|(?:set[-_]?)?cookie|[\w-]*dsn|pwd)"
)
_CALLED = re.compile(_WORD, re.IGNORECASE)
_SCHEME = r"(\b[a-z][a-z0-9+.-]{1,30}://)"
# A password may have a slash or an @ in it that should have been escaped, but what looks like a port ends a host.
_USER_INFO = re.compile(
    rf"{_SCHEME}(?:[^\s/?#'\"<>:@]*:(?!\d*(?:[/?#,\s]|$))[^\s'\"<>]*@|[^\s/?#'\"<>@]*@)", re.IGNORECASE
)
_HEADER = re.compile(r"\b(authorization['\"]?\s*[:=]\s*['\"]?)(?:[a-z][\w-]*\s+)?[^\s'\",;}\])]+", re.IGNORECASE)
_BEARER = re.compile(r"\b(bearer|basic)(\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
_NAMED = re.compile(
    rf"(?<![\w-])(?<!unexpected )({_WORD}['\"]?\s*(?:=>|[:=])\s*)"
    r"(?:b?\"(?:[^\"\\]|\\.){0,4000}\"|b?'(?:[^'\\]|\\.){0,4000}'|(?![\[{(])[^\s'\",;&}\])]+)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"input_value=.{0,4000}?(?=, input_type=)", re.DOTALL)


def redact_url(url: str) -> str:
    """An address without its user and password, fit for logs and screens."""
    scheme, found, rest = url.partition("://")
    if not found:
        return url.rsplit("@", maxsplit=1)[-1]
    return f"{scheme}://{rest.rpartition('@')[2]}"


def why_not(url: str, error: Exception) -> str:
    """Why a driver cannot use an address, without quoting what it took for a host and is a part of a password."""
    user = url.partition("://")[2].rpartition("@")[0]
    if any(mark in user for mark in "/?#[]@"):
        return "its user or password has one of / ? # [ ] @ in it: write them as %2F %3F %23 %5B %5D %40"
    return redact(without(str(error), user.split(":")))[:200]


def redact(text: str) -> str:
    """The text with `***` for users and passwords in URLs and DSNs, and for the values of what is called a secret.

    That is what follows a name like password, token, secret, authorization, cookie, api_key or dsn, in the forms of
    assignments, headers, JSON and query strings.
    """
    if "://" in text:
        text = _USER_INFO.sub(rf"\1{MASK}@", text)
    if not ("=" in text or ":" in text or " " in text):
        return text
    text = _HEADER.sub(rf"\1{MASK}", text)
    text = _BEARER.sub(rf"\1\2{MASK}", text)
    return _NAMED.sub(rf"\1{MASK}", text)


def is_called_secret(name: str) -> bool:
    """Whether what has this name is a secret by it: `password`, `api_key` and their like."""
    return _CALLED.fullmatch(name) is not None


def without(text: str, secrets: Iterable[str]) -> str:
    """The text without these very secrets, as they are and as they are written inside quotes.

    What pydantic quotes of a value that it refuses is left out as a whole: it is cut in the middle where it is long.
    """
    text = _QUOTED.sub(f"input_value={MASK}", text)
    forms = {form for secret in secrets for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):  # a secret may be a part of another
        text = text.replace(form, MASK)
    return text


def _forms(secret: str) -> Iterable[str]:
    if len(secret) < _LEAST:
        return ()
    escaped = secret.encode("unicode_escape").decode()
    return (secret, repr(secret)[1:-1], escaped, escaped.replace('"', '\\"'))
