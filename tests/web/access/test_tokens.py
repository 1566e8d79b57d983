"""Tokens: only those that are signed as we say, by whom we know, for us and now."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as elliptic
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from fastapi import FastAPI
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from starlette.requests import HTTPConnection

from windlass import SettingsError, Windlass
from windlass.stores.contract import Scope
from windlass.web.access.signers import FLOOR, FRESH, LARGEST, Signers
from windlass.web.access.tokens import ByToken, Tokens
from windlass.web.answers import Answers
from windlass.web.callers import Caller

SECRET = "s" * 32
SHOP = Tokens(secret=SECRET, issuer="https://id.example", audience="jobs", attributes=("premium", "plan"))
GOOD = {"sub": "ann", "iss": "https://id.example", "aud": "jobs", "scope": "openid read enqueue"}
Key = str | RSAPrivateKey | EllipticCurvePrivateKey


@pytest.fixture(scope="module")
def ours() -> RSAPrivateKey:
    return rsa(65537, 2048)


def signed(key: Key = SECRET, algorithm: str = "HS256", head: dict[str, Any] | None = None, **claims: Any) -> str:
    """A good token but for what is given; a claim that is None is left out."""
    whole = {"exp": time.time() + 60, **GOOD, **claims}
    return jwt.encode({k: v for k, v in whole.items() if v is not None}, key, algorithm, headers=head)


def forged(head: object, claims: object, secret: bytes = b"", by: Any = hashlib.sha256) -> str:
    """A token that no library would make."""
    parts = [_part(json.dumps(one).encode()) for one in (head, claims)]
    return ".".join([*parts, _part(hmac.digest(secret, ".".join(parts).encode(), by) if secret else b"")])


def by_hand(key: RSAPrivateKey, head: object, claims: object) -> str:
    """Signed by a key that the library would rather not use."""
    text = ".".join(_part(json.dumps(one).encode()) for one in (head, claims))
    return f"{text}.{_part(key.sign(text.encode(), PKCS1v15(), SHA256()))}"


def _part(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@asynccontextmanager
async def asking(web: FastAPI) -> AsyncGenerator[httpx.AsyncClient, None]:
    transport = httpx.ASGITransport(web, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://windlass/api/v1") as client:
        yield client


async def status(client: httpx.AsyncClient, token: str) -> int:
    return (await client.get("/queue", headers={"Authorization": f"Bearer {token}"})).status_code


async def caller(by: ByToken, token: str, app: Windlass) -> Caller:
    scope = {"type": "http", "headers": [(b"authorization", f"Bearer {token}".encode())]}
    found = await by(HTTPConnection(scope), cast("Answers", app))
    assert found is not None
    return found


async def test_a_good_token_lets_in_its_user_with_its_scopes(app: Windlass) -> None:
    async with asking(app.asgi(authenticate=ByToken(SHOP))) as client:
        headers = {"Authorization": f"bearer {signed()}"}
        made = await client.post("/queue/enqueue", json={"type": "mail.send", "payload": {"to": "x"}}, headers=headers)
        assert (made.status_code, made.json()["userId"]) == (201, "ann")
        path = f"/queue/{made.json()['id']}"
        assert (await client.get(path, headers=headers)).status_code == 200
        other = {"Authorization": f"Bearer {signed(sub='bob')}"}
        assert (await client.get(path, headers=other)).status_code == 404
        assert (await client.delete(path, headers=headers)).status_code == 403
        weak = {"Authorization": f"Bearer {signed(scope='openid')}"}
        assert (await client.get("/queue", headers=weak)).status_code == 403


async def test_what_is_read_from_a_token(app: Windlass) -> None:
    read, both = frozenset({Scope.READ}), frozenset({Scope.READ, Scope.ENQUEUE})
    by = ByToken(SHOP)
    found = await caller(by, signed(premium=True, plan={"name": "gold"}, email="a@b"), app)
    assert (found.owner, found.name, found.scopes, found.grants.queues) == ("ann", "user:ann", both, None)
    assert found.attributes == {"premium": True, "plan": {"name": "gold"}}
    assert (await caller(by, signed(scope=["read", "fly", 7, {}]), app)).scopes == read
    assert (await caller(by, signed(scope=None), app)).scopes == frozenset()
    assert (await caller(by, signed(scope={"read": 1}), app)).scopes == frozenset()
    named = Tokens(secret=SECRET, user="ids.uid", scopes="https://shop.example/roles", usual=read)
    mine: dict[str, Any] = {"iss": None, "aud": None, "sub": None, "ids": {"uid": 7}}
    assert (await caller(ByToken(named), signed(**mine), app)).owner == "7"
    assert (await caller(ByToken(named), signed(**mine), app)).scopes == read
    roles: dict[str, Any] = {"https://shop.example/roles": "read enqueue"}
    assert (await caller(ByToken(named), signed(**mine, **roles), app)).scopes == both


def bad(ours: RSAPrivateKey) -> dict[str, str]:
    public = ours.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    now, good = time.time(), {**GOOD, "exp": time.time() + 60}
    plain = signed()
    return {
        "expired": signed(exp=now - 11),
        "without an end": signed(exp=None),
        "an end that is no number": forged({"alg": "HS256"}, {**good, "exp": "soon"}, SECRET.encode()),
        "an end at infinity": forged({"alg": "HS256"}, {**good, "exp": float("inf")}, SECRET.encode()),
        "not yet": signed(nbf=now + 60),
        "another issuer": signed(iss="https://id.example.evil"),
        "no issuer": signed(iss=None),
        "another audience": signed(aud="jobs2"),
        "audiences without us": signed(aud=["a", "b"]),
        "no audience": signed(aud=None),
        "another secret": signed("t" * 32),
        "alg none": forged({"alg": "none"}, good),
        "alg None": forged({"alg": "None"}, good),
        "no alg": forged({"typ": "JWT"}, good, SECRET.encode()),
        "alg that is a list": forged({"alg": ["HS256"]}, good, SECRET.encode()),
        "another algorithm": forged({"alg": "HS512"}, good, SECRET.encode(), hashlib.sha512),
        "small letters": forged({"alg": "hs256"}, good, SECRET.encode()),
        "signed with the public key": forged({"alg": "HS256"}, good, public),
        "signed by RSA": signed(ours, "RS256"),
        "no signature": plain.rpartition(".")[0] + ".",
        "a letter changed": plain[:-4] + ("A" if plain[-4] != "A" else "B") + plain[-3:],
        "critical words": signed(head={"crit": ["exp"], "exp": 1}),
        "critical words that the library knows": forged(
            {"alg": "HS256", "crit": ["b64"], "b64": True}, good, SECRET.encode()
        ),
        "its own key": forged({"alg": "HS256", "jwk": {"kty": "oct", "k": _part(b"t" * 32)}}, good, b"t" * 32),
        "no user": signed(sub=None),
        "everybody": signed(sub="*"),
        "nobody": signed(sub=""),
        "a user with a line in it": signed(sub="ann\nadmin"),
        "a user that is a list": forged({"alg": "HS256"}, {**good, "sub": ["ann"]}, SECRET.encode()),
        "a user that is true": forged({"alg": "HS256"}, {**good, "sub": True}, SECRET.encode()),
        "a long user": signed(sub="a" * 501),
        "large attributes": signed(plan="x" * 5000),
        "too long": signed(more="x" * 10_000),
        "no JSON": f"{_part(b'{')}.{_part(b'{}')}.",
        "deep": f"{_part(b'[' * 6000)}.{_part(b'{}')}.x",
        "empty parts": "..",
        "claims that are a list": forged({"alg": "HS256"}, [1], SECRET.encode()),
        "four parts": plain + ".x",
        "no token": "x",
    }


async def test_every_other_token_is_refused_and_no_reason_told(app: Windlass, ours: RSAPrivateKey) -> None:
    async with asking(app.asgi(authenticate=ByToken(SHOP))) as client:
        assert await status(client, signed(exp=time.time() - 5)) == 200  # clocks differ
        assert await status(client, signed(aud=["a", "jobs"])) == 200
        for what, token in bad(ours).items():
            answer = await client.get("/queue", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 401, what
            assert "InvalidSignature" not in answer.text
            assert token[:40] not in answer.text or len(token) < 40


async def test_without_an_audience_of_our_own_a_token_for_another_is_refused(app: Windlass) -> None:
    async with asking(app.asgi(authenticate=ByToken(Tokens(secret=SECRET)))) as client:
        assert await status(client, signed(aud=None)) == 200
        assert await status(client, signed()) == 401


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "one of the two"),
        ({"secret": SECRET, "jwks": "x"}, "one of the two"),
        ({"secret": "s" * 31}, "at least 32 bytes"),
        ({"secret": SECRET, "algorithms": ("RS256",)}, "with a secret there can be HS256"),
        ({"jwks": "x", "algorithms": ("HS256", "RS256")}, "with a JWKS there can be RS256 and ES256"),
        ({"jwks": "x", "algorithms": ("none",)}, "with a JWKS there can be RS256 and ES256"),
        ({"jwks": "http://id.example/keys"}, "https://"),
        ({"jwks": "https://a:b@id.example/keys"}, "https://"),
        ({"jwks": "file:///etc/passwd"}, "https://"),
    ],
)
def test_tokens_that_could_let_in_anybody_are_not_set_up(given: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told) as refused:
        ByToken(Tokens(**given))
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(SHOP)


# Keys of others.


def shown(key: RSAPrivateKey | EllipticCurvePrivateKey, kid: str | None = None, **more: Any) -> dict[str, Any]:
    public = key.public_key()
    members = (
        RSAAlgorithm.to_jwk(public, True) if isinstance(public, RSAPublicKey) else ECAlgorithm.to_jwk(public, True)
    )
    return {**members, **({} if kid is None else {"kid": kid}), **more}


def write(place: Path, *keys: object) -> None:
    place.write_text(json.dumps({"keys": keys}))


async def test_tokens_signed_by_the_keys_of_a_file(app: Windlass, ours: RSAPrivateKey, tmp_path: Path) -> None:
    place, curve, weak, stranger = tmp_path / "jwks.json", elliptic(SECP256R1()), rsa(65537, 1024), rsa(65537, 2048)
    public = ours.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    secret = {"kty": "oct", "k": _part(b"s" * 32), "kid": "o", "alg": "HS256"}
    odd = [{}, 7, {"kty": "RSA", "kid": "x", "n": "!", "e": "AQAB"}, {"kty": "EC", "crv": "P-256", "kid": "y"}]
    rest = [shown(weak, "w"), shown(stranger, "e", use="enc"), shown(stranger, "a", alg="RS512"), secret, *odd]
    write(place, shown(ours, "r"), shown(curve, "c"), *rest)
    by = Tokens(jwks=str(place), issuer=SHOP.issuer, audience=SHOP.audience)
    good = {**GOOD, "exp": time.time() + 60}
    async with asking(app.asgi(authenticate=ByToken(by))) as client:
        assert await status(client, signed(ours, "RS256", {"kid": "r"})) == 200
        assert await status(client, signed(curve, "ES256", {"kid": "c"})) == 200
        assert await status(client, signed(ours, "RS256")) == 200  # of its kind there is only one
        for what, token in {
            "a key of the other kind": signed(ours, "RS256", {"kid": "c"}),
            "a stranger's": signed(stranger, "RS256", {"kid": "r"}),
            "an unknown name": signed(ours, "RS256", {"kid": "z"}),
            "a name that is no text": forged({"alg": "RS256", "kid": 7}, good, b"x"),
            "the public key as a secret": forged({"alg": "HS256", "kid": "r"}, good, public),
            "a secret in the set": forged({"alg": "HS256", "kid": "o"}, good, b"s" * 32),
            "a weak key": by_hand(weak, {"alg": "RS256", "kid": "w"}, good),
            "a key for another use": signed(stranger, "RS256", {"kid": "e"}),
            "a key for another algorithm": signed(stranger, "RS256", {"kid": "a"}),
            "another length": signed(ours, "RS512", {"kid": "r"}),
            "none": forged({"alg": "none", "kid": "r"}, good),
        }.items():
            assert await status(client, token) == 401, what
    only = Tokens(jwks=str(place), algorithms=("ES256",), audience="jobs")
    async with asking(app.asgi(authenticate=ByToken(only))) as client:
        assert await status(client, signed(ours, "RS256", {"kid": "r"})) == 401
        assert await status(client, signed(curve, "ES256", {"kid": "c"})) == 200


async def test_a_new_key_is_found_but_not_asked_for_often(ours: RSAPrivateKey, tmp_path: Path) -> None:
    place, now = tmp_path / "jwks.json", 1000.0
    signers = Signers(str(place), ("RS256",), clock=lambda: now)
    write(place, shown(ours, "one"))
    assert await signers.find("one", "RS256")
    write(place, shown(ours, "two"))
    assert await signers.find("two", "RS256") is None  # it was read a moment ago
    now += FLOOR
    assert await signers.find("two", "RS256")
    assert await signers.find("one", "RS256") is None
    place.unlink()
    now += FRESH
    assert await signers.find("two", "RS256")  # whoever has them is away: those known stay good
    now += FLOOR
    assert await signers.find("three", "RS256") is None
    assert await signers.find("two", "RS256")


async def test_without_the_keys_nobody_is_told_that_a_token_is_wrong(app: Windlass, tmp_path: Path) -> None:
    large, text = tmp_path / "large", tmp_path / "text"
    large.write_text(json.dumps({"keys": [], "x": "x" * LARGEST}))
    text.write_text("[]")
    for place in (tmp_path / "none", large, text, "http://127.0.0.1:9/keys"):
        async with asking(app.asgi(authenticate=ByToken(Tokens(jwks=str(place))))) as client:
            answer = await client.get("/queue", headers={"Authorization": f"Bearer {signed()}"})
            assert answer.status_code == 401  # not even signed as it would have to be
            answer = await client.get("/queue", headers={"Authorization": f"Bearer {forged({'alg': 'ES256'}, {})}"})
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
            assert str(place) not in answer.text


async def test_keys_come_from_an_address_and_from_nowhere_it_leads(app: Windlass, ours: RSAPrivateKey) -> None:
    text = json.dumps({"keys": [shown(ours, "r")]}).encode()
    asked: list[str] = []

    class Signer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(302 if self.path == "/away" else 200)
            self.send_header("Location", "/keys")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Without a word."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Signer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        by, led = (ByToken(Tokens(jwks=f"{url}/{path}", audience="jobs")) for path in ("keys", "away"))
        try:
            async with asking(app.asgi(authenticate=by)) as client, asking(app.asgi(authenticate=led)) as elsewhere:
                token = signed(ours, "RS256", {"kid": "r"})
                assert {await one for one in asyncio.as_completed([status(client, token) for _ in range(20)])} == {200}
                assert await status(client, signed(ours, "RS256", {"kid": "unknown"})) == 401
                assert asked == ["/keys"]
                assert await status(elsewhere, token) == 503
                assert asked == ["/keys", "/away"]
        finally:
            server.shutdown()
            thread.join()
