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

from pydantic import ConfigDict, RootModel, SecretBytes, SecretStr, TypeAdapter, ValidationError
from pydantic import Secret as PydanticSecret
from pydantic_core import CoreConfig, SchemaSerializer
from typing_extensions import TypedDict  # pydantic refuses the one of typing before Python 3.12

from windlass.core import values
from windlass.core.errors import HandlerError, PayloadInvalid, SecretUnreadable, SettingsError
from windlass.core.keys import shown
from windlass.core.redaction import MASK
from windlass.core.schemas import schema_of
from windlass.core.sealing import KEYS, MEMBER, Of, Reading, Seals, Writing, opened, place_of
from windlass.core.secret import META, Secret

if TYPE_CHECKING:
    from inspect import Parameter

_SHOWN_ERRORS = 3
_LONGEST_TOLD = 350
_SCALARS = (int, str, bool, float, type(None))
_UNTYPED = (Any, object, dict, list, tuple)
_RESULT = "result"
WHOLE = "*"
_SECRETS = (PydanticSecret, Secret, SecretBytes, SecretStr)
_STARS = "*" * 10
_CHANGED = frozenset({"datetime", "frozenset", "function-plain", "set"})
_SECRET: frozenset[str] = frozenset()
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

    __slots__ = (
        *("_exact", "_form", "_loose", "_name", "_positions", "_required", "_result", "_sealing", "_whole"),
        *("defaults", "secrets"),
    )

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
        self._sealing = _Sealing(name, "payload")
        self.secrets = self._form.secrets(self._whole)
        """the arguments that are a secret, or hold one; of a payload as a whole its members"""
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

    @property
    def seals(self) -> Seals | None:
        """What seals the secrets among its arguments."""
        return self._sealing.seals

    @property
    def holds_secrets(self) -> bool:
        """Whether some arguments are secrets."""
        return self._form.holds_secrets

    def seal_with(self, seals: Seals | None, type_: str | None = None) -> None:
        """Say what seals secrets, and for which type where that is not the handler's name."""
        self._sealing = _Sealing(type_ or self._name, "payload", seals)
        self._result.seal_with(seals)

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

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, plainly: bool = False) -> str:
        """The canonical payload for a call with these arguments, validated against the handler's types.

        Secrets are sealed in it; `plainly` leaves them as they are, for what is run here and now and kept nowhere.
        """
        arguments = self._named(args, kwargs) if args else kwargs
        if self._whole is not None and list(arguments) != [self._whole]:
            raise PayloadInvalid(f"{self._name} takes its data as one argument, found {shown(sorted(arguments))}")
        if self._fits_exactly(arguments):
            text = values.written(arguments, self._name)
            self._check(arguments)
            return text
        self._check(arguments)
        return self._unboxed(self._form.validate(arguments, self._name), plainly=plainly)

    def decode(self, payload_json: str) -> dict[str, Any]:
        """The typed arguments of a stored payload; one that no longer fits the handler is refused.

        SecretUnreadable where a secret in it cannot be opened, or one in the result could not be sealed.
        """
        self._result.check_seals()
        reading = self._sealing.reading(payload_json) if self._form.holds_secrets else None
        return self._read(payload_json, reading)

    def opens(self, payload_json: str) -> bool:
        """Whether every secret of a payload can be opened here, and one in the result could be sealed."""
        try:
            self._result.check_seals()
            opened(payload_json, self.seals, "payload", self._sealing.type, lambda _: None)
        except SecretUnreadable:
            return False
        return True

    def decode_plain(self, payload_json: str) -> dict[str, Any]:
        """The typed arguments of plain JSON, in which nothing is sealed."""
        return self._read(payload_json, None)

    def masked(self, arguments: dict[str, Any]) -> str:
        """The JSON of typed arguments with `***` for each secret."""
        writing = Writing()
        written: Any = self._form.dump(arguments, self._name, writing)
        written = written if self._whole is None else written[self._whole]
        return values.written(writing.put_back(written, self._name, _masked), self._name)

    def _read(self, payload_json: str, reading: Reading | None) -> dict[str, Any]:
        text = payload_json if self._whole is None else _boxed(self._whole, payload_json)
        return self._form.read(text, self._name, reading)

    def encode_plain(self, payload: Any) -> str:
        """The canonical payload for plain JSON values given by name, as from the command line or HTTP."""
        if self._whole is None and not isinstance(payload, dict):
            raise PayloadInvalid(f"the payload of {self._name} is a {type(payload).__name__}: expected an object")
        text = values.canonical(cast("object", payload), self._name)
        if self._whole is None and self._fits_exactly(cast("dict[str, Any]", payload)):
            return text
        # Read as JSON, not as Python values: bytes, for one, are base64 text there.
        return self._unboxed(self.decode_plain(text))

    def encode_result(self, value: Any, *, plainly: bool = False) -> str:
        """The canonical JSON of what the handler returned, with its secrets sealed but for `plainly`."""
        return self._result.encode(value, plainly=plainly)

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

    def _unboxed(self, members: dict[str, Any], *, plainly: bool = False) -> str:
        writing = Writing() if self._form.holds_secrets else None
        written: Any = self._form.dump(members, self._name, writing)
        if self._whole is not None:
            written = written[self._whole]
        if writing is not None:
            written = self._sealing.put_back(writing, written, self._name, plainly=plainly)
        return values.written(written, self._name)


