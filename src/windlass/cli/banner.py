"""The banner: what a worker is about to do, where, and what stands in its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.cli.words import plural
from windlass.observability.plain import short

if TYPE_CHECKING:
    from windlass.app import Windlass
    from windlass.cli.output import Screen
    from windlass.worker.worker import Worker

_MOST_NAMED = 8


def show_banner(screen: Screen, app: Windlass, worker: Worker, processes: int = 1) -> None:
    """Say what will run; the store must be open."""
    from windlass import __version__

    config, able = worker.config, app.capabilities
    where = ", ".join(f"{name}:{n}" for name, n in config.queues.items()) if config.queues else "every queue"
    many = f" in {processes} processes" if processes > 1 else ""
    screen.say(f"windlass {__version__}  {app.address}", "bold")
    screen.say(f"  durability  {able.durability}")
    pushed = "pushed" if able.push else "none: polling"
    screen.say(f"  notices     {pushed}, and a look every {config.poll.total_seconds():g} s")
    screen.say(f"  handlers    {_handlers(app, config.exclude)}")
    screen.say(f"  queues      {where}; {plural(config.concurrency, 'slot')}{many}")
    for warning in (*able.warnings, *_warnings(app, config.exclude)):
        screen.say(f"  warning     {warning}", "yellow")


def _handlers(app: Windlass, exclude: tuple[str, ...]) -> str:
    names = sorted(one.name for one in app.registry if one.name not in exclude)
    more = f", … and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{len(names)}: {short(', '.join(names[:_MOST_NAMED]), 200)}{more}" if names else "none"


def _warnings(app: Windlass, exclude: tuple[str, ...]) -> list[str]:
    known = {one.name for one in app.registry}
    told = [f"--exclude {name}: no such handler here" for name in exclude if name not in known]
    if not known:
        told.append("this application has no handlers, so nothing will run: declare some with @app.job")
    return told
