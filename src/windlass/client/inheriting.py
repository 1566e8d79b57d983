"""Inheriting: what a job enqueued by a running job takes over from it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windlass.core.context import running

if TYPE_CHECKING:
    from windlass.core.context import Ctx
    from windlass.core.draft import Options


class Inheritance:
    """Lays the running job's context under the options of its children.

    A child names its parent, and has its parent's user, entity and correlation where neither its handler nor its caller
    gave one. A parent without a correlation is the root of a tree: its own id is the correlation of all below it.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[Options, Ctx, Options] | None = None

    def of(self, options: Options) -> Options:
        """The options of a job enqueued here; what its caller has decided stays, even where that is nothing."""
        ctx = running()
        if ctx is None:
            return options
        last = self._last
        # By the thousand, jobs are made with the same options by the same parent: they share what comes of it.
        if last is not None and last[0] is options and last[1] is ctx:
            return last[2]
        laid = replace(options, **_taken_over(options, ctx))
        self._last = (options, ctx, laid)
        return laid


def _taken_over(options: Options, ctx: Ctx) -> dict[str, Any]:
    job = ctx.job
    found: dict[str, Any] = {"parent_id": options.parent_id or job.id}
    if options.correlation_id is None and "correlation" not in options.decided:
        found["correlation_id"] = job.correlation_id or job.id
    if options.user_id is None and "user" not in options.decided:
        found["user_id"] = job.user_id
    if options.entity_name is None and "entity" not in options.decided:
        found["entity_name"], found["entity_id"] = job.entity_name, job.entity_id
    return found
