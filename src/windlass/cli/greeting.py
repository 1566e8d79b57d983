"""The greeting: what a server shows as it starts: where everything is, and how its owner gets in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.cli.words import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.app import Windlass
    from windlass.cli.output import Screen
    from windlass.worker.worker import Worker


def show_first_key(screen: Screen, secret: str) -> None:
    """The secret of a key that was just made, also with --quiet: nobody can read it later."""
    screen.say("No keys yet: this one may do everything, and is shown once:", "bold")
    screen.line(secret)
    screen.say()


def show_server(screen: Screen, app: Windlass, at: str, root_path: str, workers: Sequence[Worker]) -> None:
    """Where it is, and who runs jobs."""
    from windlass import __version__

    behind = f", which a proxy has at {root_path}/api/v1" if root_path else ""
    screen.say(f"windlass {__version__}  {app.address}", "bold")
    screen.say(f"  API        {at}/api/v1{behind}")
    slots = sum(worker.config.concurrency for worker in workers)
    here = f"in this process, {plural(slots, 'slot')}" if workers else "none: windlass worker, or serve with --worker"
    screen.say(f"  worker     {here}")


def show_dashboard(screen: Screen, at: str, link: str | None) -> None:
    """Where the pages are, and a link that lets in once, on a line of its own: narrow terminals break it."""
    screen.say(f"  dashboard  {at}/dashboard/")
    if link is not None:
        screen.say()
        screen.say("Sign in to the dashboard by this link, once, in 15 minutes:")
        screen.say(f"{at}{link}")
    screen.say()
