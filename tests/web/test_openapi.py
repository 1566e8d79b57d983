"""The OpenAPI document: complete, closed, and typed by what there is to enqueue."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from jsonschema_rs import Draft202012Validator
from pydantic import BaseModel
from starlette.routing import compile_path

from tests.web.conftest import Ask
from windlass import Windlass
from windlass.web.routes import jobs
from windlass.web.routes.document import Documents

HIDDEN = {"/healthz": {"get"}, "/readyz": {"get"}}
"""what is open"""


class Address(BaseModel):
    street: str
    zip: int


async def document(client: httpx.AsyncClient) -> dict[str, Any]:
    answer = await client.get(str(client.base_url).replace("/api/v1/", "/openapi.json"))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def operations(found: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, one) for path, methods in found["paths"].items() for method, one in methods.items()]


def fits(found: dict[str, Any], component: str, value: object) -> bool:
    schema = {"$ref": f"#/components/schemas/{component}", "components": found["components"]}
    return bool(Draft202012Validator(schema).is_valid(value))


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/redoc", "/docs/oauth2-redirect"])
async def test_nothing_of_it_is_told_to_strangers(ask: Ask, path: str) -> None:
    async with ask(None) as client:
        answer = await client.get(f"http://windlass{path}")
    assert answer.status_code == (401 if path == "/openapi.json" else 404)
    assert "http" not in answer.text


async def test_every_route_is_described(ask: Ask) -> None:
    async with ask() as client:
        found = await document(client)
    assert found["openapi"].startswith("3.1")
    told = {tag["name"] for tag in found["tags"] if tag["description"]}
    names = [operation["operationId"] for _, _, operation in operations(found)]
    assert len(set(names)) == len(names)
    for path, method, operation in operations(found):
        assert operation["summary"], (path, method)
        assert operation["description"], (path, method)
        assert set(operation["tags"]) <= told, (path, method, operation["tags"])
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", operation["operationId"]), operation["operationId"]
        assert ("security" in operation) == (method not in HIDDEN.get(path, ())), (path, method)


async def test_every_refusal_is_a_problem(ask: Ask) -> None:
    async with ask() as client:
        found = await document(client)
    assert "HTTPValidationError" not in str(found)
    for path, method, operation in operations(found):
        responses = operation["responses"]
        if "security" in operation:
            assert {"401", "403", "429", "503"} <= responses.keys(), (path, method)
        if "requestBody" in operation:
            assert {"400", "408", "413", "415", "422"} <= responses.keys(), (path, method)
        for status, response in responses.items():
            if status >= "400" and path != "/readyz":
                kind = response["$ref"].removeprefix("#/components/responses/")
                [(media, content)] = found["components"]["responses"][kind]["content"].items()
                assert (media, content["schema"]) == (
                    "application/problem+json",
                    {"$ref": "#/components/schemas/Problem"},
                )
                assert fits(found, "Problem", content["example"]), kind


async def test_every_example_fits_its_schema(ask: Ask) -> None:
    async with ask() as client:
        found = await document(client)
    with_one = [name for name, schema in found["components"]["schemas"].items() if schema.get("examples")]
    assert {"Job", "Page", "Replay", "Signal"} <= set(with_one)
    for name in with_one:
        for example in found["components"]["schemas"][name]["examples"]:
            assert fits(found, name, example), name


async def test_an_enqueue_is_told_apart_by_its_type(app: Windlass, ask: Ask) -> None:
    @app.job(name="parcel.send")
    async def parcel(to: Address, weight: float = 1) -> Address:
        return to

    async with ask() as client:
        found = await document(client)
    to = {"street": "Rue Curie", "zip": 1}
    assert fits(found, "Enqueue", {"type": "parcel.send", "payload": {"to": to}, "queue": "slow"})
    assert fits(found, "Enqueue", {"type": "nobody.knows", "payload": {"to": 1}})
    assert not fits(found, "Enqueue", {"type": "parcel.send", "payload": {"to": 1}})
    assert not fits(found, "Enqueue", {"type": "parcel.send", "payload": {"to": {"street": "Rue Curie"}}})
    assert not fits(found, "Enqueue", {"type": "parcel.send"})
    assert not fits(found, "Enqueue", {"type": "parcel.send", "payload": {"to": to}, "nonsense": 1})
    assert fits(found, "ParcelSendResult", to)
    assert not fits(found, "ParcelSendResult", {})
    assert found["x-windlass-types"]["parcel.send"] == {
        "payload": {"$ref": "#/components/schemas/ParcelSendPayload"},
        "result": {"$ref": "#/components/schemas/ParcelSendResult"},
    }


async def test_types_that_only_workers_know_are_there_as_soon_as_they_tell(app: Windlass) -> None:
    web = app.asgi()
    web.state.documents = Documents(fresh=0)
    key = (await app.keys.create("a test", owner="ann", scopes=["enqueue"])).secret
    other = Windlass(app.url)

    @other.job(name="far.away")
    async def far(n: int) -> None: ...

    headers = {"Authorization": f"Bearer {key}"}
    transport = httpx.ASGITransport(web)
    async with httpx.AsyncClient(transport=transport, base_url="http://windlass/api/v1", headers=headers) as client:
        assert "far.away" not in (await document(client))["x-windlass-types"]
        async with other, other.worker():
            pass
        found = await document(client)
    other.close()
    assert fits(found, "Enqueue", {"type": "far.away", "payload": {"n": 1}})
    assert not fits(found, "Enqueue", {"type": "far.away", "payload": {"n": "one"}})


async def test_types_with_like_names_are_kept_apart(app: Windlass, ask: Ask) -> None:
    for name in ("a.b", "a-b", "1", "Überweisung", "other", "known"):

        @app.job(name=name)
        async def same(n: int) -> None: ...

    async with ask() as client:
        found = await document(client)
    names = [one["payload"]["$ref"] for one in found["x-windlass-types"].values()]
    assert len({name.lower() for name in names}) == len(names)
    assert all(re.fullmatch(r"#/components/schemas/[A-Za-z][A-Za-z0-9]+", name) for name in names), names
    assert fits(found, "Enqueue", {"type": "a-b", "payload": {"n": 1}})
    assert not fits(found, "Enqueue", {"type": "a-b", "payload": {"n": "one"}})


async def test_a_limited_key_is_told_of_its_types_only(app: Windlass, ask: Ask) -> None:
    async with ask(types=["mail.*"]) as limited, ask() as all_:
        assert list((await document(limited))["x-windlass-types"]) == ["mail.send"]
        assert list((await document(all_))["x-windlass-types"]) == ["fail", "mail.send"]


async def test_what_has_not_changed_is_not_sent_again(ask: Ask) -> None:
    async with ask() as client:
        first = await client.get("http://windlass/openapi.json")
        same = await client.get("http://windlass/openapi.json", headers={"If-None-Match": first.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")


async def test_it_says_where_it_is_mounted_and_believes_no_host(app: Windlass) -> None:
    outer = FastAPI()
    outer.mount("/jobs", app.asgi())
    key = (await app.keys.create("a test", owner="ann", scopes=["read"])).secret
    headers = {"Authorization": f"Bearer {key}", "Host": "evil.example"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(outer), base_url="http://shop") as client:
        found = (await client.get("/jobs/openapi.json", headers=headers)).json()
    assert found["servers"] == [{"url": "/jobs"}]
    assert "evil" not in str(found)


async def test_bounds_are_told_in_the_words_of_json_schema(ask: Ask) -> None:
    async with ask("*", ("admin",)) as client:
        text = json.dumps(await document(client))
    for word in ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length"):  # pydantic's, if it lost its way
        assert f'"{word}":' not in text


def test_no_name_of_a_route_is_taken_for_a_jobs_id(app: Windlass) -> None:
    """Single jobs are looked for first, as they are asked for most."""
    paths = app.asgi().openapi()["paths"]
    below = {path.split("/")[4] for path in paths if path.startswith("/api/v1/queue/")}
    assert {"{job_id}", "enqueue", "stats"} <= below
    for path in (jobs.ONE, f"{jobs.ONE}/history"):
        shape = compile_path(path)[0]
        named = {name for name in below if shape.match(path.replace(path.split("/")[2], name))}
        assert named == {"{job_id}"}
