"""The program `windlass`: the options its commands share, and how an error becomes one line and an exit code."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Annotated, cast

import typer

from windlass.cli import commands
from windlass.cli.desk import Globals
from windlass.cli.output import FAILURE, INTERRUPTED, OK, USAGE, Stop, complain, exit_code
from windlass.core.errors import WindlassError
from windlass.observability.logs import LOGGER

if TYPE_CHECKING:
    from collections.abc import Sequence

_TAKES_VALUE = frozenset({"--store", "--namespace", "--app", "--actor"})
_FLAGS = frozenset({"--json", "--quiet", "--no-color", "--debug"})


def _show_version(wanted: bool) -> None:
    if wanted:
        from windlass import __version__

        typer.echo(f"windlass {__version__}")
        raise typer.Exit


def start(
    ctx: typer.Context,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="The store; else WINDLASS_STORE or windlass.toml.")
    ] = None,
    namespace: Annotated[str | None, typer.Option(metavar="NAME", help="Prefix of its tables or keys.")] = None,
    app: Annotated[
        str | None, typer.Option(metavar="MODULE:APP", help="Take store and handlers from this one.")
    ] = None,
    actor: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who does it, for the audit trail; else your account."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only what was asked for.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colour; NO_COLOR does the same.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[  # noqa: ARG001  # its callback answers
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Durable background jobs on the database you already have.

    The options of this page may stand before or after any command.
    """
    ctx.obj = Globals(
        store=store,
        namespace=namespace,
        app=app,
        actor=actor,
        as_json=as_json,
        quiet=quiet,
        color=not (no_color or os.environ.get("NO_COLOR")),
        debug=debug,
    )


def program(argv: Sequence[str] = ()) -> typer.Typer:
    """The command line; the whole of it where nothing is called yet."""
    cli = typer.Typer(
        name="windlass",
        add_completion=False,  # the command `completion` prints the script instead of writing into a home directory
        rich_markup_mode=None,  # plain help: no boxes, and nothing in it is markup
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        epilog="Exit codes: 0 ok, 1 failure, 2 usage, 3 store unreachable, 4 not found, 5 refused, 6 job failed.",
    )
    cli.callback()(start)
    commands.register(cli, argv)
    return cli


def hoist(argv: Sequence[str]) -> list[str]:
    """Move the shared options to the front, so that they may stand anywhere before a `--`."""
    shared: list[str] = []
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word in _TAKES_VALUE:
            value = next(words, None)
            if value is None:
                return [word]  # alone, so that the parser says what is missing
            shared += [word, value]
        elif word in _FLAGS or word.partition("=")[0] in _TAKES_VALUE:
            shared.append(word)
        else:
            rest.append(word)
    return shared + rest


def run(argv: Sequence[str]) -> int:
    """Carry out one command line; whatever happens, an exit code comes of it, and errors are one line."""
    words = hoist(argv)
    _prepare_completion()
    debug = "--debug" in words
    try:
        answer = typer.main.get_command(program(words)).main(args=words, prog_name="windlass", standalone_mode=False)
    except Stop as stop:
        if stop.message:
            complain(stop.message)
        return stop.code
    except WindlassError as error:
        if debug:
            raise
        complain(error)
        return exit_code(error)
    except BrokenPipeError:
        # The reader of our output has closed it. Python would complain once more at exit if it could still write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  # a command line ends with one line and a code, whatever happened
        return _unexpected(error, debug=debug)
    return answer if isinstance(answer, int) else OK


def _prepare_completion() -> None:
    if "_WINDLASS_COMPLETE" in os.environ:  # a shell asks, through the script that `completion` printed
        from typer._completion_classes import completion_init  # what add_completion=True would call

        completion_init()


def _unexpected(error: Exception, *, debug: bool) -> int:
    told = getattr(error, "format_message", None)  # a usage error of typer's parser, whichever version it is from
    if told is not None:
        ctx = getattr(error, "ctx", None)
        where = ctx.command_path if ctx is not None else "windlass"
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(told(), err=True)
        else:
            complain(f"{told()} (see {where} --help)")
        return USAGE
    if debug:
        raise error
    error = _first(error)
    if isinstance(error, WindlassError):
        complain(error)
        return exit_code(error)
    complain(f"{type(error).__name__}: {error} (--debug shows where)")
    return FAILURE


def _first(error: Exception) -> Exception:
    """Out of the groups that task groups make, the error that began it."""
    found: Exception = error
    while isinstance(found, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", found)
        found = group.exceptions[0]
    return found


def main() -> None:
    """The console script."""
    # The program has a voice of its own: what jobs log on the way is for those who ask, with `worker`.
    logging.getLogger(LOGGER).addHandler(logging.NullHandler())
    for stream in (sys.stdout, sys.stderr):
        # A terminal or file that cannot show a character gets a mark for it, not an exception.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a text stream
    sys.exit(run(sys.argv[1:]))
