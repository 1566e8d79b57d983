"""Forms: named members of declared types, as pydantic reads and writes them; what it would change is put right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NotRequired, cast

from pydantic import ConfigDict, RootModel, SecretBytes, SecretStr, TypeAdapter, ValidationError
from pydantic import Secret as PydanticSecret
from pydantic_core import CoreConfig, SchemaSerializer
from typing_extensions import TypedDict  # pydantic refuses the one of typing before Python 3.12

from windlass.core import values
from windlass.core.errors import HandlerError, PayloadInvalid, SecretUnreadable
from windlass.core.sealing import Reading, Writing
from windlass.core.secret import Secret
from windlass.core.walking import SECRET, fields_in, holds_secret, is_delicate, mentions, nests

_SHOWN_ERRORS = 3
_LONGEST_TOLD = 350
_SECRETS = (PydanticSecret, Secret, SecretBytes, SecretStr)
_STARS = "*" * 10
_MINUTE = timedelta(minutes=1)
_anything: TypeAdapter[Any] = TypeAdapter(Any)
_config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", ser_json_timedelta="iso8601")
_core_config = CoreConfig(ser_json_bytes="base64", ser_json_timedelta="iso8601")


class Form:
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
        self._delicate = is_delicate(adapter.core_schema, checked)
        self.holds_secrets = mentions([adapter.core_schema], SECRET)
        if self.holds_secrets and nests(adapter.core_schema, adapter.core_schema):
            raise HandlerError(f"{name} takes a Secret that holds a Secret: one of them is enough")

    def secrets(self, whole: str | None) -> frozenset[str]:
        """The names of the members that are a secret or hold one; with `whole` of that one's own members."""
        if not self.holds_secrets:
            return frozenset()
        fields = fields_in(self.adapter.core_schema, self.adapter.core_schema)
        if whole is not None:
            fields = fields_in(fields[whole], self.adapter.core_schema)
        return frozenset(name for name, field in fields.items() if holds_secret(field, self.adapter.core_schema))

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
