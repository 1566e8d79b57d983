"""Routes of an application's own: behind the same door, with bodies as they declare them, in the same document."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

import httpx
import pytest
from fastapi import APIRouter, File, UploadFile

from tests.web.conftest import Ask, declare
from windlass import SettingsError, Windlass
from windlass.web import Asked, Caller, Enqueuer, Kind, Reader, Refused, Repeatable, Routes, Shape, Upload, Uploading

LARGEST = 3 * 1024 * 1024
SOLD_OUT = Kind(409, "sold-out", "There is none left")


class Order(Asked):
    name: str
    pieces: int = 1


class OrderShape(Shape):
    ordered_by: str
    pieces: int


def routes() -> Routes:
    router = APIRouter(route_class=Repeatable, tags=["orders"])
    files = APIRouter(route_class=Uploading, tags=["orders"])

    @router.post("/shop/orders", status_code=201)
    async def create_order(body: Order, caller: Enqueuer) -> OrderShape:
        if body.name == "gone":
            raise Refused(SOLD_OUT, "the last one was sold")
        return OrderShape(ordered_by=caller.owner, pieces=body.pieces)

    @router.get("/shop/orders/{name}")
    async def read_order(name: str, caller: Reader) -> dict[str, str]:
        return {"name": name, "owner": caller.owner}

    @router.get("/shop/open")
    async def forgot_to_ask() -> dict[str, str]:
        return {"secret": "all of it"}

    @files.post("/shop/pictures/{name}")
    async def upload_picture(name: str, file: Annotated[UploadFile, File()], caller: Enqueuer) -> dict[str, object]:
        return {"name": name, "size": len(await file.read()), "owner": caller.owner}

    router.include_router(files)
    upload = {"/shop/pictures/{name}": Upload(largest=LARGEST)}
    return Routes(router=router, uploads=upload, tags={"orders": "What was ordered."})


@pytest.fixture
async def app() -> AsyncGenerator[Windlass, None]:
    made = Windlass("sqlite:///:memory:")
    declare(made)
    made.add_routes(routes)
    async with made:
        yield made
    made.close()


def at_root(client: httpx.AsyncClient, path: str) -> str:
    return str(client.base_url.copy_with(path=path))


async def test_a_route_of_ones_own_knows_who_asks_and_what_they_may(ask: Ask) -> None:
    async with ask() as client:
        made = await client.post(at_root(client, "/shop/orders"), json={"name": "rope", "pieces": 2})
        assert (made.status_code, made.json()) == (201, {"orderedBy": "ann", "pieces": 2})
        gone = await client.post(at_root(client, "/shop/orders"), json={"name": "gone"})
        assert gone.status_code == 409
        assert gone.headers["content-type"] == "application/problem+json"
        assert gone.json()["type"] == "urn:windlass:problem:sold-out"
    async with ask(scopes=("read",)) as client:
        refused = await client.post(at_root(client, "/shop/orders"), json={"name": "rope"})
        assert refused.status_code == 403


async def test_none_is_open_even_if_it_asks_for_nobody(ask: Ask) -> None:
    async with ask(owner=None) as client:
        for path in ("/shop/open", "/shop/orders/7"):
            assert (await client.get(at_root(client, path))).status_code == 401


async def test_one_request_key_makes_one_order(ask: Ask) -> None:
    async with ask() as client:
        order, key = {"name": "rope"}, {"Idempotency-Key": "k"}
        first = await client.post(at_root(client, "/shop/orders"), json=order, headers=key)
        again = await client.post(at_root(client, "/shop/orders"), json=order, headers=key)
        assert (first.status_code, again.status_code) == (201, 201)
        assert again.headers["idempotent-replayed"] == "true"


async def test_a_file_is_taken_where_it_is_declared_and_only_there(ask: Ask) -> None:
    async with ask() as client:
        files = {"file": ("a.png", b"x" * (2 * 1024 * 1024), "image/png")}
        taken = await client.post(at_root(client, "/shop/pictures/cat"), files=files)
        assert (taken.status_code, taken.json()["size"]) == (200, 2 * 1024 * 1024)
        elsewhere = await client.post(at_root(client, "/shop/orders"), files=files)
        assert elsewhere.status_code in {413, 415}
        small = await client.post(at_root(client, "/shop/orders"), files={"file": ("a.png", b"x", "image/png")})
        assert small.status_code == 415


async def test_a_file_that_is_too_large_is_refused_while_it_comes(ask: Ask) -> None:
    sent = 0

    async def body() -> AsyncGenerator[bytes, None]:
        nonlocal sent
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        for _ in range(100):
            sent += 1
            yield b"x" * 100_000
        yield b"\r\n--b--\r\n"

    async with ask() as client:
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        refused = await client.post(at_root(client, "/shop/pictures/cat"), content=body(), headers=headers)
        assert refused.status_code == 413
        assert f"{LARGEST:,}" in refused.json()["detail"]
        assert sent < 100


async def test_a_file_is_not_read_before_it_is_known_who_sends_it(ask: Ask) -> None:
    async with ask(owner=None) as client:
        files = {"file": ("a.png", b"x", "image/png")}
        assert (await client.post(at_root(client, "/shop/pictures/cat"), files=files)).status_code == 401


async def test_the_document_tells_of_them_with_their_refusals(ask: Ask) -> None:
    async with ask() as client:
        document = (await client.get(at_root(client, "/openapi.json"))).json()
        order = document["paths"]["/shop/orders"]["post"]
        assert {"201", "401", "403", "422", "429"} <= order["responses"].keys()
        assert {"name": "orders", "description": "What was ordered."} in document["tags"]


def test_a_path_that_is_taken_is_refused() -> None:
    app = Windlass("sqlite:///:memory:")
    router = APIRouter()

    @router.get("/api/v1/queue/stats")
    async def stats() -> dict[str, str]:
        return {}

    app.add_routes(lambda: Routes(router=router))
    with pytest.raises(SettingsError, match=r"/api/v1/queue/stats.*there already"):
        app.asgi()


def test_an_upload_of_no_route_is_refused() -> None:
    app = Windlass("sqlite:///:memory:")
    app.add_routes(lambda: Routes(router=APIRouter(), uploads={"/x": Upload(largest=1)}))
    with pytest.raises(SettingsError, match=r"'/x'.*none of the router's paths"):
        app.asgi()


async def test_what_an_application_opened_is_closed_with_it_last_first() -> None:
    app, closed = Windlass("sqlite:///:memory:"), list[str]()

    async def first() -> None:
        closed.append("first")

    async def second() -> None:
        await app.jobs.count()  # the store is still open
        closed.append("second")

    app.on_close(first)
    app.on_close(second)
    async with app:
        assert not closed
    assert closed == ["second", "first"]


def test_all_public_names_of_the_web_are_there() -> None:
    from windlass import web

    assert web.Caller is Caller
    assert all(getattr(web, name) is not None for name in web.__all__)