class ResultCodec:
    """Between what a handler or a step returns and its canonical JSON."""

    __slots__ = ("_exact", "_form", "_hint", "_loose", "_of", "_sealing", "holds_secrets")

    def __init__(self, name: str, hint: Any) -> None:
        hint = Any if _is_one_of(hint, (Never, NoReturn)) else hint
        self._of = f"the result of {name}"
        self._hint = hint
        self._loose = _is_one_of(hint, _UNTYPED)
        self._exact = _SCALARS if hint is Any else tuple(kind for kind in _SCALARS if hint is kind)
        self._form = _Form(name, {_RESULT: hint}, frozenset({_RESULT}))
        self._sealing = _Sealing(name, "result")
        self.holds_secrets = self._form.holds_secrets
        """whether it is a secret, or holds one"""

    def seal_with(self, seals: Seals | None) -> None:
        """Say what seals secrets."""
        self._sealing = _Sealing(self._sealing.type, "result", seals)

    def check_seals(self) -> None:
        """SecretUnreadable where a secret could not be sealed: said before the work is done, not after."""
        if self.holds_secrets:
            self._sealing.check()

    def encode(self, value: Any, *, plainly: bool = False) -> str:
        """The canonical JSON of a value, checked against its type."""
        if self.holds_secrets or plainly:
            writing = Writing()
            written = self._plain(value, writing)
            value = self._sealing.put_back(writing, written, self._of, plainly=plainly)
        elif type(value) not in self._exact:
            value = self._plain(value)
        elif value is None:
            return "null"
        return values.written(value, self._of)

    def _plain(self, value: Any, writing: Writing | None = None) -> Any:
        if self._loose:
            if self._hint in (Any, type(value)) and values.is_clear(value, 0):
                return value
            values.inspect(value, self._of, (), lenient=True)
        return self._form.dump(self._form.validate({_RESULT: value}, self._of), self._of, writing)[_RESULT]

    def decode(self, text: str) -> Any:
        """The typed value of its JSON; SecretUnreadable where a secret in it cannot be opened."""
        reading = self._sealing.reading(text) if self.holds_secrets else None
        return self._form.read(_boxed(_RESULT, text), self._of, reading)[_RESULT]

    def schema(self) -> dict[str, Any] | None:
        """What it looks like, as JSON Schema; None where that cannot be told."""
        return schema_of(self._form.adapter, "serialization", _RESULT)


class _Sealing:
    """How the secrets of one type's payloads, or of its results, are sealed."""

    __slots__ = ("_of", "seals", "type")

    def __init__(self, type_: str, of: Of, seals: Seals | None = None) -> None:
        self.type, self.seals = type_, seals
        self._of: Of = of

    def reading(self, text: str) -> Reading:
        return Reading(text, self.seals, self._of, self.type)

    def put_back(self, writing: Writing, written: Any, of: str, *, plainly: bool) -> Any:
        def make(text: str, path: tuple[str | int, ...]) -> Any:
            if plainly:
                return values.plain(text)
            if self.seals is None:
                raise SettingsError(f"{values.place(of, path)} is a secret, and there is no key to seal it: set {KEYS}")
            return {MEMBER: self.seals.seal(text, place_of(self._of, self.type, path))}

        return writing.put_back(written, of, make)

    def check(self) -> None:
        if self.seals is None:
            raise SecretUnreadable(f"the result of {self.type} is a secret, and there is no key to seal it: set {KEYS}")
        self.seals.check()


