"""Reporters of metrics: what a user writes in ten lines, or StatsD. Each event becomes calls of a reporter."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Protocol

from windlass.core.errors import StoreError
from windlass.core.status import Status
from windlass.observability.lines import Line
from windlass.observability.logs import LOGGER, write
from windlass.observability.measures import Bounds, Kind, measured

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from windlass.client.queues import QueuesRoom
    from windlass.client.stats import StatsRoom
    from windlass.core import events
    from windlass.core.registry import Registry

EVERY = 5.0
"""seconds between two looks at the store"""


class MetricsReporter(Protocol):
    """Takes in figures. Called in the worker's loop and in other threads: it must be quick, and must not block."""

    def increment(self, name: str, value: float, tags: Mapping[str, str]) -> None:
        """So many more of something."""
        ...

    def gauge(self, name: str, value: float, tags: Mapping[str, str]) -> None:
        """How much there is of something now."""
        ...

    def timing(self, name: str, seconds: float, tags: Mapping[str, str]) -> None:
        """How long something took."""
        ...


class Reporting:
    """The listener that calls a reporter. One that raises harms nobody, and that is logged once."""

    def __init__(self, reporter: MetricsReporter, registry: Registry) -> None:
        self._reporter, self._bounds = reporter, Bounds(registry)
        self._tags: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, str]] = {}
        self._troubled = False

    def __call__(self, event: events.Event) -> None:
        for measure, value, labels in measured(event, self._bounds):
            # Types, queues and outcomes are few: the same tags again and again.
            tags = self._tags.get((measure.labels, labels))
            if tags is None:
                tags = dict(zip(measure.labels, labels, strict=True))
                self._tags[measure.labels, labels] = tags
            self._report(measure.kind, measure.name, value, tags)

    async def stand(
        self, queues: QueuesRoom, stats: StatsRoom, on_duty: Callable[[], Awaitable[None]], every: float = EVERY
    ) -> None:
        """Report how the store stands, every few seconds, while this worker is the one on duty."""
        while True:
            await on_duty()
            try:
                found = await queues.list(max_age=every)
                dead = (await stats.counts(max_age=every)).of(status=Status.FAILED)
            except StoreError:
                await asyncio.sleep(every)  # that it is away is announced by who works with it
                continue
            for queue in found:
                tags = {"queue": self._bounds.queue(queue.name)}
                if tags["queue"] == queue.name:  # of others there may be any number, and a gauge for all says nothing
                    self._report(Kind.GAUGE, "queue.depth", queue.depth.n, tags)
                    self._report(Kind.GAUGE, "queue.processing", queue.processing.n, tags)
                    self._report(
                        Kind.GAUGE, "queue.oldest_seconds", queue.oldest.total_seconds() if queue.oldest else 0, tags
                    )
            self._report(Kind.GAUGE, "jobs.dead", dead.n, {})
            await asyncio.sleep(every)

    def _report(self, kind: Kind, name: str, value: float, tags: Mapping[str, str]) -> None:
        try:
            match kind:
                case Kind.COUNT:
                    self._reporter.increment(name, value, tags)
                case Kind.SECONDS:
                    self._reporter.timing(name, value, tags)
                case Kind.GAUGE:
                    self._reporter.gauge(name, value, tags)
        except Exception as error:  # noqa: BLE001  # somebody's code, whose fault is no job's
            if not self._troubled:
                self._troubled = True
                hook, text = type(self._reporter).__qualname__, f"it raised {type(error).__name__}: {error}"
                facts: dict[str, Any] = {"hook": hook, "trouble": "raised", "text": text}
                line = Line(logging.ERROR, "hook.troubled", "hook", facts, f"{hook}: {text} (told once)")
                write(logging.getLogger(f"{LOGGER}.worker"), line)
