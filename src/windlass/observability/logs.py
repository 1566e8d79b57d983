"""Logs: what the code announces as `logging` records, one each. How these are written is a handler's business."""

from __future__ import annotations

import logging
from typing import Any

from windlass.core import events
from windlass.core.context import working
from windlass.observability.context import ATTRIBUTES, attributes
from windlass.observability.floods import WINDOW, Floods, LeftOut
from windlass.observability.lines import Line, describe, level_of
from windlass.observability.plain import cleaned, plain

LOGGER = "windlass"
FACTS = "windlass_line"
"""the attribute of a record that has its line, which formatters of ours write"""
_OF_JOBS = frozenset(
    {
        events.JobEnqueued,
        events.JobEnqueuedInTransaction,
        events.JobReplaced,
        events.JobDeduplicated,
        events.JobOperated,
        events.JobSignalled,
        events.JobOperatedInTransaction,
        events.JobDiscarded,
        events.JobClaimed,
        events.JobStarted,
        events.JobEnded,
        events.ResultRefused,
        events.JobFenced,
        events.JobRescued,
        events.JobExpired,
        events.JobStuck,
    }
)


class Logs:
    """Writes each event to a logger, below whose level it costs next to nothing.

    What happens to single jobs goes to the logger's child `jobs`, all else to its child `worker`. Of warnings and
    errors that are alike, 20 are written in ten seconds, and then how many more there were. An application has one of
    these on the logger `windlass` from the start; `app.listen(Logs(logger))` puts another in its place.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        above = logger or logging.getLogger(LOGGER)
        self._jobs, self._worker = above.getChild("jobs"), above.getChild("worker")
        self._floods = Floods(self._tell_left_out)

    @property
    def silent(self) -> bool:
        """Whether a job that goes well makes no line."""
        return not self._jobs.isEnabledFor(logging.DEBUG)

    def __call__(self, event: events.Event) -> None:
        logger, level = self._jobs if type(event) in _OF_JOBS else self._worker, level_of(event)
        if logger.isEnabledFor(level):
            line = describe(event)
            if level < logging.WARNING or self._floods.admit(line):
                write(logger, line)
        if isinstance(event, events.WorkerStopped):
            self._floods.end()

    def _tell_left_out(self, left_out: LeftOut) -> None:
        like, n = left_out
        facts: dict[str, Any] = {"like": like.event, "n": n, "seconds": WINDOW, "type": like.facts.get("type")}
        what = f"{like.word} {like.facts.get('type') or ''}".strip()
        text = f'{n:,} more lines like "{what}" in {WINDOW:g} s were not written'
        write(self._worker, Line(like.level, "log.left_out", "left out", facts, text))


def tell_trouble(hook: str, trouble: str, text: str) -> None:
    """Write that a function of the user, which is called on events, does not do well."""
    facts: dict[str, Any] = {"hook": hook, "trouble": trouble, "text": text}
    line = Line(logging.ERROR, "hook.troubled", "hook", facts, f"{hook}: {text} (told once)")
    write(logging.getLogger(f"{LOGGER}.worker"), line)


def tell_raised(listener: object, error: Exception) -> None:
    """Write that a listener raised."""
    tell_trouble(name_of(listener), "raised", f"it raised {type(error).__name__}: {error}")


def name_of(hook: object) -> str:
    """The dotted name of a function, or of the class of an object."""
    named: Any = hook if hasattr(hook, "__qualname__") else type(hook)
    return f"{named.__module__}.{named.__qualname__}"


def write(logger: logging.Logger, line: Line) -> None:
    """Write a line to a logger. It is made fit here: whose handler writes it, and how, is not known."""
    facts = {"event": line.event, **{name: cleaned(value) for name, value in line.facts.items()}}
    extra: dict[str, Any] = {FACTS: (line.word, facts)}
    worker = working.get()
    if worker is not None:
        facts.setdefault("worker", worker)
    if not facts.keys().isdisjoint(ATTRIBUTES):
        extra |= attributes(facts)
    logger.log(line.level, "%s %s", line.word, plain(cleaned(line.text)), extra=extra)
