"""The filter options that looking and operating share: one table of them, and the commands that take them."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from windlass.cli.words import duration, entity, instant
from windlass.client.searching import Search
from windlass.core.errors import SettingsError
from windlass.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_WHEN = "TIME|DURATION"
OPTIONS: dict[str, Any] = {
    "status": Annotated[
        list[str] | None,
        typer.Option("--status", "-s", help=f"One of {', '.join(Status)}; may be given several times."),
    ],
    "type": Annotated[
        str | None, typer.Option("--type", "-t", help="The handler's name; 'import.*' for all of those.")
    ],
    "queue": Annotated[str | None, typer.Option("--queue", "-q", help="The queue.")],
    "user": Annotated[str | None, typer.Option("--user", help="Whose jobs.")],
    "entity": Annotated[str | None, typer.Option("--entity", metavar="NAME:ID", help="What they are about.")],
    "correlation": Annotated[str | None, typer.Option("--correlation", metavar="ID", help="What they belong to.")],
    "tags": Annotated[list[str] | None, typer.Option("--tag", help="With this tag; may be given several times.")],
    "unique_key": Annotated[str | None, typer.Option("--unique-key", metavar="KEY", help="Who holds this key now.")],
    "worker": Annotated[str | None, typer.Option("--worker", metavar="ID", help="Run by this worker.")],
    "attempts_at_least": Annotated[int | None, typer.Option("--attempts-at-least", metavar="N", min=0, help="Tries.")],
    "attempts_at_most": Annotated[int | None, typer.Option("--attempts-at-most", metavar="N", min=0, help="Tries.")],
    "created_since": Annotated[
        str | None, typer.Option("--created-since", metavar=_WHEN, help="From then on; 2h is two hours ago.")
    ],
    "created_before": Annotated[str | None, typer.Option("--created-before", metavar=_WHEN, help="Before then.")],
    "finished_since": Annotated[str | None, typer.Option("--finished-since", metavar=_WHEN, help="From then on.")],
    "finished_before": Annotated[str | None, typer.Option("--finished-before", metavar=_WHEN, help="Before then.")],
    "fingerprint": Annotated[
        str | None, typer.Option("--fingerprint", "-f", metavar="X", help="Those that failed so; see windlass dead.")
    ],
    "where": Annotated[
        str | None,
        typer.Option(
            "--where", "-w", metavar="LINE", help="In one line: 'status:failed ran>5s -tag:test error:refused'."
        ),
    ],
}
"""By the word of a search that each gives."""
_INSTANTS = ("created_since", "created_before", "finished_since", "finished_before")


def searching(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The command with the options above, but for some, in place of its parameter `wanted`: the search they give."""

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        words = [word for word in OPTIONS if word not in without]

        @wraps(command)
        def run(**given: Any) -> None:
            options = {word: given.pop(word) for word in words}
            command(wanted=search(options), **given)

        hints = get_type_hints(command, include_extras=True)
        run.__signature__ = inspect.Signature(_parameters(command, hints, words))  # type: ignore[attr-defined]  # read by typer
        run.__annotations__ = {**hints, **{word: OPTIONS[word] for word in words}}
        return run

    return with_options


def search(given: Mapping[str, Any]) -> Search:
    """What was given, each by its word."""
    found: dict[str, Any] = {word: value for word, value in given.items() if value not in (None, [])}
    for status in found.get("status", ()):
        if status not in Status.__members__.values():
            raise SettingsError(f"--status is {status!r}: expected one of {', '.join(Status)}")
    if "entity" in found:
        found["entity"] = entity(found["entity"])
    for word in _INSTANTS:
        if word in found:
            found[word] = moment(found[word], f"--{word.replace('_', '-')}")
    words: Search = {}
    # The words are those of the table, which a checker cannot follow into the dictionary.
    words.update(found)  # type: ignore[typeddict-item]  # by name
    return words


def _parameters(command: Callable[..., None], hints: Mapping[str, Any], words: list[str]) -> list[inspect.Parameter]:
    made: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name == "wanted":
            made += [_parameter(word, OPTIONS[word], None) for word in words]
        else:
            made.append(_parameter(parameter.name, hints[parameter.name], parameter.default))
    return made


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def moment(text: str, of: str) -> datetime:
    """A time, or how long ago."""
    try:
        return datetime.now(UTC) - duration(text, of)
    except SettingsError:
        return instant(text, of)
