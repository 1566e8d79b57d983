"""Names: whose file of which project, and what may be called so. Nothing of them is ever a path on disk."""

from __future__ import annotations

import re
from typing import NamedTuple

from windlass import SettingsError

LONGEST = 200
LONGEST_PROJECT = 100
PATTERN = r"^[^/\\:\s\x00-\x1f\x7f]([^/\\:\x00-\x1f\x7f]*[^/\\:\s\x00-\x1f\x7f])?$"
"""for the document; `checked` says what is wrong"""
_TAKEN = re.compile(r"[/\\:]")


class Space(NamedTuple):
    """A project of one owner. Two owners' projects have nothing in common, whatever they are called."""

    owner: str
    """empty where it is not one user's"""
    project: str

    @property
    def text(self) -> str:
        """As keys and tags have it."""
        return f"{self.owner}/{self.project}" if self.owner else self.project


class Name(NamedTuple):
    """One file."""

    space: Space
    file: str

    @property
    def text(self) -> str:
        """As keys and tags have it."""
        return f"{self.space.text}/{self.file}"

    @property
    def lock(self) -> str:
        """What at most one write holds at a time."""
        return f"lock:project:{self.space.text}:file:{self.file}"


def name_of(owner: str | None, project: str, file: str) -> Name:
    """A file by its names; SettingsError says what is wrong with them."""
    return Name(space_of(owner, project), checked(file, "fileId", LONGEST))


def space_of(owner: str | None, project: str) -> Space:
    """A project by its names."""
    return Space(owner or "", checked(project, "projectId", LONGEST_PROJECT))


def checked(name: str, of: str, longest: int) -> str:
    """A name that addresses and keys can hold."""
    if not 0 < len(name) <= longest or not name.isprintable() or name != name.strip():
        raise SettingsError(f"{of}: expected 1 to {longest} printable characters without spaces around them")
    if _TAKEN.search(name) or name in (".", ".."):
        raise SettingsError(f"{of}: there may be no /, \\ or : in it, and it is neither . nor ..")
    return name
