"""Lineage: the jobs that have to do with one, a few steps each way, and how they are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from markupsafe import Markup

from windlass.core.kept import GATHER, read_kept
from windlass.core.status import FINISHED
from windlass.web.dashboard.words import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from windlass.client.jobs import JobsRoom
    from windlass.core.job import Job
    from windlass.stores.contract import Count

SHOWN = 8
"""jobs of one kind that are named; of more there is a list to open"""
_HOPS = 4
"""jobs one after the other that are followed each way"""
_IN_COLUMN = 5
_AGE = 1.0
_NODE_WIDE, _NODE_HIGH, _ACROSS, _DOWN, _EDGE = 176, 42, 56, 14, 6
_LONGEST = 19


@dataclass(frozen=True, slots=True)
class Some:
    """Jobs of one kind: the first or the newest of them, and how many there are."""

    jobs: Sequence[Job]
    count: Count | None = None
    ended: Count | None = None

    @property
    def more(self) -> int:
        """How many are not among them."""
        return 0 if self.count is None else max(self.count.n - len(self.jobs), 0)


NONE = Some(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Where a job comes from and what has come of it."""

    parent: Job | None = None
    origin: Job | None = None
    replay_of: Job | None = None
    replays: Some = NONE
    all_replays: bool = True
    """whether all jobs of its type that came after it could be looked at"""
    children: Some = NONE
    """enqueued by it"""
    awaited: Some = NONE
    """that it waits for, or has waited for"""
    siblings: Some = NONE
    """that the same job waits for as well"""
    before: Sequence[Sequence[Job]] = ()
    """what those waited for in their turn, from the nearest on"""
    after: Sequence[Job] = ()
    """what waits for it, and for that, and so on"""
    gathers: Sequence[str] = field(default=())

    @property
    def others(self) -> Some:
        """What it has enqueued besides what it gathers."""
        told = {job.id for job in (*self.awaited.jobs, *self.after)}
        return NONE if all(job.id in told for job in self.children.jobs) else self.children

    @property
    def drawn(self) -> bool:
        """Whether there is enough to draw."""
        return bool(self.parent or self.children.jobs or self.awaited.jobs or self.after)


async def lineage_of(room: JobsRoom, job: Job, ended_first: datetime | None) -> Lineage:
    """Ask around, a bounded number of questions, those that the caller may see."""
    gathers = [name.partition(":")[2] for name in read_kept(job.kept_json) if name.startswith(f"{GATHER}:")]
    ids = [id_ for id_ in (job.parent_id, job.replay_of, job.origin) if id_ is not None]
    known = {one.id: one for one in (await room.several(ids) if ids else []) if one is not None}
    replays = await room.replays(job, since=ended_first, limit=SHOWN) if ended_first is not None else None
    awaited = await _some(room, next=job.id) if job.awaits is not None or gathers else NONE
    return Lineage(
        parent=known.get(job.parent_id or ""),
        replay_of=known.get(job.replay_of or ""),
        origin=known.get(job.origin or ""),
        replays=NONE if replays is None else Some(replays.jobs),
        all_replays=replays is None or replays.complete,
        children=await _some(room, parent=job.id) if job.attempts or job.crashes or job.lease_token else NONE,
        awaited=awaited,
        siblings=await _some(room, next=job.next_id, without=job.id) if job.next_id is not None else NONE,
        before=await _before(room, awaited.jobs),
        after=await _after(room, job),
        gathers=gathers,
    )


async def _some(room: JobsRoom, *, without: str | None = None, **which: str) -> Some:
    page = await room.find(limit=SHOWN + 1, oldest_first=True, max_age=_AGE, **which)  # type: ignore[arg-type]  # one of the words of a search
    jobs = [job for job in page.jobs if job.id != without]
    if not jobs:
        return NONE
    count = await room.count(max_age=_AGE, **which)  # type: ignore[arg-type]  # the same
    ended = await room.count(max_age=_AGE, status=FINISHED, **which)  # type: ignore[arg-type]  # the same
    return Some(jobs[:SHOWN], count, ended)


async def _before(room: JobsRoom, level: Sequence[Job]) -> list[list[Job]]:
    """What was awaited before that, as far as the chain is one of single jobs."""
    found: list[list[Job]] = []
    while len(level) == 1 and level[0].awaits is not None and len(found) < _HOPS - 1:
        page = await room.find(next=level[0].id, limit=_IN_COLUMN, oldest_first=True, max_age=_AGE)
        level = page.jobs
        if level:
            found.append([*level])
    return found


async def _after(room: JobsRoom, job: Job) -> list[Job]:
    found: list[Job] = []
    while job.next_id is not None and len(found) < _HOPS:
        [following] = await room.several([job.next_id])
        if following is None or following in found:
            break
        found.append(following)
        job = following
    return found


@dataclass(frozen=True, slots=True)
class _Node:
    x: int
    y: int
    job: Job | None
    """none stands for those that are not drawn"""
    words: str
    here: bool = False


