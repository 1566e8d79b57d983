"""The payload codec: typed arguments and results to canonical JSON and back. `values` says what canonical means."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import (
    TYPE_CHECKING,
    Any,
    Never,
    NoReturn,
    cast,
)

from windlass.core import values
from windlass.core.errors import PayloadInvalid, SecretUnreadable, SettingsError
from windlass.core.form import Form
from windlass.core.keys import shown
from windlass.core.redaction import MASK
from windlass.core.schemas import schema_of
from windlass.core.sealing import KEYS, MEMBER, Of, Reading, Seals, Writing, opened, place_of
from windlass.core.untyped import SCALARS, UNTYPED, check_of, is_one_of

if TYPE_CHECKING:
    from inspect import Parameter

_RESULT = "result"
WHOLE = "*"


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
        checks = {n: check_of(hint) for n, hint in fields.items()}
        self._loose = tuple((n, check) for n, check in checks.items() if check is not None)
        self._whole = next(iter(fields)) if whole else None
        self._exact = fields if not whole and all(is_one_of(h, SCALARS + UNTYPED) for h in fields.values()) else None
        self._form = Form(name, fields, self._required, frozenset(n for n, _ in self._loose))
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
        hint = Any if is_one_of(hint, (Never, NoReturn)) else hint
        self._of = f"the result of {name}"
        self._hint = hint
        self._loose = is_one_of(hint, UNTYPED)
        self._exact = SCALARS if hint is Any else tuple(kind for kind in SCALARS if hint is kind)
        self._form = Form(name, {_RESULT: hint}, frozenset({_RESULT}))
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


def _masked(_: str, __: tuple[str | int, ...]) -> str:
    return MASK


def _plain_default(value: object) -> object:
    return value.value if isinstance(value, Enum) else value


def _boxed(name: str, text: str) -> str:
    return f'{{"{name}":{text}}}'
