"""Handlers: what a function or class declares when it becomes one."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from windlass.core.batch import MOST, Batched
from windlass.core.context import Ctx
from windlass.core.declared import Declared, describe
from windlass.core.draft import FAIR_FIELDS, Draft, Options, fair_key
from windlass.core.errors import HandlerError
from windlass.core.keys import check_name, shown, template
from windlass.core.payload import Codec
from windlass.core.sealing import content
from windlass.core.unique import idempotency_key
from windlass.core.upgrading import Upgrade, read
from windlass.core.values import plain

if TYPE_CHECKING:
    from windlass.core.around import Layer
    from windlass.core.every import When
    from windlass.core.retry import Retry
    from windlass.core.sealing import Seals

D = TypeVar("D")
R = TypeVar("R")
_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_FORMS = "perform(self, data) or perform(self, data, ctx: Ctx)"
ATTRIBUTES = ("name", "queue", "max_attempts", "retry", "timeout")
"""what a class handler may also declare as attributes"""
Mode: TypeAlias = Literal["coroutine", "thread", "process"]


class Handler(ABC, Generic[D, R]):
    """A handler with dependencies: one instance does every job of its type.

    Subclass it with the type of its data and of its result, and give its options where a class takes keywords:
    `class Remind(Handler[Shift, None], name="remind", queue="mail", retry=5)`. `name`, `queue`, `max_attempts`,
    `retry` and `timeout` may be attributes of the class instead.
    """

    declared: ClassVar[Mapping[str, Any]] = {}
    _keywords: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **declared: Any) -> None:
        """Remember what the class statement declared; `Windlass.add` reads it."""
        super().__init_subclass__()
        cls.declared = {**cls.declared, **declared}
        cls._keywords = declared

    @abstractmethod
    def perform(self, data: D, /, *args: Any, **kwargs: Any) -> R | Awaitable[R]:
        """Do the job; as `async def` it runs in the event loop, as `def` in a thread.

        Write it as `perform(self, data)`, whatever the data is called, or with the context behind it as
        `perform(self, data, ctx: Ctx)`. `add` refuses every other form.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A handler as the registry keeps it: what to call, how, and with which defaults its jobs are enqueued."""

    name: str
    call: Callable[..., Any]
    mode: Mode
    wants_ctx: bool
    codec: Codec
    options: Options
    policy: Retry
    schedules: tuple[When, ...]
    source: str
    handler: Handler[Any, Any] | None = None
    """the instance, where it is a class handler's"""
    upgrades: list[Upgrade] = field(default_factory=list["Upgrade"])
    """from older forms of its payload"""
    batch: int | None = None
    """how many jobs one call does at most, where it takes several"""
    around_run: tuple[Layer[Ctx], ...] = ()
    around_enqueue: tuple[Layer[Any], ...] = ()

    def arguments(self, payload_json: str) -> dict[str, Any]:
        """The typed arguments of a waiting job, upgraded if its payload is older; PayloadUnfit if it cannot be read."""
        return read(self.codec, self.upgrades, payload_json)

    def described(self, version: str | None = None) -> Declared:
        """What it declares, for processes without its code: with schemas and fingerprint. Made at each call."""
        return describe(self.name, self.codec, self.options, self.policy, version, self.batch)

    def draft(self, job_id: str, payload_json: str, options: Options) -> Draft:
        """Make a job of this handler; key templates are filled from its own arguments."""
        if not has_keys(options):
            return Draft(id=job_id, type=self.name, payload_json=payload_json, options=options)
        templated = options.unique is self.options.unique
        codec = self.codec
        return make_draft(
            self.name, job_id, payload_json, options, templated=templated, defaults=codec.defaults, seals=codec.seals
        )


def has_keys(options: Options) -> bool:
    """Whether jobs with these options have keys that are made for each of them."""
    named = options.unique or options.limit or options.rate or options.fair_by
    return bool(named) or options.idempotency_window is not None


