"""Plain files on disk: where a diskPath may lead, and how a version is put there.

The file on disk is a projection of the record: its writer holds its lock, reads the record again, and puts there only
what is committed then. flock covers one host: across hosts the record decides, and a folder that several mount may lag.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
from typing import TYPE_CHECKING
from urllib.parse import quote

from windlass import WindlassError
from windlass.apps.blobs.blobs import NoSpace

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator
    from pathlib import Path

    from windlass.apps.files.names import Space

_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_OWN = ".windlass"
"""what our own files begin with: locks, and files that are being written"""
_LONGEST, _LONGEST_PART, _DEEPEST = 1000, 255 - 40, 32
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_PIECE = 1024 * 1024
_LOOK_AGAIN = 0.05
"""seconds"""


class PathRefused(WindlassError):
    """A diskPath breaks a rule, which the message names."""

    def __init__(self, rule: str) -> None:
        super().__init__(f"diskPath: {rule}")


class PathHeld(WindlassError):
    """Another process writes that file, and has for as long as is waited."""

    def __init__(self) -> None:
        super().__init__("another process holds the file on disk: it may be stopped")


class DiskDamaged(WindlassError):
    """What is read back is not what was written."""

    def __init__(self) -> None:
        super().__init__("what is read back from disk is not what was written: look at the disk")


def parts_of(path: str) -> tuple[str, ...]:
    """The names that a diskPath is made of; PathRefused names the rule that it breaks."""
    if not path or len(path) > _LONGEST:
        raise PathRefused(f"expected 1 to {_LONGEST} characters")
    if "\0" in path or not path.isprintable():
        raise PathRefused("control characters, NUL among them, are not taken")
    if path.startswith("/") or re.match("[A-Za-z]:", path):
        raise PathRefused("an absolute path is not taken: it begins in the project's folder")
    if "\\" in path or ":" in path:
        raise PathRefused("\\ and : are not taken: / separates folders")
    parts = tuple(path.split("/"))
    for part in parts:
        _check_part(part)
    if len(parts) > _DEEPEST:
        raise PathRefused(f"at most {_DEEPEST} folders may lie in one another")
    return parts


def _check_part(part: str) -> None:
    if part == "..":
        raise PathRefused(".. would leave the project's folder")
    if part in ("", "."):
        raise PathRefused("empty names and . are not taken")
    if len(part.encode()) > _LONGEST_PART:
        raise PathRefused(f"a name has at most {_LONGEST_PART} bytes")
    if _RESERVED.fullmatch(part):
        raise PathRefused(f"{part} is a reserved name: it is a device on some systems")
    if part != part.strip() or part.endswith("."):
        raise PathRefused("names neither begin nor end with a space, nor end with a dot")
    if part.startswith(_OWN):
        raise PathRefused(f"names that begin with {_OWN} are windlass's own")


def _folder_of(space: Space) -> list[str]:
    """The names of a project's folder below the root. No project of nobody is called as an owner's folder is."""
    if space.owner:
        return [f"@{_plain(space.owner)}", _plain(space.project)]
    return [_plain(space.project).replace("@", "%40")]


def _plain(name: str) -> str:
    kept = quote(name, safe="@ +,;=()[]{}!'~&")
    return kept.replace(".", "%2E", 1) if kept.startswith(".") else kept


class Disk:
    """The folders of all projects."""

    def __init__(self, root: Path | None) -> None:
        self._root = root

    def check(self, space: Space, path: str) -> str:
        """A path that a version can be put at, as it is then kept; PathRefused says what it breaks."""
        if self._root is None:
            raise PathRefused("no folder is configured for files on disk: set WINDLASS_FILES_ROOT")
        parts = parts_of(path)
        with contextlib.suppress(FileNotFoundError), _refusing(), self._walked(space, parts[:-1], make=False) as folder:
            _check_target(folder, parts[-1])
        return "/".join(parts)

    @contextlib.asynccontextmanager
    async def held(self, space: Space, path: str, patience: float) -> AsyncGenerator[Target]:
        """The place of a file, locked; PathHeld if another process holds it for longer than is waited."""
        parts = parts_of(path)
        key = hashlib.sha256("/".join(parts).encode()).hexdigest()[:32]
        with contextlib.ExitStack() as opened:
            with _refusing():
                folder = opened.enter_context(self._walked(space, parts[:-1], make=True))
                locks = opened.enter_context(self._walked(space, (f"{_OWN}-locks",), make=True))
                lock = os.open(key, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=locks)
                opened.callback(os.close, lock)
            await _locked(lock, patience)
            yield Target(folder, parts[-1], f"{_OWN}-{key}")

    @contextlib.contextmanager
    def _walked(self, space: Space, parts: tuple[str, ...], *, make: bool) -> Generator[int]:
        """A folder below the project's, opened name by name: no link is followed, so none leads out."""
        if self._root is None:
            raise PathRefused("no folder is configured for files on disk: set WINDLASS_FILES_ROOT")
        if make:
            self._root.mkdir(parents=True, exist_ok=True)
        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in (*_folder_of(space), *parts):
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=folder)
                        os.fsync(folder)
                below = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)


