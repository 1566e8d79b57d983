"""The law of one file: what is committed, what waits, and which write may become the next version. Pure.

Each write has a sequence, given when it is enqueued, and `committed` moves only forward: neither a late writer nor the
retry of an old job can put older content over newer. Two attempts of the same job are told apart by their lease tokens.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from windlass import WindlassError

ANYTHING = "*"
_MOST_ENDED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A write that was enqueued and has not ended."""

    seq: int
    size: int
    at: int
    """milliseconds since 1970, by the clock of the process that enqueued it"""
    sha256: str
    token: int = 0
    """of the newest attempt that said that it had begun"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """Content that was committed."""

    seq: int
    sha256: str
    size: int
    at: int
    """milliseconds since 1970"""
    who: str | None
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What is true of one file."""

    issued: int = 0
    """the last sequence that was given"""
    committed: int = 0
    """the sequence of the current version"""
    disk: str | None = None
    """where its plain file is, below the project's folder"""
    waiting: tuple[Waiting, ...] = ()
    """in order"""
    ended: tuple[Waiting, ...] = ()
    """writes that ended without a version, though none came after them: an operator may have them tried again"""
    versions: tuple[Version, ...] = ()
    """those that are kept, the current one last"""

    @property
    def current(self) -> Version | None:
        """The current version."""
        return self.versions[-1] if self.versions else None

    @property
    def is_there(self) -> bool:
        """Whether it counts among its project's files."""
        return bool(self.versions or self.waiting)

    @property
    def bytes(self) -> int:
        """What it takes of its project's bytes."""
        return sum(one.size for one in self.versions) + sum(one.size for one in self.waiting)

    def version(self, seq: int) -> Version | None:
        """A version that is kept."""
        return next((one for one in self.versions if one.seq == seq), None)

    def waits(self, seq: int) -> Waiting | None:
        """A write that has not ended."""
        return next((one for one in self.waiting if one.seq == seq), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One attempt to make a version of a file."""

    seq: int
    token: int
    job: str
    sha256: str
    size: int
    who: str | None
    if_match: Sequence[str] = ()
    """hashes of which the current one must be, or `*` for any; empty where nothing is asked"""
    if_none_match: bool = False
    """the file must not be there yet"""


class Ended(WindlassError):
    """A write can no longer become a version."""


class Superseded(Ended):
    """A later write was committed before it."""

    def __init__(self, by: Version) -> None:
        super().__init__(f"superseded: version {by.seq} was written before it")
        self.by = by


class Overtaken(Ended):
    """A newer attempt of the same job has begun, or the job has ended."""

    def __init__(self) -> None:
        super().__init__("a newer attempt has begun, or the job has ended: nothing was written")


class Unmet(Ended):
    """The version that this write is based on is no longer the current one."""

    def __init__(self, found: str | None) -> None:
        told = "there is no such file" if found is None else f'the current version is "{found}"'
        super().__init__(f"412: the condition does not hold any more: {told}")
        self.found = found


class TooManyWait(WindlassError):
    """As many writes of a file wait as may."""

    def __init__(self, most: int) -> None:
        super().__init__(f"{most:,} writes of this file wait already: try again later")


def issue(state: State, *, size: int, sha256: str, at: int, disk: str | None, most: int) -> tuple[State, int]:
    """Give a new write its sequence."""
    if len(state.waiting) >= most:
        raise TooManyWait(most)
    seq = state.issued + 1
    waiting = Waiting(seq=seq, size=size, at=at, sha256=sha256)
    return replace(state, issued=seq, disk=disk or state.disk, waiting=(*state.waiting, waiting)), seq


def withdraw(state: State, seq: int, token: int = 0) -> State:
    """Let a write go whose job has ended: attempts with this token or an older one commit nothing any more."""
    found = state.waits(seq)
    if found is None:
        return state
    ended = state.ended
    if seq > state.committed:
        ended = (*ended, replace(found, token=max(found.token, token)))[-_MOST_ENDED:]
    return replace(state, waiting=_others(state.waiting, seq), ended=ended)


def begin(state: State, seq: int, token: int) -> tuple[State, Version | None]:
    """Say that an attempt begins: from now on an older one of the same job commits nothing.

    Gives the version if an attempt before has committed it. Raises Superseded and Overtaken.
    """
    if (done := state.version(seq)) is not None:
        return state, done
    _check_order(state, seq)
    found = state.waits(seq)
    if found is None:
        found = next((one for one in state.ended if one.seq == seq and one.token < token), None)
    if found is None or found.token > token:
        raise Overtaken
    waiting = sorted((*_others(state.waiting, seq), replace(found, token=token)), key=lambda one: one.seq)
    return replace(state, waiting=tuple(waiting), ended=_others(state.ended, seq)), None


def commit(state: State, write: Write, *, at: int, keep: int) -> tuple[State, Version]:
    """Make the write the current version, or say why not. What was committed already is given as it was."""
    if (done := state.version(write.seq)) is not None:
        return state, done
    _check_order(state, write.seq)
    found = state.waits(write.seq)
    if found is None or found.token > write.token:
        raise Overtaken
    check(state, write.if_match, if_none_match=write.if_none_match)
    # A clock that was set back must not make versions look as if they came in another order.
    at = max(at, state.current.at + 1) if state.current else at
    made = Version(seq=write.seq, sha256=write.sha256, size=write.size, at=at, who=write.who, job=write.job)
    versions = (*state.versions, made)[-keep:]
    ended = tuple(one for one in state.ended if one.seq > write.seq)
    waiting = _others(state.waiting, write.seq)
    return replace(state, committed=write.seq, versions=versions, waiting=waiting, ended=ended), made


def check(state: State, if_match: Sequence[str], *, if_none_match: bool) -> None:
    """Raise Unmet if the current version is not the one that a write is based on."""
    found = state.current.sha256 if state.current else None
    if if_none_match and found is not None:
        raise Unmet(found)
    if if_match and (found is None or not {found, ANYTHING} & set(if_match)):
        raise Unmet(found)


def before(state: State, seq: int) -> list[Waiting]:
    """The earlier writes that have not ended."""
    return [one for one in state.waiting if one.seq < seq]


def _check_order(state: State, seq: int) -> None:
    if state.committed > seq and state.current is not None:
        raise Superseded(state.current)


def _others(writes: tuple[Waiting, ...], seq: int) -> tuple[Waiting, ...]:
    return tuple(one for one in writes if one.seq != seq)


def dump(state: State) -> str:
    """As records keep it."""
    return json.dumps(asdict(state), separators=(",", ":"), ensure_ascii=False)


def load(text: str) -> State:
    """From its text."""
    told = json.loads(text)
    waiting, ended = (tuple(Waiting(**one) for one in told.pop(name)) for name in ("waiting", "ended"))
    versions = tuple(Version(**one) for one in told.pop("versions"))
    return State(**told, waiting=waiting, ended=ended, versions=versions)
