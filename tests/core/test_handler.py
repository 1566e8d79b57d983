from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Generic, NoReturn, TypeVar

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from tests.core.making import declared
from windlass.core.context import Ctx
from windlass.core.draft import Options
from windlass.core.errors import HandlerError, PayloadInvalid, SettingsError
from windlass.core.handler import ATTRIBUTES, Declaration, Handler, declare_instance, declared_by, name_of
from windlass.core.limit import Limit
from windlass.core.rate import Rate
from windlass.core.retry import DEFAULT_POLICY
from windlass.core.unique import Unique

if TYPE_CHECKING:
    from decimal import Decimal

AN_ID = "0190a3c4-5d6e-7f80-9123-456789abcdef"

# functions


async def send(ctx: Ctx, order_id: int, *, copy_to: str | None = None) -> str:
    return f"{ctx.id} {order_id} {copy_to}"


def thumbnail(path: str, size: int = 100) -> str:
    return f"{path}@{size}"


def test_an_async_function_runs_in_the_loop_and_another_in_a_thread() -> None:
    assert declared(send).mode == "coroutine"
    assert declared(thumbnail).mode == "thread"
    assert declared(thumbnail, process=True).mode == "process"
    assert declared(send, process=True).mode == "process"


def test_a_declaration_keeps_what_it_was_given() -> None:
    found = declared(thumbnail, name="thumb", queue="images")
    assert (found.name, found.call, found.options.queue) == ("thumb", thumbnail, "images")
    assert found.policy is DEFAULT_POLICY
    assert found.source == f"{__name__}.thumbnail"


@pytest.mark.parametrize("name", ["", " a", "a" * 201, "a\x00"])
def test_a_handlers_name_is_a_name(name: str) -> None:
    with pytest.raises(SettingsError, match=r"the handler's name is"):
        declared(thumbnail, name=name)


# ctx


def bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as if it had been written without annotations."""
    function.__annotations__ = {}
    return function


@bare
def by_name_alone(ctx: Any, order_id: Any) -> None: ...


@bare
def without_types(order_id: Any, copy_to: Any = None) -> None: ...


@bare
def second_by_name(order_id: Any, ctx: Any) -> None: ...


@bare
def keyword_by_name(*, ctx: Any) -> None: ...


def by_another_name(context: Ctx, order_id: int) -> None: ...


def evaluated_at_once(context: Any, order_id: int) -> None: ...


evaluated_at_once.__annotations__ = {"context": Ctx, "order_id": int, "return": None}
"""as in a module without `from __future__ import annotations`"""


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (send, True),
        (by_another_name, True),
        (evaluated_at_once, True),
        (by_name_alone, True),
        (without_types, False),
        (thumbnail, False),
    ],
)
def test_the_context_is_the_first_parameter_by_its_type_or_else_by_its_name(
    function: Callable[..., Any], wanted: bool
) -> None:
    found = declared(function)
    assert found.wants_ctx is wanted
    first = found.codec.encode(("f1",) if function is thumbnail else (42,), {})
    assert "ctx" not in first
    assert "context" not in first


def annotated_otherwise(ctx: str) -> str:
    return ctx


def test_a_ctx_of_another_type_is_an_argument_like_any() -> None:
    found = declared(annotated_otherwise)
    assert not found.wants_ctx
    assert found.codec.encode(("x",), {}) == '{"ctx":"x"}'


def later(order_id: int, ctx: Ctx) -> None: ...


def by_keyword(*, ctx: Ctx) -> None: ...


def perhaps(ctx: Ctx | None = None) -> None: ...


@pytest.mark.parametrize("function", [later, by_keyword, perhaps, second_by_name, keyword_by_name])
def test_a_context_anywhere_else_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(HandlerError, match=r"the context is the first parameter, plainly ctx: Ctx"):
        declared(function)


# what cannot be a handler


def a_generator() -> Iterator[int]:
    yield 1


async def an_async_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("function", [a_generator, an_async_generator])
def test_a_generator_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(HandlerError, match=r"is a generator: a handler returns once; use ctx.progress"):
        declared(function)


def any_positions(*orders: int) -> None: ...


def any_names(**orders: int) -> None: ...


def by_position_only(order_id: int, /) -> None: ...


@pytest.mark.parametrize(
    ("function", "parameter"),
    [(any_positions, r"\*orders"), (any_names, r"\*\*orders"), (by_position_only, "order_id")],
)
def test_parameters_without_a_name_of_their_own_are_refused(function: Callable[..., Any], parameter: str) -> None:
    with pytest.raises(HandlerError, match=rf"takes {parameter}.*: a job's arguments are stored by name"):
        declared(function)


class Called:
    def __call__(self, order_id: int) -> None: ...


@pytest.mark.parametrize("function", [functools.partial(thumbnail, "a"), Called(), Called, int])
def test_what_is_not_a_function_is_refused(function: Any) -> None:
    with pytest.raises(HandlerError, match=r"is not a function: declare a function, or a subclass of Handler"):
        declared(function)


def test_a_handler_with_a_process_of_its_own_is_at_the_top_level() -> None:
    def local() -> None: ...

    for function in (local, lambda: None):
        assert declared(function).mode == "thread"
        with pytest.raises(HandlerError, match=r"define it at the top level of a module"):
            declared(function, process=True)


def test_a_wrapped_function_is_declared_by_what_it_wraps() -> None:
    @functools.wraps(thumbnail)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return thumbnail(*args, **kwargs)

    assert declared(wrapper).codec.encode(("a",), {}) == '{"path":"a"}'


def test_a_method_is_declared_without_its_self() -> None:
    class Mailer:
        def send(self, order_id: int) -> None: ...

    assert declared(Mailer().send).codec.encode((42,), {}) == '{"order_id":42}'


# annotations


def for_checkers_only(price: Decimal) -> None: ...


def result_for_checkers_only() -> Decimal: ...  # type: ignore[empty-body]  # never called


def unknown_member(price: Any) -> None: ...


def not_an_annotation(price: Any) -> None: ...


unknown_member.__annotations__ = {"price": "functools.nothing"}
not_an_annotation.__annotations__ = {"price": "int |"}


@pytest.mark.parametrize("function", [for_checkers_only, result_for_checkers_only, unknown_member, not_an_annotation])
def test_annotations_that_cannot_be_read_are_refused_by_name(function: Callable[..., Any]) -> None:
    with pytest.raises(
        HandlerError, match=rf"the annotations of .*{function.__name__} cannot be read: .*TYPE_CHECKING"
    ):
        declared(function)


class Strange: ...


def takes_a_lock(order_id: int, lock: Lock) -> None: ...


def takes_something_strange(order_id: int, strange: list[Strange]) -> None: ...


def returns_something_strange() -> Strange:
    return Strange()


@pytest.mark.parametrize(
    ("function", "where"),
    [
        (takes_a_lock, "lock: "),
        (takes_something_strange, "strange: "),
        (returns_something_strange, "result: "),
    ],
)
def test_types_that_json_cannot_hold_are_refused_with_the_parameter(function: Callable[..., Any], where: str) -> None:
    with pytest.raises(HandlerError, match=r"the annotations of handler mail.send cannot be used: ") as caught:
        declared(function)
    assert f"cannot be used: {where}" in str(caught.value)
    assert len(str(caught.value)) < 500


def always_fails() -> NoReturn:
    raise ValueError("no")


def test_a_handler_that_never_returns_is_a_handler() -> None:
    assert declared(always_fails).codec.encode_result(None) == "null"


# keys


def test_a_job_without_keys_is_a_draft_of_its_options_themselves() -> None:
    found = declared(thumbnail, queue="images")
    draft = found.draft(AN_ID, found.codec.encode(("a.png",), {}), found.options)
    assert (draft.id, draft.type, draft.options is found.options) == (AN_ID, "mail.send", True)
    assert draft.payload_json == '{"path":"a.png"}'


def test_a_handlers_keys_are_filled_from_its_arguments_and_defaults() -> None:
    found = declared(thumbnail, limit=Limit("{path}@{size}", 2), unique=Unique.of("u:{path}"))
    draft = found.draft(AN_ID, found.codec.encode(("a.png",), {}), found.options)
    assert (draft.type, draft.limit_key, draft.limit) == ("mail.send", "a.png@100", 2)
    assert (draft.unique_queued, draft.unique_running) == ("u:a.png", "u:a.png")


def test_a_callers_unique_key_is_not_a_template() -> None:
    found = declared(thumbnail, unique=Unique.of("u:{path}"))
    options = Options(unique=Unique.of("{nothing}"))
    assert found.draft(AN_ID, '{"path":"a"}', options).unique_queued == "{nothing}"


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


def resize(path: str, size: Size = Size.SMALL) -> None: ...


def test_a_key_is_the_same_whether_a_default_is_left_out_or_given() -> None:
    found = declared(resize, limit=Limit("{path}@{size}"))
    keys = {
        found.draft(AN_ID, found.codec.encode(args, {}), found.options).limit_key
        for args in (("a",), ("a", Size.SMALL))
    }
    assert keys == {"a@s"}


@pytest.mark.parametrize(
    "options",
    [
        {"limit": Limit("{page}")},
        {"unique": Unique(queued="{page}")},
        {"unique": Unique(running="{path}{page}")},
        {"rate": Rate(5, key="{page}")},
        {"fair_by": "{page}"},
    ],
)
def test_a_key_that_names_what_the_handler_does_not_take_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(HandlerError, match=r"the key '.*' of .*thumbnail names page, which it does not take"):
        declared(thumbnail, **options)


def test_the_context_fills_no_key() -> None:
    with pytest.raises(HandlerError, match=r"names ctx, which it does not take"):
        declared(send, limit=Limit("{ctx}"))


def test_a_unique_key_that_cannot_be_filled_in_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"the key template '{path' cannot be read"):
        declared(thumbnail, unique=Unique.of("{path"))


# classes


@dataclass
class Shift:
    worker: str
    starts_at: datetime | None = None


class ShiftModel(BaseModel):
    worker: str


class ShiftDict(TypedDict):
    worker: str


D = TypeVar("D")
R = TypeVar("R")


class Remind(Handler[Shift, str], name="remind", queue="mail", retry=5):
    async def perform(self, data: Shift) -> str:
        return data.worker


class RemindLoudly(Remind, queue="loud", timeout=timedelta(seconds=5)):
    pass


class Silent(Remind):
    pass


class Many(Handler[list[D], R], Generic[D, R]):
    def perform(self, data: list[D]) -> R:
        raise NotImplementedError


class ManyShifts(Many[Shift, None], queue="many"):
    pass


class Swapped(Many[R, D], Generic[D, R]):
    pass


class SwappedShifts(Swapped[str, int]):
    pass


class Mixed(dict[str, int], Handler[int, int]):
    def perform(self, data: int) -> int:
        return data


class Untyped(Handler):  # type: ignore[type-arg]  # what is tested
    def perform(self, data: Any) -> Any:
        return data


class HalfTyped(Many[D, None]):
    pass


NOWHERE: Any = "Nowhere"


class Quoted(Handler[NOWHERE, None]):
    def perform(self, data: Any) -> None: ...


class Yields(Handler[int, None]):
    def perform(self, data: int) -> Any:
        yield data


def of(handler: Handler[Any, Any], name: str = "remind", **options: Any) -> Declaration:
    return declare_instance(handler, name=name, options=Options(**options), policy=DEFAULT_POLICY)


def test_a_class_declares_its_options_where_a_class_takes_keywords() -> None:
    assert Remind.declared == {"name": "remind", "queue": "mail", "retry": 5}
    assert Handler.declared == {}


def test_options_are_inherited_and_laid_over() -> None:
    assert RemindLoudly.declared == {"name": "remind", "queue": "loud", "retry": 5, "timeout": timedelta(seconds=5)}
    assert Silent.declared == Remind.declared


def test_the_data_of_a_class_handler_is_the_whole_payload() -> None:
    found = of(Remind())
    assert found.codec.encode((Shift("ann"),), {}) == '{"starts_at":null,"worker":"ann"}'
    assert found.codec.encode((), {"data": Shift("ann")}) == '{"starts_at":null,"worker":"ann"}'
    assert found.codec.decode('{"worker":"ann"}') == {"data": Shift("ann")}
    assert found.codec.encode_plain({"worker": "ann"}) == '{"starts_at":null,"worker":"ann"}'
    assert found.codec.encode_result("sent") == '"sent"'
    assert found.codec.first == "*"
    assert found.codec.names == {"data"}


def test_a_class_handler_knows_how_it_runs_and_where_it_comes_from() -> None:
    found = of(Remind())
    assert (found.mode, found.wants_ctx, found.source) == ("coroutine", False, f"{__name__}.Remind")
    assert of(ManyShifts()).mode == "thread"


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((), {"worker": "ann"}), ((Shift("a"),), {"x": 1})])
def test_a_class_handler_takes_its_data_as_one_argument(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with pytest.raises(PayloadInvalid, match=r"remind takes its data as one argument, found"):
        of(Remind()).codec.encode(args, kwargs)


def test_a_class_handler_refuses_more_than_one_argument() -> None:
    with pytest.raises(PayloadInvalid, match=r"takes 1 positional arguments, 2 were given"):
        of(Remind()).codec.encode((Shift("a"), 1), {})


def test_types_are_found_through_subclasses() -> None:
    assert of(RemindLoudly()).codec.decode('{"worker":"ann"}') == {"data": Shift("ann")}
    assert of(Mixed()).codec.decode("5") == {"data": 5}


def test_types_are_found_through_generic_subclasses() -> None:
    found = of(ManyShifts())
    assert found.codec.encode(([Shift("ann")],), {}) == '[{"starts_at":null,"worker":"ann"}]'
    assert found.codec.encode_result(None) == "null"
    with pytest.raises(PayloadInvalid, match=r"data\[0\]"):
        found.codec.encode(([5],), {})


def test_types_are_found_also_where_a_generic_subclass_changes_their_order() -> None:
    found = of(SwappedShifts())
    assert found.codec.encode(([5],), {}) == "[5]"
    assert found.codec.encode_result("x") == '"x"'
    with pytest.raises(PayloadInvalid):
        found.codec.encode((["x"],), {})


def test_a_class_that_does_not_say_its_types_is_refused() -> None:
    with pytest.raises(HandlerError, match=r"Untyped does not say its types: write class Untyped\(Handler\[TheData"):
        of(Untyped())
    with pytest.raises(HandlerError, match=r"Many does not say its types"):
        of(Many[Any, Any]())
    with pytest.raises(HandlerError, match=r"annotations of handler remind cannot be used"):
        of(Quoted())


def test_a_type_left_open_inside_another_is_refused() -> None:
    with pytest.raises(HandlerError, match=r"HalfTyped does not say its types"):
        of(HalfTyped[Any]())


def test_a_class_handler_that_yields_is_refused() -> None:
    with pytest.raises(HandlerError, match=r"is a generator"):
        of(Yields())


@pytest.mark.parametrize("name", ["", "a\x00"])
def test_a_class_handlers_name_is_a_name(name: str) -> None:
    with pytest.raises(SettingsError, match=r"the handler's name is"):
        of(Remind(), name=name)


class RemindModel(Handler[ShiftModel, None]):
    def perform(self, data: ShiftModel) -> None: ...


class RemindDict(Handler[ShiftDict, None]):
    def perform(self, data: ShiftDict) -> None: ...


class RemindAnything(Handler[dict[str, Any], None]):
    def perform(self, data: dict[str, Any]) -> None: ...


@pytest.mark.parametrize("handler", [Remind(), RemindModel(), RemindDict()])
def test_a_class_handlers_keys_are_checked_against_its_data(handler: Handler[Any, Any]) -> None:
    found = of(handler, limit=Limit("{worker}"))
    draft = found.draft(AN_ID, found.codec.encode_plain({"worker": "ann"}), found.options)
    assert draft.limit_key == "ann"
    with pytest.raises(HandlerError, match=r"names boss, which it does not take"):
        of(handler, limit=Limit("{boss}"))


def test_where_the_data_has_no_fields_its_keys_are_checked_job_by_job() -> None:
    found = of(RemindAnything(), limit=Limit("{worker}"))
    assert found.draft(AN_ID, found.codec.encode_plain({"worker": "ann"}), found.options).limit_key == "ann"
    with pytest.raises(PayloadInvalid, match=r"needs the argument 'worker'"):
        found.draft(AN_ID, found.codec.encode_plain({}), found.options)
    with pytest.raises(SettingsError, match=r"the key template"):
        of(RemindAnything(), unique=Unique.of("{worker"))


def constrained(n: Annotated[int, "a note"], *, at: datetime) -> None: ...


def test_keyword_only_parameters_are_given_by_name_only() -> None:
    codec = declared(constrained).codec
    with pytest.raises(PayloadInvalid, match=r"takes 1 positional arguments, 2 were given"):
        codec.encode((1, datetime(2024, 1, 1)), {})  # noqa: DTZ001  # naive on purpose
    assert codec.encode((1,), {"at": datetime(2024, 1, 1)}) == '{"at":"2024-01-01T00:00:00","n":1}'  # noqa: DTZ001  # without a zone


def test_the_first_argument_is_known_by_name() -> None:
    def none() -> None: ...
    def by_name_only(*, a: int) -> None: ...
    def two(ctx: Ctx, a: int, b: int = 2) -> None: ...

    assert [declared(one).codec.first for one in (none, by_name_only, two)] == [None, None, "a"]


class Renamed(Handler[int, int]):
    """Doubles."""

    def perform(self, number: int, /) -> int:
        return number * 2


class WithCtx(Handler[int, Any]):
    def perform(self, data: int, context: Ctx) -> Any:
        return data, context


class Unannotated(Handler[int, Any]):
    # What is tested is that it needs no annotations.
    def perform(self, data, job):  # type: ignore[no-untyped-def]  # pyright: ignore  # noqa: ANN001, ANN201, PGH003
        return data, job  # pyright: ignore[reportUnknownVariableType]  # the same


class Unreadable(Handler[int, Any]):
    def perform(self, data: Nowhere, context: windlass.Ctx) -> Any:  # type: ignore[name-defined]  # pyright: ignore  # noqa: F821, PGH003
        return data, context


class CtxAlone(Handler[int, None]):
    def perform(self, ctx: Ctx) -> None: ...  # type: ignore[override]  # what is tested


class SecondIsNone(Handler[int, None]):
    def perform(self, data: int, user: str) -> None: ...


class NoData(Handler[int, None]):
    def perform(self) -> None: ...  # type: ignore[override]  # what is tested


class OnlyByName(Handler[int, None]):
    def perform(self, *, data: int) -> None: ...  # type: ignore[override]  # what is tested


def test_the_data_goes_to_the_first_parameter_whatever_its_name() -> None:
    found = of(Renamed())
    assert (found.call(data=4), found.wants_ctx, found.call.__doc__) == (8, False, None)
    assert isinstance(found.handler, Renamed)


@pytest.mark.parametrize("handler", [WithCtx(), Unannotated(), Unreadable()])
def test_the_context_goes_to_the_second(handler: Handler[int, Any]) -> None:
    found = of(handler)
    context = object()
    assert found.wants_ctx
    assert found.call(context, data=4) == (4, context)


@pytest.mark.parametrize("handler", [CtxAlone(), SecondIsNone(), NoData(), OnlyByName()])
def test_another_form_of_perform_is_refused(handler: Handler[int, None]) -> None:
    with pytest.raises(HandlerError, match=r"write perform\(self, data\) or perform\(self, data, ctx: Ctx\)"):
        of(handler)


WORDS = (*ATTRIBUTES, "priority")


class ByAttributes(Handler[int, None]):
    name = "by.attributes"
    queue = "mail"

    def perform(self, data: int) -> None: ...

    def priority(self) -> int:
        return 3


class Below(ByAttributes, queue="loud", retry=4):
    pass


class Same(ByAttributes, queue="mail"):
    queue = "mail"


class Twice(ByAttributes, queue="mail"):
    queue = "other"


class Unread(ByAttributes):
    priority = 3  # type: ignore[assignment]  # pyright: ignore  # noqa: PGH003  # what is tested


def test_attributes_declare_and_the_class_below_wins() -> None:
    assert declared_by(ByAttributes, WORDS) == {"name": "by.attributes", "queue": "mail"}
    assert declared_by(Below, WORDS) == {"name": "by.attributes", "queue": "loud", "retry": 4}
    assert declared_by(Same, WORDS)["queue"] == "mail"
    assert (name_of(Below), name_of(Renamed)) == ("by.attributes", "Renamed")


def test_an_attribute_that_is_not_read_or_contradicts_is_refused() -> None:
    with pytest.raises(HandlerError, match=r"Unread has the attribute priority, which is not read"):
        declared_by(Unread, WORDS)
    with pytest.raises(HandlerError, match=r"Twice declares queue twice, as 'mail' and as 'other'"):
        declared_by(Twice, WORDS)