class Target:
    """A place of a file on disk, while it is locked."""

    def __init__(self, folder: int, name: str, temporary: str) -> None:
        self._folder, self._name, self._temporary = folder, name, temporary

    async def write(self, pieces: AsyncIterator[bytes], sha256: str) -> None:
        """Put content there: whole, or not at all; read back and compared."""
        with _told():
            _check_target(self._folder, self._name)
            # What a killed writer has left; only who holds the lock writes it.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._temporary, dir_fd=self._folder)
            how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            file = os.open(self._temporary, how, 0o644, dir_fd=self._folder)
        try:
            async for piece in pieces:
                await asyncio.to_thread(_write, file, piece)
            await asyncio.to_thread(self._put, file, sha256)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._folder)
            raise
        finally:
            os.close(file)

    def _put(self, file: int, sha256: str) -> None:
        with _told():
            os.fsync(file)
            os.rename(self._temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            os.fsync(self._folder)
        if self.digest() != sha256:
            raise DiskDamaged

    def digest(self) -> str | None:
        """SHA-256 of what is there; None where nothing is."""
        with _told():
            try:
                file = os.open(self._name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self._folder)
            except FileNotFoundError:
                return None
            try:
                seen, start = hashlib.sha256(), 0
                while piece := os.pread(file, _PIECE, start):
                    seen.update(piece)
                    start += len(piece)
            finally:
                os.close(file)
        return seen.hexdigest()


async def _locked(lock: int, patience: float) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + patience
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if loop.time() >= until:
                raise PathHeld from None
            # Only a writer whose lease was lost holds it beside us: this is waited for once in a long while.
            await asyncio.sleep(_LOOK_AGAIN)
        else:
            return


def _check_target(folder: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            raise PathRefused(f"{name} is a symbolic link, which is not followed")
        if not stat.S_ISREG(mode):
            raise PathRefused(f"{name} is no regular file: a folder or a device is not written")


def _write(file: int, content: bytes) -> None:
    rest = memoryview(content)
    with _told():
        while rest:
            rest = rest[os.write(file, rest) :]


@contextlib.contextmanager
def _refusing() -> Generator[None]:
    """What opening a folder says, as the rule that is broken."""
    try:
        with _told():
            yield
    except NotADirectoryError:
        raise PathRefused("one of the folders is a symbolic link, which is not followed, or no folder") from None


@contextlib.contextmanager
def _told() -> Generator[None]:
    """The disk's errors in our words."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace from error
        if error.errno == errno.ELOOP:
            raise PathRefused("one of the folders is a symbolic link, which is not followed") from None
        raise WindlassError(f"the file cannot be put on disk: {error.strerror}") from error
