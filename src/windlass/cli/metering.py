"""`--metrics-port`: the metrics of a worker, or of all processes of one command, at one port."""

from __future__ import annotations

import logging
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING

from windlass.cli.output import REFUSED, USAGE, Stop

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

    from windlass.app import Windlass

LOG = logging.getLogger("windlass.metrics")


def count_into(app: Windlass, file: int) -> None:
    """Let a supervised worker count in the file that its supervisor reads."""
    from windlass.observability.counting import Counting  # loaded only where metrics are asked for
    from windlass.observability.tally import Tally

    app.listen(Counting(app.registry, Tally(file)))


@contextmanager
def metrics_served(
    app: Windlass, host: str, port: int | None, *, shared: bool = False
) -> Generator[Callable[[], AbstractContextManager[int | None]], None, None]:
    """While inside, Prometheus is answered at that port, if there is one.

    Gives what lends each process a file to count in, where several are counted together.
    """
    if port is None:
        yield nullcontext
        return
    if find_spec("prometheus_client") is None:
        raise Stop(USAGE, '--metrics-port needs the extra "metrics": pip install "windlass[metrics]"')
    from windlass.cli.serving import bound, shown_place
    from windlass.observability.figures import Figures
    from windlass.observability.port import PATH, MetricsPort, is_loopback
    from windlass.observability.prometheus import Source
    from windlass.observability.tally import Shared

    token = app.settings.metrics_token
    if token is None and not is_loopback(host):
        raise Stop(
            REFUSED,
            f"every client that reaches {host} could read these metrics: set WINDLASS_METRICS_TOKEN, which Prometheus"
            " then has to send, or leave out --metrics-host",
        )
    # A client of its own, for another event loop: no handler that blocks the worker's keeps metrics from being read.
    client, scraped, together = app.apart(), app.metrics(), Shared()
    figures = Figures(client)
    if shared:
        scraped.source = Source(together.read, figures, lambda: together.alive)
    else:
        scraped.source = Source(scraped.source.read, figures)

    async def end() -> None:
        await figures.close()
        await client.close()

    listening = bound(host, port, "--metrics-host or --metrics-port")
    served = MetricsPort(listening, scraped, end, token)
    served.start()
    LOG.info("metrics at http://%s%s", shown_place(listening.getsockname()), PATH)
    try:
        yield together.process if shared else nullcontext
    finally:
        served.close()
