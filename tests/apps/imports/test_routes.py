"""Imports over HTTP: a file by its name, one that is sent, one that is tried first; errors to download; two users."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import openpyxl  # type: ignore[import-untyped]  # it has no types
import pytest

from tests.apps.imports.test_importing import imports_of
from tests.apps.imports.workbooks import CUSTOMERS, PAYABLES, customers, payables, workbook
from tests.support.apps import app_at
from tests.web.conftest import Ask
from windlass import Windlass
from windlass.apps.imports.files import XLSX
from windlass.apps.imports.imports import Imports


@pytest.fixture
async def imports(tmp_path: Path) -> AsyncGenerator[Imports, None]:
    app = app_at(tmp_path / "jobs.db")
    made = imports_of(app, tmp_path, largest=200_000)
    (tmp_path / "manifest.json").write_text(
        json.dumps({"Accounts-Payable.xlsx": {"type": "ap", "sheetName": "AP Data"}, "c*.xlsx": {"type": "customers"}})
    )
    async with app:
        yield made
    app.close()


@pytest.fixture
def app(imports: Imports) -> Windlass:
    return imports.app


async def work(app: Windlass) -> None:
    await app.worker(drain=True).run()


def file(path: Path, kind: str = XLSX) -> dict[str, Any]:
    return {"file": (path.name, path.read_bytes(), kind)}


async def test_a_file_that_is_there_is_imported_by_its_name(ask: Ask, app: Windlass, tmp_path: Path) -> None:
    workbook(tmp_path / "Accounts-Payable.xlsx", [PAYABLES, *payables(3), ("I", "V", "x")], sheet="AP Data")
    async with ask() as client:
        made = await client.post("/imports/xlsx", json={"filename": "Accounts-Payable.xlsx"})
        assert made.status_code == 202
        told = made.json()
        assert (told["type"], told["status"]) == ("ap", "queued")
        assert made.headers["location"].endswith(f"/api/v1/queue/{told['jobId']}")
        again = await client.post("/imports/xlsx", json={"filename": "Accounts-Payable.xlsx"})
        assert (again.status_code, again.json()["existing"]) == (409, told["jobId"])
        await work(app)
        job = (await client.get(f"/queue/{told['jobId']}")).json()
        assert (job["type"], job["status"]) == ("import.xlsx.ap", "succeeded")
        assert {name: job["result"][name] for name in ("totalRows", "inserted", "updated", "failed")} == {
            "totalRows": 4,
            "inserted": 3,
            "updated": 0,
            "failed": 1,
        }
        assert job["result"]["errors"][0]["row"] == 5
        assert job["result"]["errors"][0]["reason"] == "amount: is not a number"
        again = await client.post("/imports/xlsx", json={"filename": "Accounts-Payable.xlsx"})
        assert again.status_code == 409
        forced = await client.post("/imports/xlsx", json={"filename": "Accounts-Payable.xlsx", "force": True})
        assert forced.status_code == 202


async def test_a_file_is_sent_and_imported(ask: Ask, app: Windlass, tmp_path: Path) -> None:
    path = workbook(tmp_path / "c.xlsx", [("Mail", "Who"), *[row[:2] for row in customers(3)]])
    async with ask() as client:
        asked = {"mapping": json.dumps({"email": "Mail", "name": "Who"}), "type": "customers"}
        made = await client.post("/imports/xlsx/upload", files=file(path), data=asked)
        assert made.status_code == 202, made.text
        await work(app)
        found = (await client.get(f"/imports/{made.json()['jobId']}")).json()
        assert (found["status"], found["result"]["inserted"], found["filename"]) == ("succeeded", 3, "c.xlsx")
        assert list((tmp_path / "uploads").iterdir()) == []
        again = await client.post("/imports/xlsx/upload", files=file(path), data=asked)
        assert (again.status_code, again.json()["existing"]) == (409, made.json()["jobId"])
        assert list((tmp_path / "uploads").iterdir()) == []


async def test_a_file_is_tried_first_corrected_and_sent_again(ask: Ask, app: Windlass, tmp_path: Path) -> None:
    path = workbook(tmp_path / "c.xlsx", [CUSTOMERS, *customers(2), ("=bad", "Eve", "1", "x")])
    async with ask() as client:
        sent = await client.post("/imports/files", files=file(path))
        assert sent.status_code == 201, sent.text
        look = sent.json()["look"]
        assert (look["kind"], look["header"], look["guesses"][0]["type"]) == ("xlsx", list(CUSTOMERS), "customers")
        assert look["first"][0] == [2, "c1@example.org", "Customer 1", "+49 30 000001", "Company 1"]
        order = {"upload": sent.json()["upload"], "type": "customers", "dates": "dmy"}
        trial = (await client.post("/imports/xlsx", params={"dryRun": True}, json=order)).json()["jobId"]
        await work(app)
        tried = (await client.get(f"/imports/{trial}")).json()
        assert (tried["dryRun"], tried["result"]["applied"], tried["result"]["failed"]) == (True, False, 1)
        assert tried["result"]["preview"][0]["email"] == "c1@example.org"

        errors = await client.get(f"/imports/{trial}/errors")
        assert errors.headers["content-disposition"].startswith("attachment")
        assert errors.text.splitlines()[1] == "4,Email,email,'=bad,value-error,email: not a valid address"
        lines = (await client.get(f"/imports/{trial}/errors", params={"format": "jsonl"})).text
        assert json.loads(lines)["value"] == "=bad"

        real = (await client.post("/imports/xlsx", json=order)).json()["jobId"]
        await work(app)
        sheet = await client.get(f"/imports/{real}/corrections")
        book: Any = openpyxl.load_workbook(io.BytesIO(sheet.content))
        rows = list(book.active.values)
        assert rows[0] == (*CUSTOMERS, "Reasons")
        assert rows[1] == ("=bad", "Eve", "1", "x", "Row 4: email: not a valid address")
        assert book.active["A2"].data_type == "s"  # and no formula
        assert book.active["A2"].quotePrefix  # and stays text when it is edited, or saved as CSV and opened again

        book.active["A2"] = "eve@example.org"
        book.save(tmp_path / "corrections.xlsx")
        again = await client.post(
            "/imports/xlsx/upload", files=file(tmp_path / "corrections.xlsx"), data={"type": "customers"}
        )
        await work(app)
        found = (await client.get(f"/imports/{again.json()['jobId']}")).json()
        assert (found["result"]["inserted"], found["result"]["failed"]) == (1, 0)


async def test_what_is_asked_wrongly_is_told(ask: Ask, tmp_path: Path) -> None:
    good = workbook(tmp_path / "c.xlsx", [CUSTOMERS, *customers(1)])
    async with ask() as client:
        for body, status, told in (
            ({}, 422, "either filename"),
            ({"filename": "c.xlsx", "upload": "0" * 32}, 422, "either filename"),
            ({"filename": "nothing.xlsx", "type": "ap"}, 404, "there is no file"),
            ({"filename": "../jobs.db"}, 422, "no path"),
            ({"filename": "other.xlsx"}, 404, "there is no file"),
            ({"filename": "c.xlsx", "type": "nope"}, 422, "known are"),
            ({"upload": "0" * 32}, 404, "not there any more"),
        ):
            refused = await client.post("/imports/xlsx", json=body)
            assert (refused.status_code, told in refused.json()["detail"]) == (status, True), refused.text
        for files, data, status, told in (
            (file(good, "image/png"), {}, 422, "image/png"),
            ({"file": ("a.xlsx", b"hello", XLSX)}, {"type": "ap"}, 422, "not that of a .xlsx file"),
            ({"file": ("a.exe", b"MZ", XLSX)}, {"type": "ap"}, 422, "can be taken"),
            ({"file": ("a.xlsx\x00.exe", b"MZ", XLSX)}, {"type": "ap"}, 422, ""),
            (file(good), {"mapping": "[]", "type": "ap"}, 422, "JSON object"),
            ({"file": ("u.xlsx", b"PK\x03\x04", XLSX)}, {}, 422, "the manifest says nothing"),
            ({"file": ("c.xlsx", b"PK\x03\x04" + bytes(210_000), XLSX)}, {}, 413, "200,000"),
            ({"file": ("c.xlsx", b"PK\x03\x04" + bytes(400_000), XLSX)}, {}, 413, ""),
        ):
            refused = await client.post("/imports/xlsx/upload", files=files, data=data)
            assert (refused.status_code, told in refused.json()["detail"]) == (status, True), refused.text
        looked = await client.post("/imports/files", files={"file": ("c.xlsx", b"PK\x03\x04nonsense", XLSX)})
        assert (looked.status_code, "damaged" in looked.json()["detail"]) == (422, True)
    assert not list((tmp_path / "uploads").glob("*"))


async def test_two_users_never_see_each_others_imports(ask: Ask, app: Windlass, tmp_path: Path) -> None:
    path = workbook(tmp_path / "c.xlsx", [CUSTOMERS, ("bad", "x")])
    async with ask("ann") as ann, ask("bob") as bob:
        sent = (await ann.post("/imports/files", files=file(path))).json()["upload"]
        made = (await ann.post("/imports/xlsx", json={"upload": sent, "type": "customers"})).json()["jobId"]
        await app.enqueue("sync_customers", {}, user="ann", tags=("import",))  # a job of the application's own
        await work(app)
        assert [one["id"] for one in (await ann.get("/imports")).json()["items"]] == [made]
        assert (await bob.get("/imports")).json()["items"] == []
        for path_ in (
            f"/imports/{made}",
            f"/imports/{made}/errors",
            f"/imports/{made}/corrections",
            f"/imports/files/{sent}",
        ):
            assert (await ann.get(path_)).status_code in {200, 404}
            assert (await bob.get(path_)).status_code == 404
        other = await ann.post("/imports/files", files=file(path))
        stolen = await bob.post("/imports/xlsx", json={"upload": other.json()["upload"], "type": "customers"})
        assert stolen.status_code == 404
        mine = await bob.post("/imports/xlsx/upload", files=file(path))  # the same bytes: his own import
        assert mine.status_code == 202


async def test_who_may_not_enqueue_may_not_import(ask: Ask, tmp_path: Path) -> None:
    path = workbook(tmp_path / "c.xlsx", [CUSTOMERS, *customers(1)])
    async with ask(scopes=("read",)) as client:
        assert (await client.post("/imports/xlsx", json={"filename": "c.xlsx"})).status_code == 403
        assert (await client.post("/imports/xlsx/upload", files=file(path))).status_code == 403
        assert (await client.get("/imports/types")).status_code == 200
    async with ask(types=["mail.*"]) as client:
        assert (await client.post("/imports/xlsx", json={"filename": "c.xlsx"})).status_code == 403
    async with ask(owner=None) as client:
        assert (await client.get("/imports")).status_code == 401


async def test_types_are_told_with_their_fields(ask: Ask) -> None:
    async with ask() as client:
        found: httpx.Response = await client.get("/imports/types")
        payable = next(one for one in found.json() if one["type"] == "ap")
        assert payable["key"] == ["invoiceNumber"]
        assert payable["fields"][2] == {
            "name": "amount",
            "kind": "number",
            "required": True,
            "aliases": ["total", "amount due", "invoice amount"],
        }
