"""Whether a payload fits a published schema, said in the words that the handler's own types would use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from uuid import UUID

from pydantic import UUID1, UUID3, UUID4, UUID5, AnyUrl, ConfigDict, TypeAdapter, ValidationError

from windlass.core import values
from windlass.core.form import unfit

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError as Misfit

Place: TypeAlias = tuple[str | int, ...]

_FORMATS: dict[str, Any] = {
    "date-time": datetime,
    "date": date,
    "time": time,
    "duration": timedelta,
    "uuid": UUID,
    "uuid1": UUID1,
    "uuid3": UUID3,
    "uuid4": UUID4,
    "uuid5": UUID5,
    "uri": AnyUrl,
    "ipv4": IPv4Address,
    "ipv6": IPv6Address,
    "base64url": bytes,
    "decimal": Decimal,
}
"""What text in a format is read as: by the codec's own reader, so that what it takes is taken here and no more."""
_NOT_JUDGED = ("email", "regex", "idn-email", "hostname", "json-pointer", "binary")
_EXTRA = "Extra inputs are not permitted"
_KINDS = {
    "integer": "a valid integer",
    "number": "a valid number",
    "string": "a valid string",
    "boolean": "a valid boolean",
    "array": "a valid array",
    "object": "an object",
    "null": "null",
}
_BOUNDS = {
    "minimum": "greater than or equal to",
    "exclusiveMinimum": "greater than",
    "maximum": "less than or equal to",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
}
_SIZES = {
    "minLength": ("String", "at least", "character"),
    "maxLength": ("String", "at most", "character"),
    "minItems": ("List", "at least", "item"),
    "maxItems": ("List", "at most", "item"),
    "minProperties": ("Dictionary", "at least", "item"),
    "maxProperties": ("Dictionary", "at most", "item"),
}


class Fitting:
    """Checks payloads against one schema. Made once for many: reading a schema takes longer than a check."""

    def __init__(self, schema: Mapping[str, Any], *, quietly: bool = False) -> None:
        """Read a schema; `quietly` leaves out of what is said all that was found, as some of it may be secret."""
        from jsonschema_rs import Draft202012Validator  # loaded only to enqueue types without a handler here

        formats: dict[str, Callable[[str], bool]] = {name: _reads(name) for name in _FORMATS}
        formats |= dict.fromkeys(_NOT_JUDGED, lambda _: True)
        self._quietly = quietly

        def validator(part: Mapping[str, Any]) -> Any:
            return Draft202012Validator(dict(part), formats=formats, validate_formats=True, offline=True)

        self._make = validator
        self._validator = validator(schema)

    def check(self, payload: object, of: str) -> None:
        """PayloadInvalid where the payload does not fit, with the places and what was expected there."""
        if not self._validator.is_valid(payload):
            misfits = _told(self._validator.iter_errors(payload), quietly=self._quietly)
            raise unfit(of, sorted(misfits, key=lambda misfit: misfit[1] == _EXTRA))  # last, as the codec has them

    def fits_part(self, part: Mapping[str, Any], payload: object) -> bool:
        """Whether a value fits another schema, as a branch of this one is."""
        return bool(self._make(part).is_valid(payload))


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    if name == "base64url":
        return TypeAdapter(bytes, config=ConfigDict(val_json_bytes="base64"))
    return TypeAdapter(_FORMATS[name])


def _reads(name: str) -> Callable[[str], bool]:
    return lambda text: _refusal(name, text) is None


def _refusal(name: str, text: str) -> str | None:
    """Why the codec would not read this text, in its words."""
    try:
        _adapter(name).validate_json(values.encode(text))
    except ValidationError as error:
        return error.errors(include_url=False, include_input=False, include_context=False)[0]["msg"]
    return None


def _told(misfits: Iterator[Misfit], *, quietly: bool) -> Iterator[tuple[Place, str]]:
    for misfit in misfits:
        yield from _words(misfit, quietly=quietly)


def _words(misfit: Misfit, *, quietly: bool = False) -> Iterator[tuple[Place, str]]:
    kind, place, value = misfit.kind, tuple(misfit.instance_path), misfit.kind.value
    match kind.name:
        case "required":
            yield (*place, value), "Field required"
        case "additionalProperties":
            for name in value:
                yield (*place, name), _EXTRA
        case "anyOf" | "oneOf":
            yield from _of_branches(value, place, quietly=quietly)
        case "type" | "enum" | "const":
            yield place, _expected(kind.name, value, misfit)
        case _ if quietly and kind.name not in _BOUNDS and kind.name not in _SIZES:
            yield place, f"Input should fit its {kind.name}; what was given is not shown"
        case _:
            yield place, _expected(kind.name, value, misfit)


def _of_branches(
    branches: Sequence[Sequence[Misfit]] | None, place: Place, *, quietly: bool
) -> Iterator[tuple[Place, str]]:
    """What each branch of a union wanted, but for a null, which hardly anybody meant."""
    told = [one for branch in branches or () for misfit in branch for one in _words(misfit, quietly=quietly)]
    meant = [one for one in told if one[1] != "Input should be null"]
    yield from dict.fromkeys(meant or told or [(place, "Input should fit one of the types that are allowed here")])


def _expected(name: str, value: Any, misfit: Misfit) -> str:
    if name == "type":
        kinds = cast("list[str]", value if isinstance(value, list) else [value])
        return f"Input should be {' or '.join(_KINDS.get(kind, kind) for kind in kinds)}"
    if name == "enum":
        options = [repr(option) for option in value]
        return f"Input should be {' or '.join([', '.join(options[:-1]), options[-1]] if options[1:] else options)}"
    if name == "const":
        return f"Input should be {value!r}"
    if name in _BOUNDS:
        return f"Input should be {_BOUNDS[name]} {value}"
    if name in _SIZES:
        what, bound, unit = _SIZES[name]
        found = "" if what == "String" else f" after validation, not {len(cast('list[Any]', misfit.instance))}"
        return f"{what} should have {bound} {value} {unit}{'' if value == 1 else 's'}{found}"
    if name == "pattern":
        return f"String should match pattern '{value}'"
    if name == "format":
        return _refusal(value, str(misfit.instance)) or misfit.message
    return misfit.message
