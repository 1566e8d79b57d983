"""The fleet: which of many workers follow a notice, so that one job does not wake them all.

A notice that jobs were queued carries a random number. The workers that consume the queue and handle the same
types, ordered by id, count from there: as many as there are jobs look at once, one or two more a moment later in case
one of these is gone, and the others do nothing. A single job is told in one of a few lanes, and a worker hears only
those in which it would look. Polling is the floor under all of this, as it is under notices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.stores.contract import LANES, About, Notice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.contract import Peer

FEW = 3
"""so few workers all follow every notice"""
MANY = 10
"""among more than so many, some worker polls several times a second: one late look is enough"""
BACKUPS = (0.03, 0.1)
"""seconds after which the late ones look"""
_UNNAMED = ""  # stands for every queue that no worker names: only those who consume all queues look there


def turn(place: int, size: int, notice: Notice) -> float | None:
    """How many seconds after a notice the worker at this place among its consumers looks; None leaves it to others."""
    if size <= FEW:
        return 0.0
    backups = BACKUPS if size <= MANY else BACKUPS[:1]
    after = (place - first(size, notice)) % size - notice.n
    if after < 0:
        return 0.0
    return backups[after] if after < len(backups) else None


def first(size: int, notice: Notice) -> int:
    """The place from which so many count. Each has as many lanes as any other, or one more; a large fleet shares."""
    place, width = _span(notice.draw % LANES, size)
    return (place + notice.draw // LANES % width) % size


def _span(lane: int, size: int) -> tuple[int, int]:
    """The first of the places that are drawn in a lane, and how many there are."""
    place = lane * size // LANES
    return place, max(1, (lane + 1) * size // LANES - place)


def _looks(place: int, size: int, lane: int) -> bool:
    """Whether the worker at this place looks at some notice of this lane."""
    draws = (lane + LANES * at for at in range(_span(lane, size)[1]))
    return any(turn(place, size, Notice(About.CLAIMABLE, draw=draw)) is not None for draw in draws)


class Fleet:
    """The workers that have beaten lately, as one of them knows them."""

    def __init__(self, worker_id: str) -> None:
        self._id = worker_id
        self._peers: Sequence[Peer] = ()
        self._places: dict[str | None, tuple[int, int]] = {}

    @property
    def size(self) -> int:
        """How many there are, this one among them; 0 until it has been told."""
        return len(self._peers)

    def meet(self, peers: Sequence[Peer]) -> None:
        """All that have beaten lately, by id."""
        self._peers = peers
        self._places = {}

    def turn(self, notice: Notice) -> float | None:
        """How many seconds after a notice this worker looks; None leaves it to others."""
        if notice.about is About.ANYTHING:
            return 0.0
        return turn(*self._place(notice.queue), notice)

    def leads(self, notice: Notice) -> bool:
        """Whether this worker is the first of those that look: it passes the notice on if it cannot follow it."""
        place, size = self._place(notice.queue)
        return size > FEW and place == first(size, notice)

    def lanes(self) -> frozenset[int]:
        """The lanes in which this worker may have to look, whatever queue it is about."""
        me = next((peer for peer in self._peers if peer.id == self._id), None)
        if me is None:
            return frozenset(range(LANES))
        named = me.queues or (_UNNAMED, *{name for peer in self._peers for name in peer.queues})
        places = {self._place(queue) for queue in (None, *named)}
        return frozenset(lane for lane in range(LANES) if any(_looks(*place, lane) for place in places))

    def _place(self, queue: str | None) -> tuple[int, int]:
        place = self._places.get(queue)
        if place is None:
            place = self._places[queue] = self._count(queue)
        return place

    def _count(self, queue: str | None) -> tuple[int, int]:
        mine = next((peer.handles for peer in self._peers if peer.id == self._id), "")
        ids = [
            peer.id
            for peer in self._peers
            if peer.handles == mine and (queue is None or not peer.queues or queue in peer.queues)
        ]
        # A worker that is not among them, as at the start or after a long pause, follows every notice.
        return (ids.index(self._id), len(ids)) if self._id in ids else (0, 0)
