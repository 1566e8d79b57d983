"""What may be sent: a file's name and media type, and what its content begins with."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from windlass import SettingsError

_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The files that one application takes."""

    begins: Mapping[str, tuple[bytes, ...]]
    """by extension, in lower case with its point, what the content begins with; nothing: it may be anything"""
    media: frozenset[str]
    """the media types under which they come"""
    what: str
    """in words: a spreadsheet"""

    def check_name(self, name: str) -> str:
        """A file's name without any path; SettingsError says what is wrong with it."""
        if not name or len(name) > _LONGEST_NAME:
            raise SettingsError(f"a file's name has 1 to {_LONGEST_NAME} characters")
        if name != os.path.basename(name) or ".." in name or "\\" in name or "/" in name or ":" in name:  # noqa: PTH119  # text alone
            raise SettingsError("a file's name has no path in it: give the name alone")
        if not name.isprintable() or name.startswith(".") or name != name.strip() or _RESERVED.fullmatch(name):
            raise SettingsError("a file's name has characters that none may have")
        if self.suffix(name) is None:
            raise SettingsError(f"only {', '.join(self.begins)} can be taken")
        return name

    def suffix(self, name: str) -> str | None:
        """Which of the extensions a name has."""
        return next((one for one in self.begins if name.lower().endswith(one)), None)

    def fits(self, name: str, start: bytes) -> bool:
        """Whether content that begins so can be what the name says."""
        marks = self.begins.get(self.suffix(name) or "", ())
        return not marks or start.startswith(marks)
