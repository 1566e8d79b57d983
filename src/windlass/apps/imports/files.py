"""Files: those in the folder, by their names, and those that were sent, under names of ours."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from windlass import SettingsError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

_SUFFIXES = (".xlsx", ".ods", ".csv", ".tsv", ".txt")
_TOKEN = re.compile(r"[0-9a-f]{32}")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_LONGEST_NAME = 200
_PIECE = 1024 * 1024


class NotThere(Exception):
    """There is no such file, or it is somebody else's."""


class TooLarge(Exception):
    """More came than a file may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A file that was sent, and by whom."""

    token: str
    owner: str
    filename: str
    sha256: str
    size: int
    came_at: float
    """seconds since 1970, by the clock of the process that took it"""


def check_filename(name: str) -> str:
    """A file's name without any path; SettingsError says what is wrong with it."""
    if not name or len(name) > _LONGEST_NAME:
        raise SettingsError(f"a file's name has 1 to {_LONGEST_NAME} characters")
    if name != os.path.basename(name) or ".." in name or "\\" in name or "/" in name or ":" in name:  # noqa: PTH119  # text alone
        raise SettingsError("a file's name has no path in it: give the name alone")
    if not name.isprintable() or name.startswith(".") or name != name.strip() or _RESERVED.fullmatch(name):
        raise SettingsError("a file's name has characters that none may have")
    if not name.lower().endswith(_SUFFIXES):
        raise SettingsError(f"only {', '.join(_SUFFIXES)} can be imported")
    return name


class Folder:
    """Files that are there, by name. Nothing outside is opened, whatever links there are."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self, filename: str) -> BinaryIO:
        """The file, for reading."""
        name = check_filename(filename)
        try:
            folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise SettingsError(f"the folder of imports cannot be opened: {error.strerror}") from None
        try:
            found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except OSError:
            raise NotThere(f"there is no file {name!r} to be imported") from None
        finally:
            os.close(folder)
        file = os.fdopen(found, "rb")
        if not stat.S_ISREG(os.fstat(found).st_mode):
            file.close()
            raise NotThere(f"there is no file {name!r} to be imported")
        return file

    def names(self) -> list[str]:
        """What could be imported."""
        with contextlib.suppress(OSError):
            return sorted(
                one.name for one in self._path.iterdir() if one.name.lower().endswith(_SUFFIXES) and one.is_file()
            )
        return []


class Uploads:
    """Files that were sent. Each has a name of ours; what its sender calls it is only a label."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def take(self, parts: AsyncIterator[bytes], *, owner: str, filename: str, largest: int) -> Sent:
        """Keep what comes, counted while it does; TooLarge leaves nothing behind."""
        name = check_filename(filename)
        token, seen, size = uuid.uuid4().hex, hashlib.sha256(), 0
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = self._path / token
        try:
            with open(place, "xb", opener=_private) as file:  # noqa: ASYNC230  # a local disk, and private from its first moment
                async for part in parts:
                    size += len(part)
                    if size > largest:
                        raise TooLarge
                    seen.update(part)
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
            sent = Sent(
                token=token, owner=owner, filename=name, sha256=seen.hexdigest(), size=size, came_at=time.time()
            )
            with open(self._label(token), "x", encoding="utf-8", opener=_private) as label:  # noqa: ASYNC230  # the same
                json.dump(asdict(sent), label)
        except BaseException:
            self.remove(token)
            raise
        return sent

    def about(self, token: str) -> Sent:
        """What is known of a file; NotThere where there is none."""
        if not _TOKEN.fullmatch(token):
            raise NotThere("there is no such upload")
        try:
            return Sent(**json.loads(self._label(token).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            raise NotThere("the file that was sent is not there any more: send it again") from None

    def open(self, token: str) -> BinaryIO:
        """The file, for reading."""
        self.about(token)
        try:
            return (self._path / token).open("rb")
        except OSError:
            raise NotThere("the file that was sent is not there any more: send it again") from None

    def remove(self, token: str) -> None:
        """Remove a file, if it is there."""
        if _TOKEN.fullmatch(token):
            for path in (self._label(token), self._path / token):
                path.unlink(missing_ok=True)

    def older_than(self, seconds: float) -> Iterator[str]:
        """The files that came longer ago."""
        with contextlib.suppress(FileNotFoundError):
            for path in list(self._path.iterdir()):
                with contextlib.suppress(FileNotFoundError):
                    if _TOKEN.fullmatch(path.name) and path.stat().st_mtime < time.time() - seconds:
                        yield path.name

    def _label(self, token: str) -> Path:
        return self._path / f"{token}.json"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def digest(file: BinaryIO) -> str:
    """SHA-256 of a file, which is then at its beginning again."""
    seen = hashlib.sha256()
    while part := file.read(_PIECE):
        seen.update(part)
    file.seek(0)
    return seen.hexdigest()
