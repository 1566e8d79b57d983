from __future__ import annotations

import copy
import json
import pickle
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from inspect import Parameter
from typing import Any

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from tests.core.making import NOON, a_job, declared
from windlass.core import sealing
from windlass.core.context import Ctx
from windlass.core.draft import Options
from windlass.core.errors import (
    HandlerError,
    PayloadInvalid,
    PayloadUnfit,
    SecretUnreadable,
    SettingsError,
    StepInvalid,
)
from windlass.core.fitting import Fitting
from windlass.core.handler import Declaration, Handler, declare_instance
from windlass.core.limit import Limit
from windlass.core.payload import Codec, ResultCodec
from windlass.core.retry import Retry
from windlass.core.secret import Secret
from windlass.core.unique import Unique
from windlass.core.upgrading import make_upgrade

CANARY = "canary-5f0c"


class Notes:
    """Seals by writing down: what is sealed is a number, and the note says text and place."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str]] = []
        self.can_seal = True

    def seal(self, text: str, place: str) -> str:
        self.notes.append((text, place))
        return f"wl1.{len(self.notes) - 1}"

    def open(self, sealed: str, place: str) -> str:
        text, of = self.notes[int(sealed.removeprefix("wl1."))]
        if of != place:
            raise SecretUnreadable("moved")
        return text

    def digest(self, text: str) -> str:
        return str(len(text))

    def check(self) -> None:
        if not self.can_seal:
            raise SecretUnreadable("no key")


class Login(BaseModel):
    user: str
    password: Secret[str]
    more: list[Login] = Field(default_factory=list["Login"])


@dataclass
class Hook:
    headers: Secret[dict[str, str]]
    on: date = field(default=date(2026, 1, 1))


def send(
    token: Secret[str],
    login: Login | None = None,
    hook: Hook | None = None,
    codes: list[Secret[int]] = [],  # noqa: B006  # never changed
    raw: Secret[bytes] | None = None,
    anything: Any = None,
) -> None: ...


@pytest.fixture
def seals() -> Notes:
    return Notes()


@pytest.fixture
def sent(seals: Notes) -> Declaration:
    made = declared(send)
    made.codec.seal_with(seals)
    return made


def whole(data: Any, seals: Notes | None = None, result: Any = None) -> Codec:
    made = Codec(
        "sync", {"data": Parameter("data", Parameter.POSITIONAL_ONLY)}, {"data": data, "return": result}, whole=True
    )
    made.seal_with(seals)
    return made


# The value.


def test_a_secret_shows_itself_to_nobody() -> None:
    secret = Secret(CANARY)
    shown = [str(secret), repr(secret), f"{secret}", f"{secret:>9}", f"{secret!r}", f"{[secret]}"]
    assert CANARY not in "".join(shown)
    assert (str(secret), repr(secret)) == ("***", "Secret(***)")
    assert secret.reveal() == CANARY
    assert not hasattr(secret, "__dict__")
    for make in (pickle.dumps, json.dumps, hash):
        with pytest.raises(TypeError) as refused:
            make(secret)
        assert CANARY not in str(refused.value)


def test_it_is_compared_by_its_value_and_copied_as_itself() -> None:
    secret = Secret([CANARY])
    assert secret == Secret([CANARY])
    assert secret not in (Secret("other"), [CANARY])
    assert copy.copy(secret) is copy.deepcopy(secret) is secret


def test_pydantic_masks_it_where_windlass_does_not_write() -> None:
    login = Login(user="ann", password=Secret(CANARY))
    assert json.loads(login.model_dump_json()) == {"user": "ann", "password": "***", "more": []}
    assert login.model_dump()["password"] == Secret(CANARY)
    assert CANARY not in repr(login)


# Payloads.


def test_every_secret_of_a_payload_is_sealed_for_its_place(sent: Declaration, seals: Notes) -> None:
    login = Login(user="ann", password=Secret("p1"), more=[Login(user="bob", password=Secret("p2"))])
    text = sent.codec.encode(
        (CANARY,), {"login": login, "hook": Hook(Secret({"a": "b"})), "codes": [1, Secret(2)], "raw": b"\xff"}
    )
    assert CANARY not in text
    assert {place for _, place in seals.notes} == {
        '["payload","mail.send","token"]',
        '["payload","mail.send","login","password"]',
        '["payload","mail.send","login","more",0,"password"]',
        '["payload","mail.send","hook","headers"]',
        '["payload","mail.send","codes",0]',
        '["payload","mail.send","codes",1]',
        '["payload","mail.send","raw"]',
    }
    found = sent.arguments(text)
    assert found["token"].reveal() == CANARY
    assert found["login"].more[0].password.reveal() == "p2"
    assert found["hook"].headers.reveal() == {"a": "b"}
    assert [code.reveal() for code in found["codes"]] == [1, 2]
    assert found["raw"].reveal() == b"\xff"
    assert sent.codec.secrets == {"token", "login", "hook", "codes", "raw"}


def test_plain_json_is_sealed_alike(sent: Declaration) -> None:
    text = sent.codec.encode_plain({"token": CANARY, "codes": [7], "raw": "_w=="})
    assert CANARY not in text
    found = sent.arguments(text)
    assert (found["token"].reveal(), found["codes"][0].reveal(), found["raw"].reveal()) == (CANARY, 7, b"\xff")


def test_a_class_handlers_data_is_sealed(seals: Notes) -> None:
    codec = whole(Login, seals)
    text = codec.encode((Login(user="ann", password=Secret(CANARY)),), {})
    assert CANARY not in text
    assert codec.decode(text)["data"].password.reveal() == CANARY
    assert codec.secrets == {"password", "more"}
    assert whole(Hook, seals).secrets == {"headers"}
    assert whole(Secret[str], seals).secrets == frozenset()
    assert whole(str).secrets == frozenset()


def test_without_a_key_nothing_is_encoded(sent: Declaration) -> None:
    sent.codec.seal_with(None)
    with pytest.raises(SettingsError, match=r"mail\.send: token is a secret.*WINDLASS_SECRET_KEYS"):
        sent.codec.encode((CANARY,), {})
    with pytest.raises(SettingsError):
        sent.codec.encode_plain({"token": CANARY})


@pytest.mark.parametrize(
    "arguments",
    [
        {"token": 5_550_199},
        {"token": f"{CANARY}\x00"},
        {"token": [CANARY]},
        {"token": "x", "codes": [CANARY]},
        {"token": "x", "hook": {"headers": CANARY}},
        {"token": "x", "raw": 5_550_199},
        {"token": "x", "anything": {"in": Secret(CANARY)}},
        {"token": "x", "anything": Login(user="ann", password=Secret(CANARY))},
        {"token": "x", "token2": Secret(CANARY)},
    ],
)
def test_a_refusal_does_not_quote_the_secret(sent: Declaration, arguments: dict[str, Any]) -> None:
    for call in (partial(sent.codec.encode, (), arguments), partial(sent.codec.encode_plain, arguments)):
        with pytest.raises(PayloadInvalid) as refused:
            call()
        told = str(refused.value)
        assert CANARY not in told
        assert "5550199" not in told
        assert refused.value.__cause__ is None


def test_the_mask_is_no_secret(sent: Declaration) -> None:
    with pytest.raises(PayloadInvalid, match="shown in place of a secret"):
        sent.codec.encode_plain({"token": "***"})
    with pytest.raises(PayloadInvalid, match="shown in place of a secret"):
        sent.codec.encode(("***",), {})


def test_what_looks_like_a_place_for_a_secret_cannot_take_one(sent: Declaration) -> None:
    with pytest.raises(PayloadInvalid, match=r"anything has a member \$secret"):
        sent.codec.encode((CANARY,), {"anything": {"$secret": 0}})
    text = sent.codec.encode((CANARY,), {"anything": [{"$secret": "mine"}, {"$secret": "wl1.0"}]})
    assert sent.arguments(text)["anything"] == [{"$secret": "mine"}, {"$secret": "wl1.0"}]


def test_a_secret_that_would_be_in_no_place_is_refused() -> None:
    writing = sealing.Writing()
    writing.take('"x"')
    with pytest.raises(PayloadInvalid, match="a place that it cannot be sealed in"):
        writing.put_back({}, "mail.send", lambda text, _: text)


def test_a_secret_in_a_set_is_refused() -> None:
    codec = whole(dict[str, Any])
    assert not codec.holds_secrets
    with pytest.raises((PayloadInvalid, HandlerError)):
        whole(set[Secret[str]], Notes()).encode(({"x"},), {})


def test_a_secret_in_a_secret_is_refused_when_it_is_declared() -> None:
    with pytest.raises(HandlerError, match="a Secret that holds a Secret"):
        whole(Secret[Login])
    with pytest.raises(HandlerError, match="a Secret that holds a Secret"):
        whole(list[Secret[list[Secret[str]]]])


def test_a_bare_secret_is_any_json_and_a_variable_is_none() -> None:
    codec = whole(Secret, Notes())
    text = codec.encode(({"k": [1, CANARY]},), {})
    assert codec.decode(text)["data"].reveal() == {"k": [1, CANARY]}
    with pytest.raises(HandlerError, match=r"such as Secret\[str\]"):
        whole(Secret.__class_getitem__(Secret.__parameters__[0]))  # type: ignore[attr-defined]  # of Generic


# Reading.


def test_a_moved_copied_or_unknown_secret_is_unreadable(sent: Declaration, seals: Notes) -> None:
    text = sent.codec.encode((CANARY,), {"raw": b"x"})
    payload = json.loads(text)
    swapped = json.dumps({"token": payload["raw"], "raw": payload["token"]}, separators=(",", ":"))
    with pytest.raises(SecretUnreadable, match=r"payload of mail\.send: token: moved"):
        sent.arguments(swapped)
    copied = json.dumps({"token": payload["token"], "codes": [payload["token"]]}, separators=(",", ":"))
    with pytest.raises(SecretUnreadable, match="copied from another place"):
        sent.arguments(copied)
    other = declared(send, name="mail.other")
    other.codec.seal_with(seals)
    with pytest.raises(SecretUnreadable):
        other.arguments(text)
    sent.codec.seal_with(None)
    with pytest.raises(SecretUnreadable, match="no keys here"):
        sent.arguments(text)
    assert issubclass(SecretUnreadable, PayloadUnfit)


def test_what_was_stored_before_it_became_a_secret_is_read(sent: Declaration) -> None:
    assert sent.arguments('{"token":"plain"}')["token"].reveal() == "plain"
    with pytest.raises(PayloadUnfit) as refused:
        sent.arguments('{"token":"plain","codes":["canary-5f0c"]}')
    assert CANARY not in str(refused.value)


def test_a_job_is_not_begun_whose_result_could_not_be_sealed(seals: Notes) -> None:
    def make(n: int) -> Secret[str]:
        return Secret(str(n))

    made = declared(make)
    with pytest.raises(SecretUnreadable, match="no key to seal"):
        made.arguments('{"n":1}')
    made.codec.seal_with(seals)
    assert made.arguments('{"n":1}') == {"n": 1}
    assert made.codec.opens('{"n":1}')
    seals.can_seal = False
    with pytest.raises(SecretUnreadable):
        made.arguments('{"n":1}')
    assert not made.codec.opens('{"n":1}')


def test_results_are_sealed(seals: Notes) -> None:
    codec = whole(int, seals, result=list[Secret[str]])
    text = codec.encode_result([CANARY, Secret("x")])
    assert CANARY not in text
    assert [one.reveal() for one in codec.decode_result(text)] == [CANARY, "x"]
    with pytest.raises(SecretUnreadable):
        whole(int, None, result=list[Secret[str]]).decode_result(text)


# Looking.


def test_what_is_shown_of_a_job_is_masked(sent: Declaration) -> None:
    text = sent.codec.encode((CANARY,), {"codes": [5], "anything": {"$secret": "mine"}})
    job = a_job(payload_json=text, result_json='[{"$secret":"wl1.0"}]')
    assert job.payload == {"token": "***", "codes": ["***"], "anything": {"$secret": "mine"}}
    assert job.result == ["***"]
    assert a_job(payload_json="{}", result_json=None).result is None
    assert sealing.masked_text(text) == '{"anything":{"$secret":"mine"},"codes":["***"],"token":"***"}'
    assert sealing.masked_text("[1]") == "[1]"
    assert sealing.holds_sealed(text)
    assert not sealing.holds_sealed("[1]")
    assert sealing.sealed_in(text) == ["wl1.1", "wl1.0"]
    assert sealing.sealed_in("[1]") == []


def test_what_a_job_knows_is_found_for_hiding(sent: Declaration, seals: Notes) -> None:
    text = sent.codec.encode((CANARY,), {"codes": [5], "hook": Hook(Secret({"a": "b"}))})
    assert sorted(sealing.told_by(text, seals, "mail.send")) == sorted([CANARY, "5", "b"])
    assert sealing.told_by(text, None, "mail.send") == []
    assert sealing.told_by('{"n":1}', seals, "mail.send") == []
    several = whole(Secret[Any], seals)
    assert sealing.told_by(several.encode(([True, None, ["x", 1.5]],), {}), seals, "sync") == ["x", "1.5"]


def test_a_result_moves_into_the_next_jobs_payload(seals: Notes) -> None:
    made = json.loads(whole(int, seals, result=Secret[str]).encode_result(CANARY))
    moved = sealing.moved(made, seals, ("result", "sync"), ("payload", "mail.send"), ("token",))
    assert seals.open(moved["$secret"], '["payload","mail.send","token"]') == f'"{CANARY}"'


# What is declared.


@pytest.mark.parametrize(
    "options",
    [
        {"unique": Unique("a:{token}")},
        {"unique": Unique(running="a:{login}")},
        {"limit": Limit("a:{hook}", 1)},
        {"fair_by": "a:{codes}"},
    ],
)
def test_a_key_does_not_name_a_secret(options: dict[str, Any]) -> None:
    with pytest.raises(HandlerError, match="which is a secret"):
        declared(send, **options)


def test_a_key_names_what_stands_beside_it() -> None:
    class Sync(Handler[Login, None]):
        def perform(self, data: Login) -> None: ...

    def made(key: str) -> Declaration:
        return declare_instance(Sync(), name="sync", options=Options(unique=Unique(key)), policy=Retry())

    assert made("a:{user}").codec.secrets == {"password", "more"}
    with pytest.raises(HandlerError, match="names password, which is a secret"):
        made("a:{password}")


def test_the_published_schema_says_what_is_a_secret(sent: Declaration) -> None:
    described = sent.described()
    schema = described.payload_schema
    assert described.takes_secrets
    assert schema is not None
    token = {"type": "string", "format": "password", "writeOnly": True, sealing.SCHEMA_MARK: True}
    assert schema["properties"]["token"] == token
    assert not declared(_plain, name="x").described().takes_secrets

    def given(token: Secret[date]) -> Secret[date]:
        return token

    result = declared(given).described().result_schema
    assert result == {"type": "string", "format": "date", sealing.SCHEMA_MARK: True}


def test_a_secrets_default_is_not_published() -> None:
    class Data(BaseModel):
        token: Secret[str] = Secret(CANARY)

    schema = whole(Data).payload_schema()
    assert CANARY not in json.dumps(schema)
    assert "default" not in (schema or {})["$defs"]["Data"]["properties"]["token"]


def by_schema(hint: Any, payload: Any) -> tuple[Any, Codec, Notes]:
    seals = Notes()
    codec = whole(hint, seals)
    schema = codec.payload_schema()
    assert schema is not None
    fitting = Fitting(schema, quietly=True)
    fitting.check(payload, "sync")

    def seal(text: str, path: sealing.Path) -> Any:
        return {sealing.MEMBER: seals.seal(text, sealing.place_of("payload", "sync", path))}

    return sealing.seal_by_schema(payload, schema, seal, fitting.fits_part), codec, seals


class Pair(TypedDict):
    kind: str
    both: tuple[Secret[str], int]
    by_name: dict[str, Secret[str]]


@pytest.mark.parametrize(
    ("hint", "payload", "count"),
    [
        (Secret[str], CANARY, 1),
        (Login, {"user": "ann", "password": CANARY, "more": [{"user": "bob", "password": CANARY}]}, 2),
        (Pair, {"kind": "x", "both": [CANARY, 5], "by_name": {"a": CANARY, "b": CANARY}}, 3),
        (Secret[str] | int, CANARY, 1),
        (Secret[str] | int, 5, 0),
        (Secret[str] | None, None, 0),
        (list[Login | Hook], [{"headers": {"a": CANARY}}, {"user": "ann", "password": CANARY}], 2),
        (dict[str, Any], {"a": {"b": [1]}}, 0),
    ],
)
def test_a_schema_alone_says_what_to_seal(hint: Any, payload: Any, count: int) -> None:
    sealed, codec, seals = by_schema(hint, payload)
    text = json.dumps(sealed, separators=(",", ":"))
    assert CANARY not in text
    assert len(seals.notes) == count
    codec.decode(text)


def test_a_misfit_with_a_schema_is_told_quietly(sent: Declaration) -> None:
    class Data(BaseModel):
        day: Secret[date]
        name: Secret[str] = Field(min_length=1)
        kind: Secret[str] | None = None

    schema = whole(Data).payload_schema()
    assert schema is not None
    for payload in ({"day": CANARY}, {"day": 1, "kind": [CANARY]}, [CANARY], {"day": "2026-01-01", CANARY[:0]: 1}):
        with pytest.raises(PayloadInvalid) as refused:
            Fitting(schema, quietly=True).check(payload, "sync")
        assert CANARY not in str(refused.value)
    with pytest.raises(PayloadInvalid, match="its format; what was given is not shown"):
        Fitting(schema, quietly=True).check({"day": CANARY, "name": "x"}, "sync")


# Idempotency, upgrades, steps.


def test_the_same_arguments_have_the_same_key_and_others_another(sent: Declaration, seals: Notes) -> None:
    options = Options(idempotency_window=NOON - NOON.replace(hour=11))

    def key(token: str) -> str | None:
        return sent.draft("id", sent.codec.encode((token,), {}), options).idempotency_key

    assert key("one") == key("one") != key("longer")
    plain = declared(_plain, name="x")
    assert plain.draft("id", '{"x":1}', options).idempotency_key is not None


class Old(TypedDict):
    key: Secret[str]
    logins: list[Login]


@pytest.mark.parametrize("form", ["dict", "model"])
def test_an_upgrade_is_given_secrets_and_gives_them_on(seals: Notes, form: str) -> None:
    def now(token: Secret[str], logins: list[Login], n: int) -> None: ...

    made = declared(now)
    made.codec.seal_with(seals)

    def newer(old: Old) -> Any:
        return {"token": old["key"], "logins": old["logins"] if form == "model" else [], "n": 1}

    made.upgrades.append(make_upgrade(made.name, Old, newer, seals))

    before = declared(_old)
    before.codec.seal_with(seals)
    text = before.codec.encode((CANARY, [Login(user="ann", password=Secret("p"))]), {})
    found = made.arguments(text)
    assert found["token"].reveal() == CANARY
    assert form == "dict" or found["logins"][0].password.reveal() == "p"
    seals.notes[0] = ("", "elsewhere")
    with pytest.raises(SecretUnreadable):
        made.arguments(text)


def _plain(x: int) -> None: ...


def _old(key: Secret[str], logins: list[Login]) -> None: ...


async def test_a_step_does_not_keep_a_secret() -> None:
    called: list[int] = []

    def fetch() -> Secret[str]:
        called.append(1)
        return Secret(CANARY)

    ctx = Ctx(a_job(), lambda _: None, lambda: False)
    with pytest.raises(StepInvalid, match="returns a Secret"):
        await ctx.step("fetch", fetch)
    assert called == []


def test_plainly_is_for_what_is_kept_nowhere(sent: Declaration, seals: Notes) -> None:
    sent.codec.seal_with(None)
    text = sent.codec.encode((CANARY,), {}, plainly=True)
    arguments = sent.codec.decode_plain(text)
    assert arguments["token"].reveal() == CANARY
    assert CANARY not in sent.codec.masked(arguments)
    codec = whole(Login)
    data = codec.decode_plain(codec.encode((Login(user="ann", password=Secret(CANARY)),), {}, plainly=True))
    assert CANARY not in codec.masked(data)


def test_a_codec_without_secrets_seals_nothing() -> None:
    codec = declared(_plain).codec
    assert not codec.holds_secrets
    assert ResultCodec("x", int).encode(1, plainly=True) == "1"
    ResultCodec("x", int).check_seals()
