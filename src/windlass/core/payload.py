"""The payload codec: typed arguments and results to canonical JSON and back. `values` says what canonical means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Never,
    NoReturn,
    NotRequired,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
)

from pydantic import ConfigDict, RootModel, Secret, SecretBytes, SecretStr, TypeAdapter, ValidationError
from pydantic_core import CoreConfig, SchemaSerializer
from typing_extensions import TypedDict  # pydantic refuses the one of typing before Python 3.12

from windlass.core import values
from windlass.core.errors import HandlerError, PayloadInvalid
from windlass.core.keys import shown
from windlass.core.schemas import schema_of

if TYPE_CHECKING:
    from inspect import Parameter

_SHOWN_ERRORS = 3
_LONGEST_TOLD = 350
_SCALARS = (int, str, bool, float, type(None))
_UNTYPED = (Any, object, dict, list, tuple)
_RESULT = "result"
WHOLE = "*"
_SECRETS = (Secret, SecretBytes, SecretStr)
_MASK = "*" * 10
_CHANGED = frozenset({"datetime", "frozenset", "function-plain", "set"})
_NOT_SCHEMA = frozenset({"metadata", "default"})
_MINUTE = timedelta(minutes=1)
_anything: TypeAdapter[Any] = TypeAdapter(Any)
_config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", ser_json_timedelta="iso8601")
_core_config = CoreConfig(ser_json_bytes="base64", ser_json_timedelta="iso8601")

Check: TypeAlias = Callable[[object, str, values.Path], None]


class Codec:
    """Between one handler's typed arguments and result and their canonical JSON.

    Where no type is declared, an argument holds plain JSON values only, so that a handler gets what was passed (but
    a list for a tuple); a result may be whatever pydantic can write.
    """

    __slots__ = ("_exact", "_form", "_loose", "_name", "_positions", "_required", "_result", "_whole", "defaults")

    def __init__(
        self, name: str, parameters: Mapping[str, Parameter], hints: Mapping[str, Any], *, whole: bool = False
    ) -> None:
        """Take the parameters a job's arguments go to (without ctx) and their resolved annotations.

        With `whole` the one parameter's value is the payload itself, not a member of it.
        """
        self._name = name
        self._positions = tuple(p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY)
        self._required = frozenset(p.name for p in parameters.values() if p.default is p.empty)
        fields = {p.name: hints.get(p.name, Any) for p in parameters.values()}
        checks = {n: _check_of(hint) for n, hint in fields.items()}
        self._loose = tuple((n, check) for n, check in checks.items() if check is not None)
        self._whole = next(iter(fields)) if whole else None
        self._exact = fields if not whole and all(_is_one_of(h, _SCALARS + _UNTYPED) for h in fields.values()) else None
        self._form = _Form(name, fields, self._required, frozenset(n for n, _ in self._loose))
        self._result = ResultCodec(name, hints.get("return", Any))
        self.defaults = {p.name: _plain_default(p.default) for p in parameters.values() if p.default is not p.empty}
        """What an argument is when it is left out: its payload then has no member for it."""

    @property
    def names(self) -> frozenset[str]:
        """The names of all arguments."""
        return self._required | self.defaults.keys()

    @property
    def by_name(self) -> bool:
        """Whether the payload is an object of arguments by name, and not one value as a whole."""
        return self._whole is None

    def payload_schema(self) -> dict[str, Any] | None:
        """What payloads look like, as JSON Schema; None where that cannot be told."""
        return schema_of(self._form.adapter, "validation", self._whole)

    def result_schema(self) -> dict[str, Any] | None:
        """The same of results."""
        return self._result.schema()

    @property
    def first(self) -> str | None:
        """The name of the first argument; `*` where the payload is the argument itself, None where there is none."""
        if self._whole is not None:
            return WHOLE
        return self._positions[0] if self._positions else None

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """The canonical payload for a call with these arguments, validated against the handler's types."""
        arguments = self._named(args, kwargs) if args else kwargs
        if self._whole is not None and list(arguments) != [self._whole]:
            raise PayloadInvalid(f"{self._name} takes its data as one argument, found {shown(sorted(arguments))}")
        if self._fits_exactly(arguments):
            text = values.written(arguments, self._name)
            self._check(arguments)
            return text
        self._check(arguments)
        return self._unboxed(self._form.dump(self._form.validate(arguments, self._name), self._name))

    def decode(self, payload_json: str) -> dict[str, Any]:
        """The typed arguments of a stored payload; one that no longer fits the handler is refused."""
        return self._form.read(payload_json if self._whole is None else _boxed(self._whole, payload_json), self._name)

    def encode_plain(self, payload: Any) -> str:
        """The canonical payload for plain JSON values given by name, as from the command line or HTTP."""
        if self._whole is None and not isinstance(payload, dict):
            raise PayloadInvalid(f"the payload of {self._name} is a {type(payload).__name__}: expected an object")
        text = values.canonical(cast("object", payload), self._name)
        if self._whole is None and self._fits_exactly(cast("dict[str, Any]", payload)):
            return text
        # Read as JSON, not as Python values: bytes, for one, are base64 text there.
        return self._unboxed(self._form.dump(self.decode(text), self._name))

    def encode_result(self, value: Any) -> str:
        """The canonical JSON of what the handler returned."""
        return self._result.encode(value)

    def decode_result(self, result_json: str) -> Any:
        """The typed result of a stored one."""
        return self._result.decode(result_json)

    def _named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        if len(args) > len(self._positions):
            raise PayloadInvalid(
                f"{self._name} takes {len(self._positions)} positional arguments, {len(args)} were given"
            )
        arguments = dict(zip(self._positions, args, strict=False))
        for name, value in kwargs.items():
            if name in arguments:
                raise PayloadInvalid(f"{self._name} was given the argument {shown(name)} twice")
            arguments[name] = value
        return arguments

    def _fits_exactly(self, arguments: Mapping[str, Any]) -> bool:
        exact = self._exact
        if exact is None or not self._required <= arguments.keys():
            return False
        for name, value in arguments.items():
            hint = exact.get(name)
            if hint is not type(value) and hint is not Any:
                return False
        return True

    def _check(self, arguments: Mapping[str, Any]) -> None:
        for name, check in self._loose:
            if name in arguments:
                check(arguments[name], self._name, () if self._whole is not None else (name,))

    def _unboxed(self, written: dict[str, Any]) -> str:
        return values.written(written if self._whole is None else written[self._whole], self._name)


