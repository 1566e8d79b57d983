"""Canaries in a secret of the payload, a DSN, a header and the environment: asked for everywhere, found nowhere."""

from __future__ import annotations

import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.apps import until_status, working
from windlass import Handle, Secret, Status, Windlass
from windlass.cli.main import run
from windlass.client.vault import new_key

PAYLOAD, DSN, HEADER, ENVIRONMENT = (f"canary-{word}-5f0c" for word in ("payload", "dsn", "header", "environment"))
PARTS = tuple(f"/parts/{part}" for part in ("payload", "result", "metadata", "kept"))
CANARIES = (PAYLOAD, DSN, HEADER, ENVIRONMENT)


def told(*texts: object) -> None:
    for text in map(str, texts):
        for canary in CANARIES:
            assert canary not in text, text


async def test_no_canary_is_in_an_answer_a_log_line_or_the_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("SHOP_PASSWORD", ENVIRONMENT)
    monkeypatch.setenv("WINDLASS_SECRET_KEYS", key := new_key())
    app = Windlass(f"sqlite:///{tmp_path / 'web.db'}")

    @app.job(name="charge", retry=1)
    async def charge(token: Secret[str], to: str = "ann") -> Secret[str]:
        if to == "eve":
            raise ConnectionError(f"{token.reveal()}: cannot reach postgresql://ann:{DSN}@db/shop, password={DSN}")
        return token

    async with app:
        operator = await app.keys.create("a test", owner="*", scopes=("enqueue", "read", "operate", "admin"))
        headers = {"Authorization": f"Bearer {operator.secret}", "X-Api-Key": HEADER, "Cookie": f"sid={HEADER}"}
        transport = httpx.ASGITransport(app.asgi(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://windlass/api/v1", headers=headers) as web:
            answers = [
                await web.post("/queue/enqueue", json={"type": "charge", "payload": payload})
                for payload in (
                    {"token": PAYLOAD},
                    {"token": PAYLOAD, "to": "eve"},
                    {"token": [PAYLOAD]},
                    {"token": {"$secret": PAYLOAD}},
                    {"token": PAYLOAD, "to": 5},
                )
            ]
            assert [answer.status_code for answer in answers] == [201, 201, 422, 422, 422]
            ids = [answer.json()["id"] for answer in answers[:2]]
            async with working(app):
                for id_, status in zip(ids, (Status.SUCCEEDED, Status.FAILED), strict=True):
                    job = await app.jobs.get(id_)
                    await until_status(Handle(app.client, job.id, created=True, codec=None), status)
                paths = [
                    "/queue",
                    "/queue/dead-letter",
                    "/queue/stats",
                    "/types",
                    "/workers",
                    "/queues",
                    "/audit",
                    "/nowhere",
                ]
                for id_ in ids:
                    paths += [f"/queue/{id_}{of}" for of in ("", "/history", "/explain", "/events", *PARTS)]
                answers += [await web.get(path) for path in paths]
            answers.append(await web.get("/queue", headers={"Authorization": f"Bearer {HEADER}"}))
        shown = (await _job(answers, ids[0]), await _job(answers, ids[1]))
        assert shown[0]["payload"] == {"token": "***"} or shown[0]["payload"] == {"to": "ann", "token": "***"}
        assert shown[0]["result"] == "***"
        streams = [answer.text for answer in answers if answer.url.path.endswith("/events")]
        assert ["event: job" in text and '"***"' in text for text in streams] == [True, True]
        assert shown[1]["error"]["message"] == "***: cannot reach postgresql://***@db/shop, password=***"
        assert "***" in shown[1]["error"]["traceback"]
        told(*[answer.text for answer in answers], *[answer.headers for answer in answers])
    with closing(sqlite3.connect(tmp_path / "web.db")) as connection:
        dump = "\n".join(connection.iterdump())
    assert ids[0] in dump
    told(dump, caplog.text, *[record.__dict__ for record in caplog.records])
    assert key not in dump + caplog.text
    assert operator.secret not in dump + caplog.text


async def _job(answers: list[httpx.Response], id_: str) -> dict[str, Any]:
    return next(answer.json() for answer in answers if answer.request.url.path.endswith(f"/queue/{id_}"))


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{DSN}/x@127.0.0.1:1/shop",
        f"mongodb://ann:{DSN}/x@127.0.0.1:1/shop",
        f"redis://ann:{DSN}/x@127.0.0.1:1/0",
        f"redis://ann:{DSN}@127.0.0.1:1/0?colour=red",
        f"mysql://ann:{DSN}@127.0.0.1/shop",
        f"sqlite://ann:{DSN}@here/x.db",
    ],
)
def test_no_address_tells_its_password(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["--store", url, "jobs"]) != 0
    said = capsys.readouterr()
    told(said.out, said.err)
    assert said.out + said.err
    monkeypatch.setenv("WINDLASS_SECRET_KEYS", ENVIRONMENT)
    assert run(["--store", url, "jobs"]) != 0
    said = capsys.readouterr()
    assert "WINDLASS_SECRET_KEYS" in said.err
    told(said.out, said.err, json.dumps(said))
