"""The payload codec: typed arguments and results to canonical JSON and back.

Canonical means: members sorted by name, no spaces, finite numbers, whole numbers of 64 bits, text without NUL or lone
surrogates, names that are text, at most 64 levels deep and 256 KiB long. What breaks one of these is refused with the
place it stands at, here and not in a store, so that every store keeps exactly the same values.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import PydanticSerializationError

from windlass.core.errors import HandlerError, PayloadInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping
    from inspect import Parameter

MAX_BYTES = 256 * 1024
MAX_DEPTH = 64
_INT64 = 2**63
_SHOWN_ERRORS = 3
_LONG_DIGITS = re.compile(r"\d{19}")
_SCALARS: frozenset[object] = frozenset({int, str, bool, float, type(None)})
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_config = ConfigDict(
    extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", ser_json_timedelta="iso8601", strict=False
)


def canonical(value: object, of: str = "the value", max_bytes: int = MAX_BYTES) -> str:
    """Write plain JSON values as canonical text, or say which part cannot be stored and why."""
    try:
        text = _encode(value)
        size = len(text) if text.isascii() else len(text.encode())
    except (ValueError, TypeError, RecursionError, UnicodeEncodeError) as error:
        _inspect(value, of, 0)
        raise PayloadInvalid(f"{of} cannot be stored as JSON: {type(error).__name__}") from None
    if size > max_bytes:
        raise PayloadInvalid(
            f"{of} is {size:,} bytes of JSON, at most {max_bytes:,} are allowed:"
            " store large data elsewhere and pass a reference to it"
        )
    if _suspicious(text):
        _inspect(value, of, 0)
    return text


def plain(text: str, of: str = "the payload") -> Any:
    """Read JSON text from outside strictly; what it holds still has to pass `canonical`."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise PayloadInvalid(f"{of} is not JSON: {error}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _suspicious(text: str) -> bool:
    # Cheap signs in the text of what only a walk over the value can tell for sure; a plain payload shows none.
    return (
        "\\u0000" in text
        or _LONG_DIGITS.search(text) is not None
        or text.count("{") + text.count("[") > MAX_DEPTH
    )


