"""Which commands there are, and where. A module is loaded only for the command that is called: a worker stays small."""

from __future__ import annotations

from importlib import import_module
from keyword import iskeyword
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer

COMMANDS = {
    "worker": "working",
    "dev": "working",
    "serve": "serving",
    "enqueue": "enqueueing",
    "wait": "enqueueing",
    "jobs": "looking",
    "job": "looking",
    "explain": "explaining",
    "retry": "operating",
    "cancel": "operating",
    "delete": "operating",
    "signal": "signalling",
    "import": "importing",
    "resumes": "resumes",
    "dead": "dead_letters",
    "replay": "dead_letters",
    "discard": "dead_letters",
    "queues": "queues",
    "schedules": "schedules",
    "workers": "looking",
    "top": "top.command",
    "types": "catalogue",
    "keys": "keys",
    "audit": "auditing",
    "secrets": "sealing",
    "stats": "stats",
    "doctor": "doctoring",
    "check": "catalogue",
    "migrate": "upkeep",
    "prune": "upkeep",
    "demo": "demo",
    "bench": "benching",
    "chaos": "chaos",
    "completion": "upkeep",
}
"""from a command's name to its module here, in the order the help shows them"""


def register(cli: typer.Typer, argv: Sequence[str]) -> None:
    """Add the command that is called to the program; every one where help may list them."""
    called = next((word for word in argv if word in COMMANDS), None)
    for name in [called] if called is not None and not _lists(argv) else COMMANDS:
        module = import_module(f"windlass.cli.{COMMANDS[name]}")
        function = getattr(module, f"{name}_" if iskeyword(name) else name)
        cli.command(name)(function)


def _lists(argv: Sequence[str]) -> bool:
    """Whether help or completion of the whole program is asked for, which comes before any command's name."""
    first = next((word for word in argv if word in COMMANDS or word in ("-h", "--help")), None)
    return first in ("-h", "--help", None)
