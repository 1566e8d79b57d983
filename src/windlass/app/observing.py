"""Observing: who is told what an application does, in this process or by figures that others read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from windlass.app.rooms import Rooms
from windlass.core.errors import SettingsError
from windlass.observability.logs import Logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

    from windlass.core.events import Event, Hub
    from windlass.observability.errors import Failure
    from windlass.observability.prometheus import Prometheus
    from windlass.observability.reporting import MetricsReporter

OnError = TypeVar("OnError", bound="Callable[[Failure], Any]")


class Observing(Rooms):
    """Listeners, reporters and metrics."""

    hub: Hub
    _metrics: Prometheus | None = None

    def metrics(self, registry: CollectorRegistry | None = None) -> Prometheus:
        """What Prometheus reads of this application, counted from the first call on. Needs `windlass[metrics]`.

        A `prometheus_client.CollectorRegistry` of your own may be given with the first call: windlass's metrics stand
        in it beside yours, and yours stand on windlass's page.
        """
        if self._metrics is None:
            self._metrics = self._measured(registry)
        elif registry is not None and registry is not self._metrics.registry:
            raise SettingsError("metrics are in another registry already: give yours with the first call of metrics()")
        return self._metrics

    def _measured(self, registry: CollectorRegistry | None) -> Prometheus:
        try:
            from windlass.observability.prometheus import Prometheus, Source  # only who measures loads it
        except ImportError as error:
            raise SettingsError(
                f'metrics need the extra "metrics": pip install "windlass[metrics]" ({error})'
            ) from error
        from windlass.observability.counting import Counting
        from windlass.observability.figures import Figures
        from windlass.observability.tally import Tally

        tally = Tally()
        self.listen(Counting(self.registry, tally))
        return Prometheus(Source(tally.read, Figures(self.client)), self.registry, registry)

    def listen(self, listener: Callable[[Event], Any]) -> Callable[[], None]:
        """Tell `listener` every event of this application (see `windlass.events`); call the result to stop.

        Events are logged under the name `windlass` in any case; a `Logs` of your own stands in for that.
        """
        return self.hub.listen(listener, in_place_of_fallback=isinstance(listener, Logs))

    @overload
    def on_error(self, hook: OnError, /) -> OnError: ...
    @overload
    def on_error(self, *, final: bool = False) -> Callable[[OnError], OnError]: ...

    def on_error(self, hook: OnError | None = None, *, final: bool = False) -> OnError | Callable[[OnError], OnError]:
        """Have a function told of each failed attempt of this process's workers, or with `final` of the last ones only.

        It is called with a `Failure` in a thread of its own, one after another, and may take its time. Whatever it
        does, no job is harmed: that it raised or hangs is logged once.
        """

        def decorate(hook: OnError) -> OnError:
            from windlass.observability.errors import ErrorReports  # only who asks for it loads it

            self.hub.listen(ErrorReports(hook, final=final))
            return hook

        return decorate if hook is None else decorate(hook)

    def report_metrics(self, reporter: MetricsReporter) -> Callable[[], None]:
        """Have a reporter called for whatever is counted or timed here; call the result to stop.

        Of all workers of the store, the one on duty reports how it and they stand, too, every five seconds.
        """
        from windlass.observability.reporting import Reporting  # only who asks for it loads it

        reporting = Reporting(reporter, self.registry)
        remove = self.hub.listen(reporting)
        self.client.beside[reporting] = lambda on_duty: reporting.stand(self.queues, self.stats, self.workers, on_duty)

        def stop() -> None:
            remove()
            self.client.beside.pop(reporting, None)

        return stop