class ResultCodec:
    """Between what a handler or a step returns and its canonical JSON."""

    __slots__ = ("_exact", "_form", "_hint", "_loose", "_of")

    def __init__(self, name: str, hint: Any) -> None:
        hint = Any if _is_one_of(hint, (Never, NoReturn)) else hint
        self._of = f"the result of {name}"
        self._hint = hint
        self._loose = _is_one_of(hint, _UNTYPED)
        self._exact = _SCALARS if hint is Any else tuple(kind for kind in _SCALARS if hint is kind)
        self._form = _Form(name, {_RESULT: hint}, frozenset({_RESULT}))

    def encode(self, value: Any) -> str:
        """The canonical JSON of a value, checked against its type."""
        if type(value) not in self._exact:
            value = self._plain(value)
        elif value is None:
            return "null"
        return values.written(value, self._of)

    def _plain(self, value: Any) -> Any:
        if self._loose:
            if self._hint in (Any, type(value)) and values.is_clear(value, 0):
                return value
            values.inspect(value, self._of, (), lenient=True)
        return self._form.dump(self._form.validate({_RESULT: value}, self._of), self._of)[_RESULT]

    def decode(self, text: str) -> Any:
        """The typed value of its JSON."""
        return self._form.read(_boxed(_RESULT, text), self._of)[_RESULT]

    def schema(self) -> dict[str, Any] | None:
        """What it looks like, as JSON Schema; None where that cannot be told."""
        return schema_of(self._form.adapter, "serialization", _RESULT)


