"""`Secret`: a value that a handler is given and nobody else sees. In a store it is sealed: see `sealing`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast, get_args

from pydantic_core import PydanticCustomError, core_schema

from windlass.core import values
from windlass.core.redaction import MASK
from windlass.core.sealing import MEMBER, SCHEMA_MARK, Reading, Writing, is_sealed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler

    from windlass.core.payload import ResultCodec

T_co = TypeVar("T_co", covariant=True)
META = "windlass_secret"
"""in the metadata of a core schema: here is a secret"""
_MISFIT = "Input should be a secret of its type; what was given is not shown"
_MASKED = "Input is what is shown in place of a secret: give the secret itself"


class Secret(Generic[T_co]):
    """A value that is encrypted wherever it is kept, and `***` wherever it is shown.

    A parameter declared as `Secret[str]`, or of any other type that a payload can hold, reaches the handler as a
    Secret; `reveal()` gives its value. Nothing else does: not `print`, a log line, `json`, pydantic or pickle.
    """

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]  # in a set or as a name it would have no place to be sealed for

    def __init__(self, value: T_co) -> None:
        self._value = value

    def reveal(self) -> T_co:
        """The value itself."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and bool(self._value == cast("Secret[object]", other).reveal())

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return MASK

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not pickled: pass what reveal() gives where it is needed, or let a job take it")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """How pydantic, and with it the codec, reads and writes one."""
        hint = (get_args(source) or (Any,))[0]
        if isinstance(hint, TypeVar):
            raise TypeError("Secret has to say of what, such as Secret[str]")
        inner = handler.generate_schema(hint)
        codec = _codec_of(hint)

        def read(value: object, info: core_schema.ValidationInfo[Any]) -> Secret[Any]:
            return _read(value, info, codec())

        def write(value: Secret[Any], info: core_schema.FieldSerializationInfo[Any]) -> object:
            context: object = info.context
            return context.take(codec().encode(value.reveal())) if type(context) is Writing else MASK

        return core_schema.with_info_plain_validator_function(
            read,
            serialization=core_schema.plain_serializer_function_ser_schema(
                write, info_arg=True, return_schema=core_schema.any_schema(), when_used="json"
            ),
            json_schema_input_schema=inner,
            metadata={META: True},
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Mapping[str, Any], handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The schema of its value, marked as what is not to be shown."""
        made = {**handler(schema["json_schema_input_schema"]), SCHEMA_MARK: True}
        if made.get("type") == "string":
            made.setdefault("format", "password")
        return made | ({"writeOnly": True} if handler.mode == "validation" else {})


def _codec_of(hint: Any) -> Any:
    @cache
    def codec() -> ResultCodec:
        # Not before it is needed: the type may be a model that is still being defined.
        from windlass.core.payload import ResultCodec

        return ResultCodec("a secret", hint)

    return codec


def _read(given: object, info: core_schema.ValidationInfo[Any], codec: ResultCodec) -> Secret[Any]:
    context: object = info.context
    value = cast("Secret[object]", given).reveal() if isinstance(given, Secret) else given
    stored = isinstance(context, Reading)
    if isinstance(context, Reading) and is_sealed(value):
        text = context.open(cast("dict[str, str]", value)[MEMBER])
        return _told_nothing(lambda: codec.decode(text))
    if info.mode == "json":
        # As JSON, not as a Python value: bytes, for one, are base64 text there. What was stored before the parameter
        # became a secret is plain, and is taken as it is.
        if value == MASK and not stored:
            raise PydanticCustomError("secret", _MASKED)
        return _told_nothing(lambda: codec.decode(values.encode(value)))
    if type(value) is str and value == MASK:
        raise PydanticCustomError("secret", _MASKED)
    return _told_nothing(lambda: codec.decode(codec.encode(value)))


def _told_nothing(make: Callable[[], Any]) -> Secret[Any]:
    """The secret, or an error that does not quote it."""
    try:
        return Secret(make())
    except Exception:  # noqa: BLE001  # whatever it says, it may say what was given
        raise PydanticCustomError("secret", _MISFIT) from None
