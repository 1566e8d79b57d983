"""Keeping what was sent: private, under names of ours, until it is of no more use."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
import uuid
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from windlass.apps.uploads.names import Accepted

_TOKEN = re.compile(r"[0-9a-f]{32}")
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


class Uploads:
    """Files that were sent. Each has a name of ours; what its sender calls it is only a label."""

    def __init__(self, path: Path, accepted: Accepted) -> None:
        self._path = path
        self.accepted = accepted

    async def take(self, parts: AsyncIterator[bytes], *, owner: str, filename: str, largest: int) -> Sent:
        """Keep what comes, counted while it does; TooLarge leaves nothing behind."""
        name = self.accepted.check_name(filename)
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
