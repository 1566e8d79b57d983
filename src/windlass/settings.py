"""Settings: the only reader of environment and files. A bad value names the variable, the value and the range."""

from __future__ import annotations

import base64
import os
import re
import tomllib
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from windlass.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")
DEFAULT_URL = "sqlite:///windlass.db"
DEFAULT_FILE = "windlass.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What can be set from outside; what is given in code wins over it."""

    url: str = DEFAULT_URL
    namespace: str = "windlass"
    app: str | None = None
    actor: str | None = None
    concurrency: int = 20
    lease: timedelta = timedelta(seconds=30)
    heartbeat: timedelta = timedelta(seconds=10)
    poll: timedelta = timedelta(seconds=5)
    rescue: timedelta = timedelta(seconds=5)
    grace: timedelta = timedelta(seconds=30)
    max_attempts: int = 5
    retry_delay: timedelta = timedelta(seconds=1)
    idempotency: timedelta = timedelta(hours=24)
    synchronous: str = "FULL"
    log_format: str = "auto"
    log_level: str = "info"
    statsd: str | None = None
    http_dashboard: bool = True
    http_hosts: tuple[str, ...] | None = None
    http_origins: tuple[str, ...] = ()
    http_proxies: tuple[str, ...] = ()
    http_rate: int = 2_000
    http_address_rate: int = 200
    http_quota: int = 0
    http_proxy_user: str | None = None
    http_proxy_scopes: str | None = None
    http_proxy_usual: tuple[str, ...] = ("enqueue", "read")
    http_jwt_secret: str | None = field(default=None, repr=False)
    http_jwt_jwks: str | None = None
    http_jwt_algorithms: tuple[str, ...] = ()
    http_jwt_issuer: str | None = None
    http_jwt_audience: str | None = None
    http_jwt_leeway: timedelta = timedelta(seconds=10)
    http_jwt_user: str = "sub"
    http_jwt_scopes: str = "scope"
    http_jwt_usual: tuple[str, ...] = ()
    http_jwt_attributes: tuple[str, ...] = ()
    http_traceparent: bool = False
    tracing: bool = False
    metrics_token: str | None = field(default=None, repr=False)
    secret_keys: tuple[bytes, ...] = field(default=(), repr=False)
    """what the secrets of jobs are sealed with, the newest first"""


@dataclass(frozen=True, slots=True)
class _Source:
    field: str
    names: tuple[str, ...]
    read: Callable[[str], Any]
    expected: str
    secret: bool = False
    """no message quotes it"""


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise ValueError
        return value

    return read


def _milliseconds(least: int, most: int) -> Callable[[str], timedelta]:
    whole = _whole(least, most)
    return lambda text: timedelta(milliseconds=whole(text))


