"""Fingerprints: failures that are one and the same to a person get one and the same short word."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.core.job import Error

LENGTH = 12
_FORM = re.compile(rf"[0-9a-f]{{{LENGTH}}}")
# What differs between two failures, in this order: what is quoted may hold a path, a path a UUID, that a number.
_PLACES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<!\w)(?:'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`)(?!\w)"), "<text>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE), "<path>"),
    (re.compile(r"(?<![\w.])(?:[a-z]:|~|\.{1,2})?(?:[\\/][\w.@+~%-]+)+[\\/]?", re.IGNORECASE), "<path>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b(?=[a-f]*[0-9])[0-9a-f]{8,}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"[0-9]+(?:[.,:][0-9]+)*"), "<n>"),
    (re.compile(r"\s+"), " "),
)
_FRAME = re.compile(r'^[ |]*File "[^"\n]*", line [0-9]+, in (.+)$', re.MULTILINE)


def fingerprint(type_: str, error: Error | None) -> str:
    """The same for failures of one job type with one error type and message, raised in one function.

    Numbers, ids, quoted texts and paths in the message do not count. Line numbers do not either: a fingerprint outlives
    a change elsewhere in the file.
    """
    parts = [type_] if error is None else [type_, error.type, normalised(error.message), _function(error.traceback)]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


def normalised(message: str) -> str:
    """The message with a place in it for whatever differs between two failures of one kind."""
    for pattern, place in _PLACES:
        message = pattern.sub(place, message)
    return message.strip()


def is_fingerprint(value: object) -> bool:
    """Whether it looks like one."""
    return isinstance(value, str) and _FORM.fullmatch(value) is not None


def _function(traceback: str | None) -> str:
    frames = _FRAME.findall(traceback or "")
    return str(frames[-1]) if frames else ""