def make_draft(
    type_: str,
    job_id: str,
    payload_json: str,
    options: Options,
    *,
    templated: bool,
    defaults: Mapping[str, Any] | None = None,
    seals: Seals | None = None,
) -> Draft:
    """Resolve the keys of one job. Unique keys are templates where a handler declares them, plain text elsewhere.

    `defaults` stand in for arguments that the payload leaves out. By `seals` the same secret counts as the same for
    idempotency, though it is encrypted differently each time.
    """
    unique, limit, rate = options.unique, options.limit, options.rate
    if not has_keys(options):
        return Draft(id=job_id, type=type_, payload_json=payload_json, options=options)
    arguments: dict[str, Any] = {**defaults} if defaults else {}
    if limit is not None or rate is not None or options.fair_by is not None or (unique is not None and templated):
        found: object = plain(payload_json)
        arguments |= cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    def fill(key: str | None) -> str | None:
        return template(key).fill(arguments) if key is not None and templated else key

    return Draft(
        id=job_id,
        type=type_,
        payload_json=payload_json,
        options=options,
        unique_queued=fill(unique.queued) if unique else None,
        unique_running=fill(unique.running) if unique else None,
        idempotency_key=idempotency_key(type_, content(payload_json, seals, type_))
        if options.idempotency_window
        else None,
        limit_key=limit.key_for(arguments) if limit else None,
        limit=limit.n if limit else None,
        rate_key=rate.key_for(type_, arguments) if rate else None,
        fair_key=fair_key(options, arguments),
    )


def declare(
    function: Callable[..., Any],
    *,
    name: str,
    options: Options,
    policy: Retry,
    process: bool = False,
    schedules: tuple[When, ...] = (),
) -> Declaration:
    """Read a function's signature and declare it as a handler, or say what about it cannot be a job."""
    check_name(name, "the handler's name")
    if isinstance(function, type) or not hasattr(function, "__qualname__"):
        raise HandlerError(
            f"{shown(function)} is not a function: declare a function, or a subclass of Handler by add()"
        )
    source = f"{function.__module__}.{function.__qualname__}"
    _refuse_generator(function, source)
    if process and ("<locals>" in function.__qualname__ or "<lambda>" in function.__qualname__):
        raise HandlerError(f"{source} cannot run in a process of its own: define it at the top level of a module")
    hints, parameters = _signature(function, source)
    wants_ctx = bool(parameters) and _is_ctx(parameters[0], hints) and parameters[0].kind is not _KEYWORD_ONLY
    taken = {p.name: p for p in parameters[1 if wants_ctx else 0 :]}
    for parameter in taken.values():
        if _is_ctx(parameter, hints) or Ctx in get_args(hints.get(parameter.name)):
            raise HandlerError(f"{source} takes {parameter}: the context is the first parameter, plainly ctx: Ctx")
    codec = Codec(name, taken, hints)
    _check_templates(options, taken, source, codec.secrets)
    return Declaration(
        name=name,
        call=function,
        mode="process" if process else "coroutine" if inspect.iscoroutinefunction(function) else "thread",
        wants_ctx=wants_ctx,
        codec=codec,
        options=options,
        policy=policy,
        schedules=schedules,
        source=source,
    )


def declare_instance(
    handler: Handler[Any, Any], *, name: str, options: Options, policy: Retry, schedules: tuple[When, ...] = ()
) -> Declaration:
    """Declare a class handler by its instance: its data is the whole payload."""
    check_name(name, "the handler's name")
    cls = type(handler)
    source = f"{cls.__module__}.{cls.__qualname__}"
    _refuse_generator(handler.perform, source)
    call, wants_ctx = _performing(handler, source)
    data, result = _types_of(cls)
    parameter = inspect.Parameter("data", inspect.Parameter.POSITIONAL_ONLY)
    codec = Codec(name, {"data": parameter}, {"data": data, "return": result}, whole=True)
    _check_templates(options, _fields_of(data), source, codec.secrets)
    return Declaration(
        name=name,
        call=call,
        mode="coroutine" if inspect.iscoroutinefunction(handler.perform) else "thread",
        wants_ctx=wants_ctx,
        codec=codec,
        options=options,
        policy=policy,
        schedules=schedules,
        source=source,
        handler=handler,
    )


