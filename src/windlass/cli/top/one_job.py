"""One job on a screen of its own: why it stands where it stands, what it holds, and everything that happened to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from windlass.cli.timeline import contents, head, moves, waits_and_runs
from windlass.cli.top.columns import Cell, Tone
from windlass.cli.top.drawing import bar
from windlass.cli.top.picture import coming_along
from windlass.cli.top.rows import content
from windlass.cli.top.tables import TONES, per_second
from windlass.cli.words import span
from windlass.core.redaction import redact
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from textual.app import ComposeResult

    from windlass.app import Windlass
    from windlass.core.history import Entry
    from windlass.core.job import Job

KEYS = [
    part
    for key, does in (("Esc", "back"), ("r", "retry"), ("C", "cancel"), ("D", "delete"), (".", "hold"), ("?", "keys"))
    for part in (Cell(key, Tone.STRONG), Cell(f" {does}   ", Tone.MUTED))
]
_LABEL = 11


@dataclass(frozen=True, slots=True)
class Seen:
    """A job at one moment."""

    job: Job
    history: list[Entry]
    why: str
    at: datetime


class JobScreen(ModalScreen[None]):
    """A job, live."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,backspace", "close", "back"),
        Binding("r", "app.retry", "retry"),
        Binding("C", "app.cancel", "cancel"),
        Binding("D", "app.delete", "delete"),
        Binding("full_stop", "app.hold", "hold"),
        Binding("question_mark", "app.keys", "keys"),
    ]

    def __init__(self, job_id: str) -> None:
        super().__init__(id="job")
        self.job_id = job_id
        self.seen: Seen | None = None
        # Held here, and not looked for by their names: a look may come back before the screen is put up.
        self._head = Static("", id="job-head", markup=False)
        self._text = Static(job_id, id="job-text", markup=False)

    def compose(self) -> ComposeResult:
        """A line about it, and all else below."""
        yield self._head
        with VerticalScroll(id="job-body"):
            yield self._text
        yield Static("", classes="tell", markup=False)
        yield Static(content(KEYS), classes="keys", markup=False)

    async def look(self, app: Windlass, now: datetime) -> None:
        """Read it anew; JobNotFound where it is gone."""
        job, history = await app.jobs.look(self.job_id)
        before = self.seen
        # What has ended stays as it ended; why something waits may change without it.
        ended = before is not None and job.status.finished and before.job.updated_at == job.updated_at
        why = before.why if before is not None and ended else (await app.jobs.explain(self.job_id)).text
        self.seen = Seen(job, history, why, now)
        first, *others = _lines(self.seen)
        self._head.update(content(first))
        self._text.update(Content("\n").join(content(one) for one in others))

    def action_close(self) -> None:
        """Back to the lists."""
        _ = self.dismiss(None)


def _lines(seen: Seen) -> Iterator[list[Cell]]:
    job = seen.job
    yield [Cell.of(head(job), TONES.get(job.status, Tone.STRONG))]
    yield [Cell.of(seen.why, Tone.STRONG)]
    yield []
    if job.status is Status.PROCESSING and job.progress is not None:
        yield _progress(seen)
    for name, text in contents(job, whole=False):
        if name != "progress":
            yield [
                Cell.of(f"{name:<{_LABEL}}", Tone.MUTED),
                Cell.of(redact(text), Tone.BAD if name == "error" else Tone.PLAIN),
            ]
    strip = " | ".join(waits_and_runs(seen.history))
    yield []
    if strip:
        yield [Cell.of(strip, Tone.ACCENT)]
    yield [Cell("TIMELINE", Tone.STRONG), Cell("  by the store's clock, UTC", Tone.MUTED)]
    for one in moves(seen.history):
        yield [Cell.of(one)]
    if job.error is not None and job.error.traceback:
        yield []
        yield [Cell("TRACEBACK", Tone.STRONG), Cell("  of the last error", Tone.MUTED)]
        for one in job.error.traceback.rstrip().split("\n"):
            yield [Cell.of(one.replace("\t", "    "), Tone.MUTED)]


def _progress(seen: Seen) -> list[Cell]:
    one, progress = coming_along(seen.job, seen.at), seen.job.progress
    done, of, note = (0.0, None, None) if progress is None else (progress.done, progress.of, progress.note)
    parts = [f"{done:,g}" if of is None else f"{done:,g} of {of:,g}"]
    if one.rate is not None:
        parts.append(f"{per_second(one.rate)}/s")
    if one.eta is not None:
        parts.append(f"done in about {span(one.eta)}")
    parts.append(note or "")
    drawn = "" if one.share is None else f"{bar(one.share, 20)} {one.share:.0%}  "
    return [Cell(f"{'progress':<{_LABEL}}", Tone.MUTED), Cell(drawn, Tone.ACCENT), Cell.of("  ".join(parts))]