class _Form:
    """Named members of declared types, read and written by pydantic with settings that keep every value.

    Members go by their fields' names, never by an alias, because an alias may be for one direction only.
    """

    __slots__ = ("_delicate", "_serializer", "_validator", "adapter")

    def __init__(
        self, name: str, fields: Mapping[str, Any], required: frozenset[str], checked: frozenset[str] = frozenset()
    ) -> None:
        try:
            adapter = _adapter(fields, required)
        except Exception:  # noqa: BLE001  # a type of the user's own making may raise anything
            raise HandlerError(
                f"the annotations of handler {name} cannot be used: {_unusable(fields)};"
                " use JSON types, dataclasses, pydantic models, datetimes, UUIDs or enums"
            ) from None
        # Without the adapter in between: these run once per job. The adapter's own serializer follows the settings
        # only inside models and dataclasses, not for the members at the top.
        self.adapter = adapter
        self._validator = adapter.validator
        self._serializer = SchemaSerializer(adapter.core_schema, _core_config)
        self._delicate = _is_delicate(adapter.core_schema, checked)

    def validate(self, members: Mapping[str, Any], of: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._validator.validate_python(members, by_alias=True, by_name=True)
            return found
        except Exception as error:  # noqa: BLE001  # a user's own validator may raise anything
            raise _unfit(of, error) from None

    def read(self, text: str, of: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._validator.validate_json(text, by_alias=True, by_name=True)
            return found
        except Exception as error:  # noqa: BLE001  # a user's own validator may raise anything
            raise _unfit(of, error) from None

    def dump(self, members: dict[str, Any], of: str) -> dict[str, Any]:
        try:
            written: dict[str, Any] = self._serializer.to_python(
                members, mode="json", by_alias=False, round_trip=True, warnings="error"
            )
            if self._delicate:
                written = _kept(members, written, of, ())
        except PayloadInvalid:
            raise
        except Exception as error:  # noqa: BLE001  # a user's own serializer may raise anything
            raise PayloadInvalid(f"{_culprit(members, of)} cannot be stored as JSON: {values.reason(error)}") from None
        return written


def _kept(live: object, written: Any, of: str, path: values.Path) -> Any:
    """What pydantic wrote for `live`, with what it would change put right, or refused where that cannot be."""
    kind = type(cast("object", written))
    if isinstance(live, (dict, list, tuple)):
        _keep_members(cast("dict[object, object] | list[object]", live), written, of, path)
    elif isinstance(live, datetime):
        offset = live.utcoffset()
        if offset and offset % _MINUTE and kind is str:
            return live.astimezone(UTC).isoformat().replace("+00:00", "Z")
    elif isinstance(live, float):
        if written is None:
            raise values.not_finite(live, of, path)
    elif isinstance(live, (set, frozenset)):
        if kind is list:
            return sorted(written, key=values.encode)
    elif isinstance(live, _SECRETS):
        if written and written in (_MASK, str(cast("object", live))):
            raise PayloadInvalid(
                f"{values.place(of, path)} is a secret and would be masked: pass a reference to it instead"
            )
    elif isinstance(live, RootModel):
        return _kept(cast("RootModel[object]", live).root, written, of, path)
    elif kind is dict:
        _keep_members({name: getattr(live, name, None) for name in written}, written, of, path)
    return written


def _keep_members(live: dict[object, object] | list[object], written: Any, of: str, path: values.Path) -> None:
    kind = type(cast("object", written))
    members: Iterable[tuple[Any, object]] = ()
    if isinstance(live, dict):
        if kind is dict:
            # By their order: a name may have been something else than text.
            members = tuple(zip(written, live.values(), strict=False))
    elif kind is list:
        members = zip(range(len(written)), live, strict=False)
    for name, member in members:
        if type(member) not in values.TEXT_AND_WHOLE:
            written[name] = _kept(member, written[name], of, (*path, name))


def _is_delicate(schema: Mapping[str, Any], checked: frozenset[str]) -> bool:
    """Whether these types can hold what pydantic does not write as it is: sets, not-a-number, odd zones, secrets."""
    fields: dict[str, Any] = (schema["schema"] if schema["type"] == "definitions" else schema)["fields"]
    loose = [field for name, field in fields.items() if name not in checked]
    rest = [field for name, field in fields.items() if name in checked]
    return _mentions([*loose, schema.get("definitions")], _CHANGED | {"any"}) or _mentions(rest, _CHANGED)


def _mentions(waiting: list[Any], kinds: frozenset[str]) -> bool:
    while waiting:
        node = waiting.pop()
        if type(node) is dict:
            members = cast("dict[str, Any]", node)
            if members.get("type") in kinds:
                return True
            waiting += [part for name, part in members.items() if name not in _NOT_SCHEMA]
        elif isinstance(node, (list, tuple)):
            waiting += cast("list[Any]", node)
    return False


def _check_of(hint: Any) -> Check | None:
    """How to look through the places under a hint that it says nothing about, if it has any."""
    if _is_one_of(hint, _UNTYPED):
        return values.look
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _check_of(arguments[0])
    if origin in (Union, UnionType):
        arms = [arm for arm in arguments if not _is_one_of(arm, _SCALARS)]
        found = {_check_of(arm) for arm in arms}
        return found.pop() if len(arms) == 1 or found == {values.look} else None
    if not arguments or (origin is tuple and arguments[-1] is not Ellipsis):
        return None
    if origin is dict and all(_is_one_of(part, _UNTYPED) for part in arguments):
        return values.look
    inner = _check_of(arguments[0] if origin is tuple else arguments[-1])
    return None if inner is None else _each(inner)


def _each(inner: Check) -> Check:
    def check(value: object, of: str, path: values.Path) -> None:
        if isinstance(value, dict):
            for name, member in cast("dict[object, object]", value).items():
                inner(member, of, (*path, name))
        elif isinstance(value, (list, tuple, set, frozenset)):
            for index, member in enumerate(cast("list[object]", value)):
                inner(member, of, (*path, index))

    return check


def _is_one_of(hint: Any, kinds: tuple[object, ...]) -> bool:
    # By identity: a hint may be anything, and compare as it likes.
    return any(hint is kind for kind in kinds)


def _plain_default(value: object) -> object:
    return value.value if isinstance(value, Enum) else value


def _boxed(name: str, text: str) -> str:
    return f'{{"{name}":{text}}}'


def _adapter(fields: Mapping[str, Any], required: frozenset[str]) -> TypeAdapter[Any]:
    make: Any = TypedDict
    arguments = make(
        "Arguments", {name: hint if name in required else NotRequired[hint] for name, hint in fields.items()}
    )
    arguments.__pydantic_config__ = _config
    adapter: TypeAdapter[Any] = TypeAdapter(arguments)
    if not adapter.pydantic_complete:
        raise NameError("a type it names is not defined")
    return adapter


def _unusable(fields: Mapping[str, Any]) -> str:
    reasons: list[str] = []
    for name, hint in fields.items():
        try:
            _adapter({name: hint}, frozenset(fields))
        except Exception as error:  # noqa: BLE001  # whatever it is, it is about this member
            reasons.append(f"{name}: {values.reason(error)}")
    return values.line("; ".join(reasons), _LONGEST_TOLD)


def _culprit(members: Mapping[str, Any], of: str) -> str:
    for name, member in members.items():
        try:
            _anything.dump_python(member, mode="json")
        except Exception:  # noqa: BLE001  # whatever it is, it is about this member
            return f"{values.place(of, (name,))} (of type {type(member).__name__})"
    return of


def _unfit(of: str, error: Exception) -> PayloadInvalid:
    if not isinstance(error, ValidationError):
        return PayloadInvalid(f"{of} does not fit its types: {values.reason(error)}")
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return unfit(of, [(one["loc"], one["msg"]) for one in found])


def unfit(of: str, misfits: Sequence[tuple[tuple[str | int, ...], str]]) -> PayloadInvalid:
    """The error of a value that does not fit, given each place in it and what was expected there."""
    told = [
        f"{values.spelt(place) or 'value'}: {values.line(words, values.LONGEST_REASON)}"
        for place, words in misfits[:_SHOWN_ERRORS]
    ]
    more = f"; and {len(misfits) - _SHOWN_ERRORS} more" if len(misfits) > _SHOWN_ERRORS else ""
    return PayloadInvalid(f"{of} does not fit its types: {values.line('; '.join(told), _LONGEST_TOLD)}{more}")