def declare_batch(
    function: Callable[..., Any],
    batch: int,
    *,
    name: str,
    options: Options,
    policy: Retry,
    process: bool = False,
    schedules: tuple[When, ...] = (),
) -> Declaration:
    """Declare a function that does several jobs in one call: what each is about is the whole payload of that job."""
    check_name(name, "the handler's name")
    source = f"{function.__module__}.{function.__qualname__}"
    if isinstance(cast("object", batch), bool) or not isinstance(cast("object", batch), int) or not 1 <= batch <= MOST:
        raise HandlerError(f"the batch of {source} is {shown(batch)}: expected a number of jobs from 1 to {MOST:,}")
    if process:
        raise HandlerError(
            f"{source} cannot take batches in a process of its own: leave out process=True, or batch and let each job"
            " have its own process"
        )
    _refuse_generator(function, source)
    hints, parameters = _signature(function, source)
    data, result = _batched(hints, parameters, source)
    parameter = inspect.Parameter("data", inspect.Parameter.POSITIONAL_ONLY)
    codec = Codec(name, {"data": parameter}, {"data": data, "return": result}, whole=True)
    _check_templates(options, _fields_of(data), source, codec.secrets)
    return Declaration(
        name=name,
        call=function,
        mode="coroutine" if inspect.iscoroutinefunction(function) else "thread",
        wants_ctx=False,
        codec=codec,
        options=options,
        policy=policy,
        schedules=schedules,
        source=source,
        batch=batch,
    )


def _batched(hints: Mapping[str, Any], parameters: list[inspect.Parameter], source: str) -> tuple[Any, Any]:
    """The types of data and result that the one parameter of a batch handler names."""
    hint = hints.get(parameters[0].name) if len(parameters) == 1 else None
    inner = get_args(hint)[0] if get_origin(hint) is list else None
    if get_origin(inner) is not Batched or hints.get("return") not in (None, type(None)):
        found = ", ".join(str(parameter) for parameter in parameters)
        raise HandlerError(
            f"{source} takes ({found}) as a batch: write {_form(source)}, with the types of data and result of"
            " each job; results are given with job.done(…)"
        )
    data, result = get_args(inner)
    return data, result


def _form(source: str) -> str:
    return f"def {source.rpartition('.')[2]}(jobs: list[Batched[Row, None]]) -> None"


def declared_by(cls: type[Handler[Any, Any]], words: Collection[str]) -> dict[str, Any]:
    """What a class declares by its statement and its attributes, and those above it; the class below wins.

    One that says a thing in both ways differently is refused, and so is an attribute called by any other of `words`,
    which somebody would believe to be read.
    """
    declared: dict[str, Any] = {}
    for one in reversed([kind for kind in cls.__mro__ if kind not in Handler.__mro__]):
        keywords: Mapping[str, Any] = one.__dict__.get("_keywords", {})
        for word in words:
            if word not in one.__dict__ or hasattr(one.__dict__[word], "__get__"):
                continue  # methods and properties declare nothing
            value = one.__dict__[word]
            if word not in ATTRIBUTES:
                raise HandlerError(
                    f"{one.__qualname__} has the attribute {word}, which is not read: declare it as"
                    f" class {one.__name__}(Handler[…], {word}=…), or call the attribute something else"
                )
            if word in keywords and keywords[word] != value:
                raise HandlerError(
                    f"{one.__qualname__} declares {word} twice, as {shown(keywords[word])} and as {shown(value)}"
                )
            declared[word] = value
        declared |= keywords
    return declared


def name_of(cls: type[Handler[Any, Any]]) -> str:
    """The type of a class handler's jobs: the name it declares, else its own."""
    return str(declared_by(cls, ATTRIBUTES).get("name") or cls.__name__)


def _performing(handler: Handler[Any, Any], source: str) -> tuple[Callable[..., Any], bool]:
    """What to call with the data by name, behind the context if the handler wants one; and whether it does."""
    perform: Callable[..., Any] = handler.perform
    parameters = list(inspect.signature(perform).parameters.values())
    try:
        hints = get_type_hints(perform)
    except (NameError, AttributeError, SyntaxError, TypeError):
        hints = {}  # the data's type is the class's own to say; of a context, the text is enough
    first, more = parameters[:1], parameters[1:]
    wants_ctx = len(more) == 1 and _is_context(more[0], hints, ("ctx", "job"))
    if (
        not first
        or any(parameter.kind not in _POSITIONAL for parameter in parameters)
        or _is_context(first[0], hints, ())
        or (more and not wants_ctx)
    ):
        raise HandlerError(
            f"{source} has perform{inspect.signature(perform)}: write {_FORMS}; the first is the data, whatever its"
            " name, and the second the context, whose ctx.job is the job"
        )

    @wraps(perform)
    def with_ctx(ctx: Ctx, data: Any) -> Any:
        return perform(data, ctx)

    @wraps(perform)
    def without(data: Any) -> Any:
        return perform(data)

    return (with_ctx if wants_ctx else without), wants_ctx


