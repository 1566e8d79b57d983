"""Class handlers: the forms that `add` takes, and what it says of the others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from windlass import Ctx, Handler, HandlerError, HandlerNotFound, Windlass


@dataclass
class Shift:
    id: str


class AnyName(Handler[Shift, str]):
    async def perform(self, shift: Shift) -> str:
        return shift.id


class PositionalOnly(Handler[Shift, str]):
    def perform(self, shift: Shift, /) -> str:
        return shift.id


class WithCtx(Handler[Shift, str]):
    async def perform(self, shift: Shift, context: Ctx) -> str:
        return f"{shift.id} {context.attempt}"


class InThread(Handler[Shift, str]):
    def perform(self, data: Shift, ctx: Ctx) -> str:
        return f"{data.id} {ctx.attempt}"


class Seeds(Handler[Shift, str]):
    """As the seed writes them."""

    name = "ShiftStartReminder"
    max_attempts = 3

    # What is tested is that it needs no annotations.
    async def perform(self, data, job):  # type: ignore[no-untyped-def]  # pyright: ignore  # noqa: ANN001, ANN201, PGH003
        return f"{data.id} {job.attempt}"  # pyright: ignore[reportUnknownMemberType]  # a context that was left without a type


@pytest.mark.parametrize(
    ("handler", "result"),
    [(AnyName, "s1"), (PositionalOnly, "s1"), (WithCtx, "s1 1"), (InThread, "s1 1"), (Seeds, "s1 1")],
)
async def test_these_forms_run(app: Windlass, handler: type[Handler[Shift, str]], result: str) -> None:
    added = app.add(handler)
    async with app.worker():
        assert await (await added.enqueue(Shift("s1"))).result(10) == result
        assert await (await app.enqueue(added.name, {"id": "s1"})).result(10) == result
    called: Any = added.call(Shift("s1"))
    assert (called if isinstance(called, str) else await called) == result


class CtxFirst(Handler[Shift, None]):
    def perform(self, ctx: Ctx, data: Shift) -> None: ...  # type: ignore[override]  # what is tested


class WantsJob(Handler[Shift, None]):
    def perform(self, data: Shift, user: str) -> None: ...


class Three(Handler[Shift, None]):
    def perform(self, data: Shift, ctx: Ctx, more: int) -> None: ...


class Nothing(Handler[Shift, None]):
    def perform(self) -> None: ...  # type: ignore[override]  # what is tested


class ByName(Handler[Shift, None]):
    def perform(self, *, data: Shift) -> None: ...  # type: ignore[override]  # what is tested


class Rest(Handler[Shift, None]):
    def perform(self, data: Shift, *more: Any) -> None: ...


@pytest.mark.parametrize("handler", [CtxFirst, WantsJob, Three, Nothing, ByName, Rest])
def test_other_forms_are_refused_when_they_are_added(app: Windlass, handler: type[Handler[Shift, None]]) -> None:
    with pytest.raises(HandlerError, match=r"perform\(self, data\) or perform\(self, data, ctx: Ctx\)"):
        app.add(handler)


class Attributes(Handler[int, None]):
    name = "by.attributes"
    queue = "mail"
    retry = 4
    timeout = timedelta(seconds=5)

    def perform(self, data: int) -> None: ...


class Below(Attributes, queue="loud"):
    max_attempts = 2


class Again(Below):
    queue = "last"


class Mixin:
    queue = "mixed"


class Mixed(Mixin, Handler[int, None]):
    def perform(self, data: int) -> None: ...


def test_attributes_declare_as_the_class_statement_does(app: Windlass) -> None:
    added = app.add(Attributes)
    assert (added.name, added.options.queue, added.options.max_attempts) == ("by.attributes", "mail", 4)
    assert added.options.timeout == timedelta(seconds=5)
    assert app.add(Mixed).options.queue == "mixed"


def test_the_class_below_wins_whichever_way_it_says_it(app: Windlass) -> None:
    other = Windlass(app.url)
    assert (app.add(Below).options.queue, other.add(Again).options.queue) == ("loud", "last")
    assert app.registry.get("by.attributes").options.max_attempts == 2


class Twice(Handler[int, None], queue="mail"):
    queue = "other"

    def perform(self, data: int) -> None: ...


class Unread(Handler[int, None]):
    priority = "high"

    def perform(self, data: int) -> None: ...


class Innocent(Handler[int, None]):
    @property
    def name(self) -> str:
        return "not declared"

    def delay(self) -> int:
        return 3

    def perform(self, data: int) -> None: ...


def test_what_is_not_read_from_attributes_is_refused(app: Windlass) -> None:
    with pytest.raises(HandlerError, match=r"Unread has the attribute priority.*class Unread\(Handler\[…\], priority="):
        app.add(Unread)
    with pytest.raises(HandlerError, match=r"Twice declares queue twice, as 'mail' and as 'other'"):
        app.add(Twice)
    assert app.add(Innocent).name == "Innocent"


async def test_a_class_that_was_not_added_is_refused_for_that(app: Windlass) -> None:
    for unknown in (AnyName, AnyName()):
        with pytest.raises(HandlerNotFound, match=r"AnyName was not added to this application: app\.add\(AnyName"):
            await app.enqueue(unknown, Shift("s1"))
    assert (await app.jobs.count()).n == 0


async def test_another_class_of_the_same_name_is_not_taken_for_it(app: Windlass) -> None:
    class Stranger(Handler[Shift, None], name="AnyName"):
        def perform(self, data: Shift) -> None: ...

    app.add(AnyName)
    with pytest.raises(HandlerNotFound, match=r"Stranger was not added.*AnyName is the name of .*\.AnyName"):
        await app.enqueue(Stranger, Shift("s1"))


async def test_a_class_is_enqueued_with_what_it_declares_by_itself_or_its_instance(app: Windlass) -> None:
    instance = Seeds()
    app.add(instance)
    for known in (Seeds, instance, Seeds()):
        job = await (await app.enqueue(known, Shift("s1"))).job()
        assert (job.type, job.max_attempts) == ("ShiftStartReminder", 3)
    job = await app.enqueue_sync(instance, Shift("s2"), queue="vip").job()
    assert (job.queue, job.payload) == ("vip", {"id": "s2"})
