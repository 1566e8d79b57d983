"""What goes wrong in the shop of the demo, a few calls deep, so that tracebacks differ as they do in life."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class CardDeclined(Exception):
    """The bank says no, and will say so again."""

    __module__ = "shop"


class StockOutOfSync(RuntimeError):
    """What is counted and what is there differ."""

    __module__ = "shop"


class MailServer:
    """One that is not always in the mood."""

    def __init__(self, host: str) -> None:
        self.host = host

    def send(self, to: str, subject: str) -> None:
        """Hang up, or be busy."""
        self._greet()
        self._recipient(to, subject)

    def _greet(self) -> None:
        if self.host.startswith("backup"):
            raise ConnectionRefusedError(f"[Errno 111] connect to {self.host}:25 was refused")

    def _recipient(self, to: str, subject: str) -> None:
        if not subject:
            raise ValueError("the subject is empty")
        raise TimeoutError(f"421 4.7.0 {self.host} is busy, try again later; message to {to.rpartition('@')[2]}")


def mail_busy() -> None:
    """The mail server asks to come back."""
    MailServer("smtp.example.com").send("somebody@example.com", "Your receipt")


def mail_away() -> None:
    """There is no mail server."""
    MailServer("backup.example.com").send("somebody@example.com", "Your receipt")


def declined() -> None:
    """The card is refused."""
    answer: Mapping[str, Any] = {"status": 402, "code": "insufficient_funds"}
    _judge(answer)


def _judge(answer: Mapping[str, Any]) -> None:
    if answer["status"] != 200:
        raise CardDeclined(f"the bank declined the card: {answer['code']}")


def garbled() -> None:
    """A service answers with what is no JSON."""
    try:
        json.loads('{"price": 12.50, "currency": ')
    except json.JSONDecodeError as error:
        raise RuntimeError("the price service gave an answer that cannot be read") from error


def no_picture() -> None:
    """A file is no picture."""
    _decode(b"GIF89a-truncated"[:6], known={"png": b"\x89PNG", "jpeg": b"\xff\xd8"})


def _decode(head: bytes, known: Mapping[str, bytes]) -> str:
    for name, magic in known.items():
        if head.startswith(magic):
            return name
    raise ValueError(f"the file is neither {' nor '.join(known)}: it begins with {head!r}")


def miscounted() -> None:
    """Two counts differ."""
    counted, expected = {"shelf": 12, "transit": 3}, 17
    if sum(counted.values()) != expected:
        raise StockOutOfSync(f"SKU 4711: {sum(counted.values())} counted, {expected} expected")


def missing_column() -> None:
    """A sheet lacks what is needed."""
    row = {"name": "Ada", "mail": "ada@example.com"}
    _country(row)


def _country(row: Mapping[str, str]) -> str:
    return row["country"].upper()


def raised_by(trouble: Callable[[], None]) -> Exception:
    """What it raises, with its traceback."""
    try:
        trouble()
    except Exception as error:  # noqa: BLE001  # whatever it is, it is what was asked for
        return error
    raise AssertionError(f"{trouble.__name__} raised nothing")