def _text(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _namespace(text: str) -> str:
    # Short enough to leave room for the rest of a name in every store.
    if not text.isascii() or not text.isidentifier() or text != text.lower() or len(text) > 30:
        raise ValueError
    return text


def _synchronous(text: str) -> str:
    if text.upper() not in ("FULL", "NORMAL"):
        raise ValueError
    return text.upper()


def _switch(text: str) -> bool:
    if text.lower() not in ("on", "off"):
        raise ValueError
    return text.lower() == "on"


def _one_of(*known: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in known:
            raise ValueError
        return text.lower()

    return read


def _several(text: str) -> tuple[str, ...]:
    found = tuple(word.strip() for word in text.split(","))
    if not all(found):
        raise ValueError
    return found


def _some_of(*known: str) -> Callable[[str], tuple[str, ...]]:
    def read(text: str) -> tuple[str, ...]:
        found = _several(text)
        if not set(found) <= set(known):
            raise ValueError
        return found

    return read


def _header(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", text):
        raise ValueError
    return text


def _secret(text: str) -> str:
    if len(text.encode()) < SHORTEST_SECRET:
        raise ValueError
    return text


SHORTEST_SECRET = 32
"""bytes of what tokens are signed with: as many as HS256 gives"""


_KEY_BYTES = 32


def read_keys(text: str) -> tuple[bytes, ...]:
    """Keys as text, separated by commas, spaces or lines; of a line what follows a # is a remark."""
    words = [word for line in text.splitlines() for word in line.partition("#")[0].replace(",", " ").split()]
    keys = tuple(base64.b64decode(word + "=" * (-len(word) % 4), altchars=b"-_", validate=True) for word in words)
    if not keys or any(len(key) != _KEY_BYTES for key in keys) or len(set(keys)) < len(keys):
        raise ValueError
    return keys


def _keys_of_file(path: str) -> tuple[bytes, ...]:
    try:
        return read_keys(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"the keys in {path} cannot be read: {error.strerror}") from None


_DAY = 86_400_000
_KEYS = "different keys as windlass secrets new-key makes them, the newest first, separated by commas or lines"
_MS = "milliseconds from {} to 86400000"
_NAMES = "{}, with commas between"
SCOPES = ("enqueue", "read", "operate", "admin")
LOG_FORMATS = ("auto", "text", "json")
LOG_LEVELS = ("trace", "debug", "info", "warning", "error")
ALGORITHMS = ("HS256", "RS256", "ES256")
_SCOPES = f"some of {', '.join(SCOPES)}"
_KEYS_GIVEN = _Source("secret_keys", ("WINDLASS_SECRET_KEYS",), read_keys, _KEYS, secret=True)
_SOURCES = (
    _Source("url", ("WINDLASS_URL", "WINDLASS_STORE"), _text, "a store URL"),
    _Source("namespace", ("WINDLASS_NAMESPACE",), _namespace, "1 to 30 lower-case letters, digits or _"),
    _Source("app", ("WINDLASS_APP",), _text, "module:app"),
    _Source("http_dashboard", ("WINDLASS_HTTP_DASHBOARD",), _switch, "on or off"),
    _Source("actor", ("WINDLASS_ACTOR",), _text, "a name"),
    _Source("http_hosts", ("WINDLASS_HTTP_HOSTS",), _several, _NAMES.format("host names, or *")),
    _Source("http_origins", ("WINDLASS_HTTP_ORIGINS",), _several, _NAMES.format("origins, or *")),
    _Source("http_proxies", ("WINDLASS_HTTP_PROXIES",), _several, _NAMES.format("addresses or networks")),
    _Source("http_rate", ("WINDLASS_HTTP_RATE",), _whole(0, 1_000_000), "0 to 1000000 requests a second"),
    _Source(
        "http_address_rate", ("WINDLASS_HTTP_ADDRESS_RATE",), _whole(0, 1_000_000), "0 to 1000000 requests a second"
    ),
    _Source("http_quota", ("WINDLASS_HTTP_QUOTA",), _whole(0, 100_000), "0 to 100000 waiting jobs"),
    _Source("http_proxy_user", ("WINDLASS_HTTP_PROXY_USER",), _header, "the name of a header"),
    _Source("http_proxy_scopes", ("WINDLASS_HTTP_PROXY_SCOPES",), _header, "the name of a header"),
    _Source("http_proxy_usual", ("WINDLASS_HTTP_PROXY_USUAL",), _some_of(*SCOPES), _NAMES.format(_SCOPES)),
    _Source("http_jwt_secret", ("WINDLASS_HTTP_JWT_SECRET",), _secret, f"{SHORTEST_SECRET} bytes or more", secret=True),
    _Source("http_jwt_jwks", ("WINDLASS_HTTP_JWT_JWKS",), _text, "a path or an https:// URL"),
    _Source(
        "http_jwt_algorithms",
        ("WINDLASS_HTTP_JWT_ALGORITHMS",),
        _some_of(*ALGORITHMS),
        _NAMES.format(f"some of {', '.join(ALGORITHMS)}"),
    ),
    _Source("http_jwt_issuer", ("WINDLASS_HTTP_JWT_ISSUER",), _text, "the issuer that tokens name"),
    _Source("http_jwt_audience", ("WINDLASS_HTTP_JWT_AUDIENCE",), _text, "the audience that tokens name"),
    _Source("http_jwt_leeway", ("WINDLASS_HTTP_JWT_LEEWAY_MS",), _milliseconds(0, 300_000), "0 to 300000 milliseconds"),
    _Source("http_jwt_user", ("WINDLASS_HTTP_JWT_USER",), _text, "the name of a claim"),
    _Source("http_jwt_scopes", ("WINDLASS_HTTP_JWT_SCOPES",), _text, "the name of a claim"),
    _Source("http_jwt_usual", ("WINDLASS_HTTP_JWT_USUAL",), _some_of(*SCOPES), _NAMES.format(_SCOPES)),
    _Source("http_jwt_attributes", ("WINDLASS_HTTP_JWT_ATTRIBUTES",), _several, _NAMES.format("claims")),
    _Source("http_traceparent", ("WINDLASS_HTTP_TRACEPARENT",), _switch, "on or off"),
    _Source("tracing", ("WINDLASS_TRACING",), _switch, "on or off"),
    _Source("concurrency", ("WINDLASS_CONCURRENCY", "QUEUE_CONCURRENCY"), _whole(1, 10_000), "1 to 10000"),
    _Source(
        "lease",
        ("WINDLASS_LEASE_MS", "QUEUE_VISIBILITY_MS", "QUEUE_STUCK_THRESHOLD_MS"),
        _milliseconds(100, _DAY),
        _MS.format(100),
    ),
    _Source("heartbeat", ("WINDLASS_HEARTBEAT_MS", "QUEUE_HEARTBEAT_MS"), _milliseconds(10, _DAY), _MS.format(10)),
    _Source("poll", ("WINDLASS_POLL_MS", "QUEUE_POLL_MS"), _milliseconds(10, _DAY), _MS.format(10)),
    _Source("rescue", ("WINDLASS_RESCUE_MS",), _milliseconds(10, _DAY), _MS.format(10)),
    _Source("grace", ("WINDLASS_GRACE_MS",), _milliseconds(0, _DAY), _MS.format(0)),
    _Source(
        "max_attempts",
        ("WINDLASS_MAX_ATTEMPTS", "QUEUE_MAX_ATTEMPTS", "MAX_RETRY_ATTEMPTS"),
        _whole(1, 1_000_000),
        "1 to 1000000",
    ),
    _Source("retry_delay", ("WINDLASS_RETRY_DELAY_MS", "RETRY_DELAY"), _milliseconds(0, _DAY), _MS.format(0)),
    _Source(
        "idempotency",
        ("WINDLASS_IDEMPOTENCY_MS",),
        _milliseconds(1_000, 30 * _DAY),
        "milliseconds from 1000 to 2592000000",
    ),
    _Source("log_format", ("WINDLASS_LOG_FORMAT",), _one_of(*LOG_FORMATS), "auto, text or json"),
    _Source("log_level", ("WINDLASS_LOG_LEVEL",), _one_of(*LOG_LEVELS), f"one of {', '.join(LOG_LEVELS)}"),
    _Source("statsd", ("WINDLASS_STATSD",), _text, "udp://host:port?prefix=…&tags=dogstatsd"),
    _Source("synchronous", ("WINDLASS_SYNCHRONOUS",), _synchronous, "FULL or NORMAL"),
    _Source("metrics_token", ("WINDLASS_METRICS_TOKEN",), _secret, f"{SHORTEST_SECRET} bytes or more", secret=True),
    _KEYS_GIVEN,
    _Source("secret_keys", ("WINDLASS_SECRET_KEYS_FILE",), _keys_of_file, f"the path of a file of {_KEYS}"),
)


def load(environ: Mapping[str, str] | None = None, file: Path | None = None) -> Settings:
    """The settings of this process: the file `windlass.toml` where there is one, and over it the environment."""
    return replace(Settings(), **_found(environ, file))


def load_own(name: str, model: type[M], environ: Mapping[str, str] | None = None, file: Path | None = None) -> M:
    """The settings of an application: the table `[name]` of windlass.toml, and over it `WINDLASS_<NAME>_<FIELD>`.

    SettingsError names what is set wrongly, where, and what was expected; a secret's value is not quoted.
    """
    from pydantic import ValidationError  # only who has an application of its own needs it here

    given, path = _place(environ, file)
    table = _members(path or Path(DEFAULT_FILE), required=path is not None).get(name, {})
    if not isinstance(table, dict):
        raise SettingsError(f"{path or DEFAULT_FILE} sets {name} to {table!r}: expected a table [{name}]")
    known = list(model.model_fields)
    unknown = sorted(set(cast("dict[str, Any]", table)) - set(known))
    if unknown:
        raise SettingsError(f"[{name}] sets {', '.join(unknown)}: known are {', '.join(known)}")
    variables = {field: f"WINDLASS_{name}_{field}".upper() for field in known}
    found: dict[str, Any] = {**table, **{field: given[v] for field, v in variables.items() if v in given}}
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise SettingsError(_own_mistake(name, model, found, variables, given, error)) from None


def _own_mistake(
    name: str,
    model: type[BaseModel],
    found: Mapping[str, Any],
    variables: Mapping[str, str],
    given: Mapping[str, str],
    error: Any,
) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    field = str(first["loc"][0]) if first["loc"] else ""
    expected = str(first["msg"]).removeprefix("Value error, ")
    if field not in variables:
        return f"the settings of {name} do not fit: {expected}"
    variable = variables[field]
    where = variable if variable in given else f"[{name}] {field}"
    if field not in found:
        return f"{variable} is not set: {expected}"
    secret = "Secret" in str(model.model_fields[field].annotation)
    return f"{where} is {'not what it should be' if secret else repr(found[field])[:80]}: {expected}"


def names(field: str) -> bool:
    """Whether somebody has set it, be it to its default."""
    return field in _found(None, None)


def _found(environ: Mapping[str, str] | None, file: Path | None) -> dict[str, Any]:
    given, named = _place(environ, file)
    if "WINDLASS_SECRET_KEYS" in given and "WINDLASS_SECRET_KEYS_FILE" in given:
        raise SettingsError("WINDLASS_SECRET_KEYS and WINDLASS_SECRET_KEYS_FILE are both set: choose one")
    found: dict[str, Any] = _from_file(named or Path(DEFAULT_FILE), required=named is not None)
    for source in _SOURCES:
        for name in source.names:
            if name in given:
                found[source.field] = _read(source, name, given[name])
                break
    return found


def _place(environ: Mapping[str, str] | None, file: Path | None) -> tuple[Mapping[str, str], Path | None]:
    """The environment, and the file that somebody named."""
    given = os.environ if environ is None else environ
    return given, file or (Path(given["WINDLASS_FILE"]) if "WINDLASS_FILE" in given else None)


def check_namespace(value: str) -> str:
    """A namespace given in code, held to the same rule."""
    return str(_read(_SOURCES[1], "namespace", value))


def check_keys(given: Sequence[str]) -> tuple[bytes, ...]:
    """Keys given in code, held to the same rule; none are none."""
    return tuple(_read(_KEYS_GIVEN, "secret_keys", "\n".join(given))) if given else ()


def _members(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if required:
            raise SettingsError(f"{path} does not exist: give the path of a windlass.toml") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from None


def _from_file(path: Path, *, required: bool) -> dict[str, Any]:
    found = _members(path, required=required)
    by_member = {_member(source): source for source in _SOURCES}
    # Other tables are those of applications, which read them by themselves.
    members = {name: value for name, value in found.items() if name in by_member or not isinstance(value, dict)}
    unknown = members.keys() - by_member.keys()
    if unknown:
        raise SettingsError(f"{path} sets {', '.join(sorted(unknown))}: known are {', '.join(by_member)}")
    return {by_member[name].field: _read_member(by_member[name], path, name, v) for name, v in members.items()}


_SEVERAL = {one.name for one in fields(Settings) if str(one.type).startswith("tuple[")}
"""the settings of which a file may have a list"""


def _read_member(source: _Source, path: Path, name: str, value: object) -> Any:
    if isinstance(value, list):
        several = cast("list[object]", value)
        # Of what takes one only, a list is told as what was found.
        value = (
            ",".join(one if isinstance(one, str) else "" for one in several) if source.field in _SEVERAL else several
        )
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        found = f"of type {type(value).__name__}" if source.secret else repr(value)
        raise SettingsError(f"{path}: {name} is {found}: expected {source.expected}")
    return _read(source, f"{path}: {name}", str(value))


def _member(source: _Source) -> str:
    return source.names[0].removeprefix("WINDLASS_").lower()


def _read(source: _Source, name: str, text: str) -> Any:
    try:
        return source.read(text)
    except ValueError:
        found = f"{len(text)} characters that are something else" if source.secret else repr(text[:80])
        raise SettingsError(f"{name} is {found}: expected {source.expected}") from None


assert {source.field for source in _SOURCES} == {field.name for field in fields(Settings)}  # noqa: S101  # each can be set
