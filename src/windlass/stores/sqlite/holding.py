"""Hold a file, for trials: every writer waits, as for any long transaction of another process."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager

_PATIENCE = 30.0  # seconds that the holder of a file waits for it


class Hold:
    """The write lock of a file, taken and given back."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def begin(self) -> None:
        """Let nobody else write from now on."""
        self._db.execute("BEGIN IMMEDIATE")

    def end(self) -> None:
        """Let others write again; nothing was changed."""
        self._db.execute("ROLLBACK")


@contextmanager
def holding(path: str) -> Generator[Hold, None, None]:
    """A connection to the file that can hold it."""
    with closing(sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)) as db:
        yield Hold(db)