def _is_context(parameter: inspect.Parameter, hints: Mapping[str, Any], names: Collection[str]) -> bool:
    hint = hints.get(parameter.name, parameter.annotation)
    if hint is parameter.empty:
        return parameter.name in names
    return hint is Ctx or (isinstance(hint, str) and hint.rpartition(".")[2] == "Ctx")


def _refuse_generator(function: Callable[..., Any], source: str) -> None:
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise HandlerError(f"{source} is a generator: a handler returns once; use ctx.progress to report on the way")


def _signature(function: Callable[..., Any], source: str) -> tuple[dict[str, Any], list[inspect.Parameter]]:
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise HandlerError(
            f"the annotations of {source} cannot be read: {error}; import the name at run time, not under TYPE_CHECKING"
        ) from None
    parameters = list(inspect.signature(function).parameters.values())
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise HandlerError(
                f"{source} takes {parameter}: a job's arguments are stored by name, so name each parameter"
            )
    return hints, parameters


def _is_ctx(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    return hints.get(parameter.name) is Ctx or (parameter.name == "ctx" and parameter.name not in hints)


def _check_templates(
    options: Options, parameters: Mapping[str, Any] | None, source: str, secrets: frozenset[str]
) -> None:
    unique, limit, rate = options.unique, options.limit, options.rate
    keys = [limit.key if limit else None, unique.queued if unique else None, unique.running if unique else None]
    keys += [rate.key if rate else None, None if options.fair_by in FAIR_FIELDS else options.fair_by]
    for key in keys:
        names = template(key).names if key is not None else frozenset[str]()
        unknown = names - parameters.keys() if parameters is not None else ()
        if unknown:
            raise HandlerError(
                f"the key {shown(key)} of {source} names {', '.join(sorted(unknown))}, which it does not take"
            )
        if names & secrets:
            raise HandlerError(
                f"the key {shown(key)} of {source} names {', '.join(sorted(names & secrets))}, which is a secret: keys"
                " are kept and shown as they are, so name something that is none"
            )


def _fields_of(data: Any) -> Mapping[str, Any] | None:
    """The names a class handler's data has as a payload, where its type says them."""
    for named in ("__dataclass_fields__", "model_fields", "__annotations__"):
        fields = getattr(data, named, None)
        if isinstance(fields, dict):
            return cast("dict[str, Any]", fields)
    return None


def _types_of(cls: type[Handler[Any, Any]]) -> tuple[Any, Any]:
    match _given(cls, ()):
        case (data, result) if not _is_open(data) and not _is_open(result):
            return data, result
        case _:
            raise HandlerError(
                f"{cls.__qualname__} does not say its types: write class {cls.__name__}(Handler[TheData, TheResult])"
            )


def _given(cls: type[Any], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What the bases of a class, itself given these arguments, hand to Handler's own type variables."""
    bound = dict(zip(getattr(cls, "__parameters__", ()), arguments, strict=False))
    bases = cls.__dict__.get("__orig_bases__", cls.__bases__)
    base = next(base for base in bases if issubclass(get_origin(base) or base, Handler))
    handed = tuple(_bind(argument, bound) for argument in get_args(base))
    origin: Any = get_origin(base) or base
    return handed if origin is Handler else _given(origin, handed)


def _bind(argument: Any, bound: Mapping[Any, Any]) -> Any:
    if isinstance(argument, TypeVar):
        return bound.get(argument, argument)
    return argument[tuple(bound.get(one, one) for one in argument.__parameters__)] if _is_open(argument) else argument


def _is_open(kind: Any) -> bool:
    """Whether a type variable is, or is left in, what a class gives for a type."""
    return isinstance(kind, TypeVar) or (get_origin(kind) is not None and bool(getattr(kind, "__parameters__", ())))
