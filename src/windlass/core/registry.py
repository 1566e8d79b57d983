"""The registry: from the type stored on a job to the handler declared for it. A job never names code."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from windlass.core.errors import HandlerExists, HandlerNotFound
from windlass.core.keys import LONGEST_NAME, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from windlass.core.around import Layer
    from windlass.core.context import Ctx
    from windlass.core.handler import Declaration
    from windlass.core.spans import Spans


_NAMED = 3
"""so many handlers are named in a message"""


class Registry:
    """The handlers of one application by name, and what is laid around their runs and enqueues."""

    __slots__ = ("_allow_override", "_around_enqueue", "_around_run", "_built_in", "_by_name", "spans")

    def __init__(self, *, allow_override: bool = False) -> None:
        self._by_name: dict[str, Declaration] = {}
        self._built_in: dict[str, Declaration] = {}
        self._allow_override = allow_override
        self._around_run: tuple[Layer[Ctx], ...] = ()
        self._around_enqueue: tuple[Layer[Any], ...] = ()
        self.spans: Spans | None = None
        """what writes spans of all that is sent and run, where the application is traced"""

    def add(self, declaration: Declaration) -> None:
        """Register a handler; a second one of the same name is an error, unless it was said that it replaces."""
        known = self._by_name.get(declaration.name) or self._built_in.get(declaration.name)
        if known is not None and not self._allow_override:
            raise HandlerExists(
                f"the name {declaration.name!r} is taken by {known.source}, and {declaration.source} claims it too:"
                " give one of them another name, or in tests make the application with allow_override=True"
            )
        self._by_name[declaration.name] = declaration

    def build_in(self, declaration: Declaration) -> None:
        """Register a handler of windlass's own: workers run it, but it is none of the application's."""
        self._built_in[declaration.name] = declaration

    def built_in(self, queues: Iterable[str] | None = None) -> frozenset[str]:
        """The types of windlass's own; of these queues, where some are given."""
        return frozenset(
            name for name, one in self._built_in.items() if queues is None or one.options.queue in set(queues)
        )

    def get(self, name: str) -> Declaration:
        """The handler of that name, or an error that names the nearest ones."""
        try:
            return self._built_in[name] if name in self._built_in else self._by_name[name]
        except KeyError:
            raise HandlerNotFound(f"no handler is registered for the type {shown(name)}: {self._hint(name)}") from None

    def lay_around_run(self, layer: Layer[Ctx]) -> None:
        """Put a layer inside those that are around every run already."""
        self._around_run = (*self._around_run, layer)

    def lay_around_enqueue(self, layer: Layer[Any]) -> None:
        """Put a layer inside those that are around every enqueue already."""
        self._around_enqueue = (*self._around_enqueue, layer)

    def around_run(self, declaration: Declaration) -> tuple[Layer[Ctx], ...]:
        """The layers around a run of this handler, the outermost first: the application's, then its own."""
        own = declaration.around_run
        if declaration.name in self._built_in:
            return own
        return self._around_run + own if own else self._around_run

    def around_enqueue(self, name: str) -> tuple[Layer[Any], ...]:
        """The same around an enqueue, of a type that need not be known here."""
        known = self._by_name.get(name)
        return self._around_enqueue if known is None else self._around_enqueue + known.around_enqueue

    def _hint(self, name: str) -> str:
        # Only for what could be a name: comparing takes time by the square of its length, and it may be a stranger's.
        near = get_close_matches(name, self._by_name, n=_NAMED) if len(name) <= LONGEST_NAME else []
        if near:
            return f"did you mean {' or '.join(near)}?"
        known = sorted(self._by_name)
        more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
        return f"known: {', '.join(known[:_NAMED]) or 'none'}{more}"

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Declaration]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)