class _Form:
    """Named members of declared types, read and written by pydantic with settings that keep every value.

    Members go by their fields' names, never by an alias, because an alias may be for one direction only.
    """

    __slots__ = ("_delicate", "_serializer", "_validator", "adapter", "holds_secrets")

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
        self.holds_secrets = _mentions([adapter.core_schema], _SECRET)
        if self.holds_secrets and _nests(adapter.core_schema, adapter.core_schema):
            raise HandlerError(f"{name} takes a Secret that holds a Secret: one of them is enough")

    def secrets(self, whole: str | None) -> frozenset[str]:
        """The names of the members that are a secret or hold one; with `whole` of that one's own members."""
        if not self.holds_secrets:
            return frozenset()
        fields = _fields_in(self.adapter.core_schema, self.adapter.core_schema)
        if whole is not None:
            fields = _fields_in(fields[whole], self.adapter.core_schema)
        return frozenset(name for name, field in fields.items() if _holds_secret(field, self.adapter.core_schema))

    def validate(self, members: Mapping[str, Any], of: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._validator.validate_python(members, by_alias=True, by_name=True)
            return found
        except Exception as error:  # noqa: BLE001  # a user's own validator may raise anything
            raise _unfit(of, error) from None

    def read(self, text: str, of: str, reading: Reading | None = None) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._validator.validate_json(text, context=reading, by_alias=True, by_name=True)
            return found
        except SecretUnreadable:
            raise
        except Exception as error:  # noqa: BLE001  # a user's own validator may raise anything
            raise _unfit(of, error) from None

    def dump(self, members: dict[str, Any], of: str, writing: Writing | None = None) -> dict[str, Any]:
        try:
            written: dict[str, Any] = self._serializer.to_python(
                members, mode="json", by_alias=False, context=writing, round_trip=True, warnings="error"
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
        if written and written in (_STARS, str(cast("object", live))):
            raise PayloadInvalid(
                f"{values.place(of, path)} is a secret and would be masked: declare it as a windlass.Secret, which is"
                " encrypted, or pass a reference to it instead"
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
            if members.get("type") in kinds or (kinds is _SECRET and META in members.get("metadata", ())):
                return True
            waiting += [part for name, part in members.items() if name not in _NOT_SCHEMA]
        elif isinstance(node, (list, tuple)):
            waiting += cast("list[Any]", node)
    return False


def _holds_secret(node: Any, root: Mapping[str, Any], seen: tuple[str, ...] = ()) -> bool:
    """Whether a part of a schema is a secret or leads to one."""
    if isinstance(node, (list, tuple)):
        return any(_holds_secret(one, root, seen) for one in cast("list[Any]", node))
    if type(node) is not dict:
        return False
    members = cast("dict[str, Any]", node)
    if META in members.get("metadata", ()):
        return True
    if members.get("type") == "definition-ref":
        ref: str = members["schema_ref"]
        return ref not in seen and _holds_secret(_defined(ref, root), root, (*seen, ref))
    return any(_holds_secret(part, root, seen) for name, part in members.items() if name not in _NOT_SCHEMA)


def _nests(node: Any, root: Mapping[str, Any]) -> bool:
    """Whether there is a secret within a secret."""
    if isinstance(node, (list, tuple)):
        return any(_nests(one, root) for one in cast("list[Any]", node))
    if type(node) is not dict:
        return False
    members = cast("dict[str, Any]", node)
    if META in members.get("metadata", ()):
        return _holds_secret(members["json_schema_input_schema"], root)
    return any(_nests(part, root) for name, part in members.items() if name not in _NOT_SCHEMA)


def _defined(ref: str, root: Mapping[str, Any]) -> Any:
    return next((one for one in root.get("definitions", ()) if one.get("ref") == ref), None)


def _fields_in(node: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the model, dataclass or typed dict that a schema describes, by name; none of anything else."""
    while type(node) is dict:
        found = cast("dict[str, Any]", node)
        fields = found.get("fields")
        if isinstance(fields, dict):
            return cast("dict[str, Any]", fields)
        if found["type"] == "dataclass-args":
            return {one["name"]: one for one in cast("list[dict[str, Any]]", fields)}
        node = _defined(found["schema_ref"], root) if found["type"] == "definition-ref" else found.get("schema")
    return {}


def _check_of(hint: Any) -> Check | None:
    """How to look through the places under a hint that it says nothing about, if it has any."""
    if _is_one_of(hint, _UNTYPED):
        return values.look
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Secret:
        return None
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


def _masked(_: str, __: tuple[str | int, ...]) -> str:
    return MASK


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
