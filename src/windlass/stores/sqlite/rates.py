"""Rates: how much of a window is spent, what a claim books there, and when there is room again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.blocked import BlockedBy, Kind
from windlass.core.rate import booked_at

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

SPENT = "SELECT coalesce(sum(n), 0) FROM windlass_rates WHERE key = ? AND at > ?"
IN_LINE = "SELECT count(*) FROM (SELECT 1 FROM windlass_jobs WHERE status = 'blocked' AND blocked_by = ? LIMIT ?)"
BOOK = "INSERT INTO windlass_rates (key, at, n) VALUES (?, ?, ?) ON CONFLICT (key, at) DO UPDATE SET n = n + excluded.n"
FORGET = "DELETE FROM windlass_rates WHERE key = ? AND at <= ?"
FORGET_ALL = "DELETE FROM windlass_rates WHERE at <= ?"


OLDEST = "SELECT min(at) FROM windlass_rates WHERE key = ? AND at > ?"
CALL = "INSERT INTO windlass_calls (key, at) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET at = excluded.at"
DISMISS = "DELETE FROM windlass_calls WHERE key = ?"
_SOON = 1000  # milliseconds: those who were called have not started, so nothing is booked that could tell


def call(db: sqlite3.Connection, sql: Callable[[str], str], key: str, per: int, now: int) -> None:
    """Write down when to look at this line next: when the oldest that counts no longer does."""
    oldest: int | None = db.execute(sql(OLDEST), (key, now - per)).fetchone()[0]
    db.execute(sql(CALL), (key, now + min(per, _SOON) if oldest is None else oldest + per))


class Rates:
    """The rates that one claim meets."""

    def __init__(self, db: sqlite3.Connection, sql: Callable[[str], str], now: int) -> None:
        self._db, self._sql, self._now = db, sql, now
        self._spent: dict[str, int] = {}
        self._in_line: dict[str, int] = {}
        self._booked: dict[tuple[str, int], int] = {}
        self._to_call: dict[str, int] = {}

    def look(self, key: str, n: int, per: int) -> tuple[int, int]:
        """How many starts count now, and how many are blocked by this rate: no more than matter."""
        if key not in self._spent:
            self._spent[key] = self._db.execute(self._sql(SPENT), (key, self._now - per)).fetchone()[0]
            line = (BlockedBy(Kind.RATE, key).text, n)
            self._in_line[key] = self._db.execute(self._sql(IN_LINE), line).fetchone()[0]
        return self._spent[key], self._in_line[key]

    def start(self, key: str, per: int) -> None:
        """One more was let through."""
        self._spent[key] += 1
        booking = (key, per)
        self._booked[booking] = self._booked.get(booking, 0) + 1

    def put_aside(self, key: str, per: int) -> None:
        """One more was put into the line."""
        self._in_line[key] += 1
        self._to_call[key] = per

    def book(self) -> None:
        """Write down what was let through, and when to call those that were not."""
        for (key, per), n in self._booked.items():
            self._db.execute(self._sql(FORGET), (key, self._now - per))
            self._db.execute(self._sql(BOOK), (key, booked_at(self._now, per), n))
            if self._in_line[key]:
                self._to_call[key] = per
        for key, per in self._to_call.items():
            call(self._db, self._sql, key, per, self._now)


def room(db: sqlite3.Connection, sql: Callable[[str], str], key: str, n: int, per: int, now: int) -> int:
    """How many more may start now."""
    return n - int(db.execute(sql(SPENT), (key, now - per)).fetchone()[0])