class _Graph:
    """Columns of jobs, and who awaits or has enqueued whom."""

    def __init__(self, job: Job, lineage: Lineage) -> None:
        self.columns: list[list[_Node]] = []
        self.edges: list[tuple[_Node, _Node, str]] = []
        left = self._left(lineage)
        here = self._column(
            [job, *lineage.siblings.jobs[: _IN_COLUMN - 1]], _rest(lineage.siblings, _IN_COLUMN - 1), job
        )
        for node in left:
            kind = "enqueued" if node.job is not None and node.job not in lineage.awaited.jobs else "awaits"
            self.edges.append((node, here[0], kind))
        self._right(lineage, here)

    def _left(self, lineage: Lineage) -> list[_Node]:
        last: list[_Node] = []
        for level in reversed(lineage.before):
            nodes = self._column(level, 0)
            self.edges += [(one, nodes[0], "awaits") for one in last] if nodes else []
            last = nodes
        parent = [] if lineage.parent is None or lineage.parent in lineage.awaited.jobs else [lineage.parent]
        awaited = lineage.awaited.jobs[: _IN_COLUMN - len(parent)]
        if not parent and not awaited:
            return []
        nodes = self._column([*parent, *awaited], _rest(lineage.awaited, len(awaited)))
        if awaited:
            self.edges += [(one, nodes[len(parent)], "awaits") for one in last]
        return nodes

    def _right(self, lineage: Lineage, here: list[_Node]) -> None:
        children = [job for job in lineage.others.jobs if job not in lineage.after and job not in lineage.awaited.jobs]
        shown = children[: _IN_COLUMN - bool(lineage.after)]
        # Children that it gathers stand before it, not after.
        rest = 0 if not shown else max(lineage.children.more, 0) + len(children) - len(shown)
        first = [*lineage.after[:1], *shown]
        if not first:
            return
        nodes = self._column(first, rest)
        for n, node in enumerate(nodes):
            if n == 0 and lineage.after:
                self.edges += [(one, node, "awaits") for one in here]
            else:
                self.edges.append((here[0], node, "enqueued"))
        last = nodes[0]
        for job in lineage.after[1:]:
            [node] = self._column([job], 0)
            self.edges.append((last, node, "awaits"))
            last = node

    def _column(self, jobs: Sequence[Job], rest: int, here: Job | None = None) -> list[_Node]:
        x = _EDGE + len(self.columns) * (_NODE_WIDE + _ACROSS)
        nodes = [
            _Node(x, _EDGE + n * (_NODE_HIGH + _DOWN), job, visible(job.type), job is here)
            for n, job in enumerate(jobs)
        ]
        if rest:
            nodes.append(_Node(x, _EDGE + len(nodes) * (_NODE_HIGH + _DOWN), None, f"and {rest:,} more"))
        self.columns.append(nodes)
        return nodes

    def draw(self, where: Callable[[str], str], tones: dict[str, str]) -> Markup:
        """As SVG. Its links are for who points at them; the list beside it has the same for everybody."""
        wide = 2 * _EDGE + len(self.columns) * (_NODE_WIDE + _ACROSS) - _ACROSS
        high = 2 * _EDGE + max(map(len, self.columns)) * (_NODE_HIGH + _DOWN) - _DOWN
        drawn = [_edge(*edge) for edge in self.edges]
        drawn += [_drawn(node, where, tones) for column in self.columns for node in column]
        return Markup(
            '<svg class="graph" width="{}" height="{}" viewBox="0 0 {} {}" aria-hidden="true" focusable="false">'
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
            ' orient="auto"><path class="arrow" d="M0 0.5L7 4L0 7.5z"/></marker></defs>{}</svg>'
        ).format(wide, high, wide, high, Markup("").join(drawn))


def graph(job: Job, lineage: Lineage, where: Callable[[str], str], tones: dict[str, str]) -> Markup:
    """Who awaits whom, from the left to the right."""
    return _Graph(job, lineage).draw(where, tones)


def _rest(some: Some, drawn: int) -> int:
    return some.more + max(len(some.jobs) - drawn, 0)


def _edge(one: _Node, other: _Node, kind: str) -> Markup:
    x1, y1 = one.x + _NODE_WIDE, one.y + _NODE_HIGH / 2
    x2, y2 = other.x - 1, other.y + _NODE_HIGH / 2
    middle = (x1 + x2) / 2
    return Markup('<path class="edge {}" d="M{} {}C{} {} {} {} {} {}" marker-end="url(#arrow)"/>').format(
        kind, x1, y1, middle, y1, middle, y2, x2, y2
    )


def _drawn(node: _Node, where: Callable[[str], str], tones: dict[str, str]) -> Markup:
    if node.job is None:
        return Markup('<text class="node-more" x="{}" y="{}">{}</text>').format(node.x + 12, node.y + 26, node.words)
    words = node.words if len(node.words) <= _LONGEST else f"{node.words[: _LONGEST - 1]}…"
    status = node.job.status.value
    box = Markup(
        '<g class="node tone-{}{}"><title>{}</title><rect x="{}" y="{}" width="{}" height="{}" rx="9"/>'
        '<circle cx="{}" cy="{}" r="5"/><text class="node-type" x="{}" y="{}">{}</text>'
        '<text class="node-status" x="{}" y="{}">{}</text></g>'
    ).format(
        tones.get(status, "calm"), " here" if node.here else "", f"{node.words}, {status}",
        node.x, node.y, _NODE_WIDE, _NODE_HIGH,
        node.x + 16, node.y + _NODE_HIGH / 2,
        node.x + 30, node.y + 18, words,
        node.x + 30, node.y + 33, status,
    )  # fmt: skip
    if node.here:
        return box
    return Markup('<a href="{}" tabindex="-1">{}</a>').format(where(node.job.id), box)
