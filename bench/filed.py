"""One process of `bench.files`: `python -m bench.filed bare FOLDER FIRST N` or `… worker URL FOLDER`."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import time
from pathlib import Path

from windlass import Windlass
from windlass.apps.files.files import Files, install
from windlass.apps.files.settings import FilesSettings

PROJECTS = 50
CONTENT = b"export const answer = 42;\n" * 40
"""a kilobyte, with which the content of each file begins"""


def files_at(url: str, folder: Path) -> Files:
    """Files as they are without any setting."""
    return install(Windlass(url), FilesSettings(blobs=str(folder / "blobs")))


def bare(folder: Path, first: int, n: int) -> None:
    """Write so many files, each whole and durable, and look at what is there."""
    for number in range(PROJECTS):
        (folder / f"project{number}").mkdir(exist_ok=True)
    print("ready", flush=True)
    sys.stdin.readline()
    begun = time.time()
    for number in range(first, first + n):
        _write(folder / f"project{number % PROJECTS}", f"file{number // PROJECTS}.txt")
    print(begun, time.time())


def _write(folder: Path, name: str) -> None:
    content = CONTENT + f"{folder.name}/{name}".encode()
    temporary = folder / f".{name}.tmp"
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(file, content)
    os.fsync(file)
    os.close(file)
    temporary.rename(folder / name)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(opened)
    os.close(opened)
    assert hashlib.sha256((folder / name).read_bytes()).digest() == hashlib.sha256(content).digest()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["bare", folder, first, n]:
            bare(Path(folder), int(first), int(n))
        case ["worker", url, folder]:
            asyncio.run(files_at(url, Path(folder)).app.worker().run())
        case _:
            raise SystemExit(__doc__)
