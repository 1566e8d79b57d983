"""Files over HTTP: the shapes of its first description, versions and conditions, refusals, and two users."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.apps.files.conftest import work
from tests.web.conftest import Ask
from windlass import Windlass
from windlass.apps.files.files import Files

HOST = "http://windlass"
FILE = f"{HOST}/projects/shop/files/example.js"


@pytest.fixture
def app(one: Files) -> Windlass:
    return one.app


async def test_a_write_is_told_in_the_first_descriptions_shapes(ask: Ask, one: Files) -> None:
    async with ask() as client:
        made = await client.post(FILE, json={"content": "file content here"})
        assert made.status_code == 202
        told = made.json()
        job = told["data"]["jobId"]
        assert told == {
            "success": True,
            "message": "File example.js queued for processing",
            "data": {"jobId": job, "path": "example.js"},
        }
        assert made.headers["location"] == f"/projects/shop/files/example.js/status/{job}"
        asked = f"{HOST}{made.headers['location']}"
        waiting = (await client.get(asked)).json()["data"]
        assert (waiting["state"], waiting["result"], waiting["progress"]) == ("waiting", None, 0)
        assert (waiting["processedOn"], waiting["finishedOn"]) == (None, None)
        await work(one)
        status = (await client.get(asked)).json()
        data = status["data"]
        assert status["success"] is True
        assert list(data) == [
            "id",
            "state",
            "result",
            "reason",
            "progress",
            "timestamp",
            "processedOn",
            "finishedOn",
        ]
        assert (data["id"], data["state"], data["reason"], data["progress"]) == (job, "completed", None, 100)
        assert all(isinstance(data[name], int) for name in ("timestamp", "processedOn", "finishedOn"))
        assert data["timestamp"] <= data["processedOn"] <= data["finishedOn"]
        result = data["result"]
        assert list(result) == ["success", "projectId", "fileId", "hash", "lastModified"]
        assert (result["success"], result["projectId"], result["fileId"]) == (True, "shop", "example.js")
        assert isinstance(result["lastModified"], str)
        assert abs(int(result["lastModified"]) - data["finishedOn"]) < 60_000


async def test_what_is_written_is_read_with_its_hash_as_etag(ask: Ask, one: Files) -> None:
    content = b"\x00binary\xff"
    async with ask() as client:
        body = {"content": base64.b64encode(content).decode(), "encoding": "base64"}
        assert (await client.post(FILE, json=body)).status_code == 202
        await work(one)
        found = await client.get(FILE)
        assert found.content == content
        assert found.headers["content-type"] == "application/octet-stream"
        assert found.headers["content-disposition"] == "attachment; filename*=UTF-8''example.js"
        etag = found.headers["etag"]
        again = await client.get(FILE, headers={"If-None-Match": f'"other", {etag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
        assert (await client.get(FILE, headers={"If-None-Match": '"other"'})).status_code == 200
        assert (await client.get(FILE, headers={"If-None-Match": "other"})).status_code == 400


async def test_a_form_carries_large_content(ask: Ask, one: Files, tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    async with ask() as client:
        made = await client.post(FILE, files={"file": ("its own name.bin", content)}, data={"diskPath": "a/b.bin"})
        assert made.status_code == 202, made.text
        await work(one)
        assert (await client.get(FILE)).content == content
        assert (tmp_path / "disk" / "@ann" / "shop" / "a" / "b.bin").read_bytes() == content
        listed = (await client.get(f"{HOST}/projects/shop/files")).json()["items"]
        assert [(one["fileId"], one["size"], one["diskPath"]) for one in listed] == [
            ("example.js", len(content), "a/b.bin")
        ]


async def test_a_write_over_another_version_is_refused(ask: Ask, one: Files) -> None:
    async with ask() as client:
        first = await client.post(FILE, json={"content": "one"}, headers={"If-None-Match": "*"})
        assert first.status_code == 202
        await work(one)
        etag = (await client.get(FILE)).headers["etag"]
        created = await client.post(FILE, json={"content": "x"}, headers={"If-None-Match": "*"})
        assert (created.status_code, created.json()["type"]) == (412, "urn:windlass:problem:precondition-failed")
        based = await client.post(FILE, json={"content": "two"}, headers={"If-Match": etag})
        late = await client.post(FILE, json={"content": "three"}, headers={"If-Match": etag})
        assert (based.status_code, late.status_code) == (202, 202)  # the first still waits: nothing is known yet
        await work(one)
        status = (await client.get(f"{HOST}{late.headers['location']}")).json()["data"]
        assert status["state"] == "failed"
        assert status["reason"].startswith("412: the condition does not hold any more")
        assert (await client.get(FILE)).content == b"two"
        refused = await client.post(FILE, json={"content": "four"}, headers={"If-Match": etag})
        assert refused.status_code == 412
        for header in ("hash", '"a" "b"', ""):
            malformed = await client.post(FILE, json={"content": "x"}, headers={"If-Match": header})
            assert malformed.status_code == 400


async def test_versions_are_listed_read_and_restored(ask: Ask, one: Files) -> None:
    async with ask() as client:
        for content in ("one", "two"):
            await client.post(FILE, json={"content": content})
            await work(one)
        history = (await client.get(f"{FILE}/history")).json()["data"]
        assert [(each["version"], each["size"], each["current"], each["who"]) for each in history["versions"]] == [
            (2, 3, True, "ann"),
            (1, 3, False, "ann"),
        ]
        assert (await client.get(f"{FILE}/history/1")).content == b"one"
        assert (await client.get(f"{FILE}/history/7")).status_code == 404
        restored = await client.post(f"{FILE}/history/1/restore")
        assert restored.status_code == 202
        await work(one)
        assert (await client.get(FILE)).content == b"one"
        stats = (await client.get(f"{HOST}/projects/shop/stats")).json()
        assert stats == {
            "waiting": 0,
            "active": 0,
            "completed": 3,
            "failed": 0,
            "delayed": 0,
            "files": 1,
            "bytes": 9,
        }


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("../x", ".."),
        ("a/../../x", ".."),
        ("/etc/passwd", "absolute"),
        ("C:\\con", "absolute"),
        ("a\\b", "\\"),
        ("a\0b", None),
        ("con.txt", "reserved"),
        ("a//b", "empty"),
        ("./a", "empty"),
        ("a ", "space"),
        (".windlass-x", "windlass's own"),
        ("x" * 300, "bytes"),
        ("link/x", "symbolic link"),
        ("link", "symbolic link"),
        ("folder", "no regular file"),
        ("pipe", "no regular file"),
        ("file/x", "no folder"),
    ],
)
async def test_a_path_that_leads_out_is_refused_and_nothing_is_written(
    ask: Ask, one: Files, tmp_path: Path, path: str, rule: str | None
) -> None:
    import os

    project = tmp_path / "disk" / "@ann" / "shop"
    (project / "folder").mkdir(parents=True)
    (project / "link").symlink_to(tmp_path)
    (project / "file").touch()
    os.mkfifo(project / "pipe")
    before = sorted(tmp_path.rglob("*"))
    async with ask() as client:
        refused = await client.post(FILE, json={"content": "x", "diskPath": path})
        told = refused.json()
        if rule is None:  # JSON with NUL is refused before
            assert refused.status_code == 422
        else:
            assert (refused.status_code, told["type"]) == (400, "urn:windlass:problem:disk-path-refused")
            assert rule in told["detail"]
        assert (await client.get(FILE)).status_code == 404
    assert [one for one in sorted(tmp_path.rglob("*")) if "jobs.db" not in one.name] == [
        one for one in before if "jobs.db" not in one.name
    ]


async def test_one_users_files_are_not_there_for_another(ask: Ask, one: Files) -> None:
    async with ask("ann") as ann, ask("bob") as bob:
        made = await ann.post(FILE, json={"content": "ann's", "diskPath": "x.txt"})
        await work(one)
        status = f"{HOST}{made.headers['location']}"
        nothing = "/projects/other/files/nothing"
        for asked in ("", "/history", "/history/1"):
            theirs, none = await bob.get(FILE + asked), await bob.get(HOST + nothing + asked)
            assert (theirs.status_code, none.status_code) == (404, 404)
            assert _same(theirs.json()) == _same(none.json())
        assert (await bob.get(status)).status_code == 404
        assert (await bob.post(f"{FILE}/history/1/restore")).status_code == 404
        assert (await bob.get(f"{HOST}/projects/shop/files")).json()["items"] == []
        assert (await bob.get(f"{HOST}/projects/shop/stats")).json()["completed"] == 0
        assert (await bob.get(f"{FILE}?owner=ann")).status_code == 404
        await bob.post(FILE, json={"content": "bob's", "diskPath": "x.txt"}, headers={"If-None-Match": "*"})
        await work(one)
        assert ((await ann.get(FILE)).content, (await bob.get(FILE)).content) == (b"ann's", b"bob's")
        async with ask("*") as all_, ask("eve", scopes=("admin",)) as admin:
            assert (await all_.get(FILE)).status_code == 404  # its own are those of nobody
            assert (await all_.get(f"{FILE}?owner=ann")).content == b"ann's"
            assert (await admin.get(f"{FILE}?owner=bob")).content == b"bob's"


def _same(problem: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in problem.items() if name != "requestId"}


@pytest.mark.parametrize(
    ("project", "file"), [("..", "x"), ("a:b", "x"), ("a", "b%5Cc"), ("a%20", "x"), ("a", "%00"), ("a" * 101, "x")]
)
async def test_names_that_no_file_may_have_are_refused(ask: Ask, one: Files, project: str, file: str) -> None:
    async with ask() as client:
        refused = await client.post(f"{HOST}/projects/{project}/files/{file}", json={"content": "x"})
        assert refused.status_code in (404, 422)


async def test_what_cannot_be_read_is_refused(ask: Ask, one: Files) -> None:
    async with ask() as client:
        for body in ({}, {"content": 1}, {"content": "x", "extra": 1}, {"content": "=", "encoding": "base64"}):
            assert (await client.post(FILE, json=body)).status_code == 422
        assert (await client.post(FILE, content=b"x", headers={"Content-Type": "text/plain"})).status_code == 415
        assert (await client.post(FILE, files={"other": ("x", b"x")})).status_code == 422
    async with ask(None) as nobody:
        assert (await nobody.post(FILE, json={"content": "x"})).status_code == 401
    async with ask(scopes=("read",)) as reader:
        assert (await reader.post(FILE, json={"content": "x"})).status_code == 403


async def test_what_is_too_large_is_refused_and_leaves_nothing(ask: Ask, one: Files) -> None:
    one.settings = one.settings.model_copy(update={"largest": 1000, "inline": 100})
    async with ask() as client:
        answers = [
            await client.post(FILE, json={"content": "x" * 1001}),
            await client.post(FILE, files={"file": ("x", b"x" * 1001)}),
        ]
        for refused in answers:
            assert (refused.status_code, "1,000" in refused.text) == (413, True)
        assert [blob async for blob in one.blobs.older_than(0)] == []


async def test_a_project_holds_what_its_quota_allows(ask: Ask, one: Files) -> None:
    one.settings = one.settings.model_copy(update={"project_bytes": 1000, "project_files": 2})
    async with ask() as client:
        assert (await client.post(FILE, json={"content": "x" * 600})).status_code == 202
        refused = await client.post(FILE, json={"content": "x" * 401})
        assert (refused.status_code, refused.json()["type"]) == (413, "urn:windlass:problem:quota-exceeded")
        assert (await client.post(f"{HOST}/projects/shop/files/b", json={"content": "x"})).status_code == 202
        assert (await client.post(f"{HOST}/projects/shop/files/c", json={"content": "x"})).status_code == 413
        assert (await client.post(FILE, json={"content": "x"})).status_code == 202
        assert (await client.post(f"{HOST}/projects/another/files/c", json={"content": "x"})).status_code == 202
        stats = (await client.get(f"{HOST}/projects/shop/stats")).json()
        assert (stats["files"], stats["bytes"], stats["waiting"]) == (2, 602, 3)


async def test_a_paused_queue_is_told(ask: Ask, one: Files) -> None:
    async with ask() as client:
        made = await client.post(FILE, json={"content": "x"})
        await one.app.queues.pause("files")
        status = (await client.get(f"{HOST}{made.headers['location']}")).json()["data"]
        assert status["state"] == "paused"


async def test_the_same_request_sent_again_is_one_write(ask: Ask, one: Files) -> None:
    async with ask() as client:
        made = [await client.post(FILE, json={"content": "x"}, headers={"Idempotency-Key": "k1"}) for _ in range(2)]
        assert made[0].json() == made[1].json()
        await work(one)
        assert len((await client.get(f"{FILE}/history")).json()["data"]["versions"]) == 1
