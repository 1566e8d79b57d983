"""Which commands there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.cli import working

if TYPE_CHECKING:
    import typer


def register(cli: typer.Typer) -> None:
    """Add every command to the program, in the order its help shows them."""
    cli.command()(working.worker)
    cli.command()(working.dev)