def _inspect(value: object, path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise PayloadInvalid(f"{path.split('.')[0].split('[')[0]} is nested more than {MAX_DEPTH} levels deep")
    match value:
        case None | bool():
            return
        case int():
            if not -_INT64 <= value < _INT64:
                raise PayloadInvalid(f"{path} is a whole number beyond 64 bits: pass it as text")
        case float():
            if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124  # NaN is not itself
                raise PayloadInvalid(f"{path} is {value}: JSON has only finite numbers")
        case str():
            _inspect_text(value, path)
        case dict():
            for name, member in value.items():
                if not isinstance(name, str):
                    raise PayloadInvalid(
                        f"{path} has the name {_short(name)} of type {type(name).__name__}: JSON names are text"
                    )
                _inspect_text(name, f"a name in {path}")
                _inspect(member, f"{path}.{name}", depth + 1)
        case list() | tuple():
            for index, member in enumerate(value):
                _inspect(member, f"{path}[{index}]", depth + 1)
        case _:
            raise PayloadInvalid(f"{path} is of type {type(value).__name__}, which JSON cannot hold")


def _inspect_text(text: str, path: str) -> None:
    if "\x00" in text:
        raise PayloadInvalid(f"{path} contains a NUL character, which no store keeps alike: remove it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PayloadInvalid(f"{path} contains a lone surrogate, which is not valid text: remove it") from None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004  # as long as a message bears


class Codec:
    """Between one handler's typed arguments and result and their canonical JSON."""

    __slots__ = ("_adapter", "_exact", "_loose", "_name", "_positions", "_required", "_result", "_result_exact", "_whole")

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
        self._loose = tuple(n for n, hint in fields.items() if hint in (Any, object, dict, list))
        self._whole = next(iter(fields)) if whole else None
        self._exact = fields if not whole and all(_scalar(hint) for hint in fields.values()) else None
        self._adapter = _adapter(name, fields[self._whole] if self._whole else _typed_dict(fields, self._required))
        returned = hints.get("return", Any)
        self._result_exact = returned if _scalar(returned) else None
        self._result: TypeAdapter[Any] = _adapter(name, returned)

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """The canonical payload for a call with these arguments, validated against the handler's types."""
        arguments = self._named(args, kwargs) if args else kwargs
        if self._whole is not None:
            return canonical(_dump(self._adapter, self._only(arguments), self._name), self._name)
        exact = self._exact
        if exact is None or not self._fits_exactly(arguments, exact):
            arguments = self._validated(arguments)
        return canonical(arguments, self._name)

    def decode(self, payload_json: str) -> dict[str, Any]:
        """The typed arguments of a stored payload; one that no longer fits the handler is refused."""
        try:
            found = self._adapter.validate_json(payload_json)
        except ValidationError as error:
            raise PayloadInvalid(_told(self._name, error)) from None
        arguments: dict[str, Any] = found if self._whole is None else {self._whole: found}
        return arguments

    def encode_plain(self, payload: Any) -> str:
        """The canonical payload for plain JSON values given by name, as from the command line or HTTP."""
        if self._whole is not None:
            return self.encode((payload,), {})
        if not isinstance(payload, dict):
            raise PayloadInvalid(f"the payload of {self._name} is a {type(payload).__name__}: expected an object")
        return self.encode((), payload)

    def encode_result(self, value: Any) -> str:
        """The canonical JSON of what the handler returned."""
        of = f"the result of {self._name}"
        if self._result_exact is None or type(value) is not self._result_exact:
            value = _dump(self._result, value, of)
        return canonical(value, of)

    def decode_result(self, result_json: str) -> Any:
        """The typed result of a stored one."""
        try:
            return self._result.validate_json(result_json)
        except ValidationError as error:
            raise PayloadInvalid(_told(f"the result of {self._name}", error)) from None

    def _named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        if len(args) > len(self._positions):
            raise PayloadInvalid(
                f"{self._name} takes {len(self._positions)} positional arguments, {len(args)} were given"
            )
        arguments = dict(zip(self._positions, args, strict=False))
        for name, value in kwargs.items():
            if name in arguments:
                raise PayloadInvalid(f"{self._name} was given the argument {name!r} twice")
            arguments[name] = value
        return arguments

    def _only(self, arguments: Mapping[str, Any]) -> Any:
        if list(arguments) != [self._whole]:
            raise PayloadInvalid(f"{self._name} takes its data as one argument, found {sorted(arguments)}")
        return arguments[self._whole]

    def _fits_exactly(self, arguments: Mapping[str, Any], exact: Mapping[str, Any]) -> bool:
        return self._required <= arguments.keys() and all(
            type(value) is exact.get(name) for name, value in arguments.items()
        )

    def _validated(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        for name in self._loose:
            if name in arguments:
                _check_names(arguments[name], f"{self._name}: {name}")
        found: Mapping[str, Any] = _dump(self._adapter, arguments, self._name)
        return found


def _check_names(value: object, path: str) -> None:
    # Where no type says otherwise, pydantic writes names of other types as text without a word, and what comes back
    # would differ from what went in.
    if isinstance(value, dict):
        for name, member in value.items():
            if not isinstance(name, str):
                raise PayloadInvalid(
                    f"{path} has the name {_short(name)} of type {type(name).__name__}: JSON names are text"
                )
            _check_names(member, f"{path}.{name}")
    elif isinstance(value, (list, tuple)):
        for index, member in enumerate(value):
            _check_names(member, f"{path}[{index}]")


def _scalar(hint: Any) -> bool:
    return any(hint is scalar for scalar in _SCALARS)


def _typed_dict(fields: Mapping[str, Any], required: frozenset[str]) -> Any:
    members = {name: hint if name in required else NotRequired[hint] for name, hint in fields.items()}
    return TypedDict("Arguments", members)  # type: ignore[operator]  # made from a signature, not written out


def _adapter(name: str, of: Any) -> TypeAdapter[Any]:
    try:
        if isinstance(of, type) and hasattr(of, "__total__"):
            of.__pydantic_config__ = _config  # type: ignore[attr-defined]  # how pydantic takes a TypedDict's settings
        return TypeAdapter(of)
    except (PydanticSchemaGenerationError, PydanticUserError, NameError) as error:
        first = str(error).splitlines()[0]
        raise HandlerError(
            f"the annotations of handler {name} cannot be used: {first}; use JSON types, dataclasses, pydantic models,"
            " datetimes, UUIDs or enums"
        ) from None


def _dump(adapter: TypeAdapter[Any], value: Any, of: str) -> Any:
    try:
        return adapter.dump_python(adapter.validate_python(value), mode="json", warnings="error")
    except ValidationError as error:
        raise PayloadInvalid(_told(of, error)) from None
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise PayloadInvalid(f"{_culprit(value, of)} cannot be stored as JSON: {str(error).splitlines()[0]}") from None


def _culprit(value: Any, of: str) -> str:
    if isinstance(value, dict):
        for name, member in value.items():
            try:
                TypeAdapter(Any).dump_python(member, mode="json")
            except (PydanticSerializationError, ValueError, RecursionError):
                return f"{of}: {name} (of type {type(member).__name__})"
    return f"{of} (of type {type(value).__name__})"


def _told(of: str, error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    told = [f"{'.'.join(str(part) for part in one['loc']) or 'value'}: {one['msg']}" for one in found[:_SHOWN_ERRORS]]
    more = f"; and {len(found) - _SHOWN_ERRORS} more" if len(found) > _SHOWN_ERRORS else ""
    return f"{of} does not fit its types: {'; '.join(told)}{more}"
