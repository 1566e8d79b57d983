"""Where a request comes from: proxies are believed that are named, and no further than they reach."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from starlette.requests import HTTPConnection

from windlass import SettingsError
from windlass.web.access.addresses import Proxies, address_of, is_from_proxy


def came(peer: str | None, *forwarded: str, proxies: tuple[str, ...] = ()) -> HTTPConnection:
    app = FastAPI()
    app.state.proxies = Proxies.of(proxies)
    headers = [(b"x-forwarded-for", line.encode("latin-1")) for line in forwarded]
    return HTTPConnection(
        {"type": "http", "headers": headers, "client": None if peer is None else (peer, 5), "app": app}
    )


@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        ("203.0.113.5", (), "203.0.113.5"),
        ("203.0.113.5", ("1.1.1.1",), "203.0.113.5"),  # a stranger says it
        ("10.0.0.7", (), "10.0.0.7"),
        ("10.0.0.7", ("203.0.113.5",), "203.0.113.5"),
        ("10.0.0.7", ("1.1.1.1, 203.0.113.5",), "203.0.113.5"),  # what a stranger said to the proxy
        ("10.0.0.7", ("1.1.1.1, 203.0.113.5, 10.9.9.9",), "203.0.113.5"),  # through two
        ("10.0.0.7", ("1.1.1.1", "203.0.113.5"), "203.0.113.5"),  # two headers are one
        ("10.0.0.7", ("10.0.0.8, 10.0.0.9",), "10.0.0.8"),  # from the inside
        ("10.0.0.7", ("1.1.1.1, <script>",), "10.0.0.7"),
        ("10.0.0.7", ("",), "10.0.0.7"),
        ("10.0.0.7", ("203.0.113.5:4711",), "203.0.113.5"),
        ("10.0.0.7", ("[2001:DB8:0::1]:4711",), "2001:db8::1"),
        ("10.0.0.7", ("2001:db8::1",), "2001:db8::1"),
        ("::ffff:10.0.0.7", ("203.0.113.5",), "203.0.113.5"),  # a socket of both kinds
        ("fd00::1%eth0", ("203.0.113.5",), "203.0.113.5"),
        (None, ("203.0.113.5",), ""),
        ("testclient", ("203.0.113.5",), ""),
    ],
)
def test_the_address_of_who_asks(peer: str | None, forwarded: tuple[str, ...], found: str) -> None:
    assert address_of(came(peer, *forwarded, proxies=("10.0.0.0/8", "fd00::1"))) == found


def test_nobody_is_a_proxy_unless_named() -> None:
    assert address_of(came("127.0.0.1", "1.1.1.1")) == "127.0.0.1"
    assert not is_from_proxy(came("127.0.0.1"))
    assert is_from_proxy(came("10.0.0.7", proxies=("10.0.0.7",)))


@pytest.mark.parametrize("text", ["10.0.0.1/8", "proxy.example", "", "10.0.0.0/33", "*"])
def test_what_is_no_address_is_refused_by_name(text: str) -> None:
    with pytest.raises(SettingsError, match="expected addresses or networks"):
        Proxies.of([text])
