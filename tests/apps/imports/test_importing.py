"""Imports from file to table: every type, every store with its database, every bad cell named."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.apps.imports.conftest import Database
from tests.apps.imports.workbooks import CUSTOMERS, PAYABLES, Formula, customers, payables, workbook
from tests.contract.places import Place
from tests.control.conftest import address
from tests.support.apps import app_at, working
from tests.support.until import until
from windlass import DuplicateJob, Handle, JobFailed, SettingsError, Status, Windlass
from windlass.apps.imports.files import check_filename
from windlass.apps.imports.handler import ImportHandler, ImportRow
from windlass.apps.imports.imports import Imports, install
from windlass.apps.imports.order import Order, Summary
from windlass.apps.imports.settings import ImportsSettings


def imports_of(app: Windlass, folder: Path, **more: Any) -> Imports:
    words: dict[str, Any] = {"folder": folder, "uploads": folder / "uploads", "manifest": folder / "manifest.json"}
    settings = ImportsSettings.model_validate({**words, "batch": 10, **more})
    return install(app, settings)


@pytest.fixture
async def imports(tmp_path: Path) -> AsyncGenerator[Imports, None]:
    app = app_at(tmp_path / "jobs.db")
    made = imports_of(app, tmp_path)
    async with app:
        yield made
    app.close()


async def started(imports: Imports, type_: str, path: Path, *, force: bool = False, **how: Any) -> Handle[Summary]:
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return await imports.start(type_, Order(filename=path.name, sha256=sha256, **how), owner="ann", force=force)


async def run(imports: Imports, type_: str, path: Path, **how: Any) -> Summary:
    handle = await started(imports, type_, path, **how)
    async with working(imports.app):
        return await handle.result(timeout=30)


def reasons(summary: Summary) -> list[tuple[int, str]]:
    return [(error.row, error.reason) for error in summary.errors]


async def test_on_every_store_rows_go_to_its_own_database(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # beside Redis there is a file
    url, namespace = address(place)
    app = Windlass(url, namespace=namespace)
    made = imports_of(app, tmp_path)
    rows: list[Sequence[Any]] = [CUSTOMERS, *customers(25), ("bad", "Eve"), ("c1@example.org", "Again", "1", "x")]
    path = workbook(tmp_path / "a.xlsx", rows)
    async with app:
        first = await run(made, "customers", path)
        assert (first.total_rows, first.inserted, first.updated, first.failed) == (27, 25, 1, 1)
        assert reasons(first) == [(27, "email: not a valid address")]
        second = await run(made, "customers", path, force=True)
        assert (second.inserted, second.updated, second.failed) == (0, 26, 1)
        kind = (
            url.partition(":")[0]
            .replace("postgresql", "postgres")
            .replace("mongodb", "mongo")
            .replace("redis", "sqlite")
        )
        database = Database(kind, made.address)
        there = await database.rows(made.handler("customers"))
        assert len(there) == 25
        assert next(row["name"] for row in there if row["email"] == "c1@example.org") == "Again"
    app.close()


async def test_payables_and_budgets(imports: Imports, tmp_path: Path) -> None:
    found = await run(imports, "ap", workbook(tmp_path / "a.xlsx", [PAYABLES, *payables(30)], sheet="AP Data"))
    assert (found.inserted, found.failed, found.columns["dueDate"]) == (30, 0, "Due Date")
    budget = [("FY", "Category", "Dept.", "Amount"), (2026.0, "Travel", "IT", "1.234,50"), (2026, "Travel", "IT", 7)]
    found = await run(imports, "budgetForecast", workbook(tmp_path / "b.xlsx", budget))
    assert (found.inserted, found.updated, found.failed) == (1, 1, 0)


async def test_every_bad_cell_is_named_by_row_and_column(imports: Imports, tmp_path: Path) -> None:
    rows = [
        ("Invoice #", " vendor ", "AMOUNT", "due date", "Other"),
        ("I1", "V", "abc", "tomorrow"),
        ("I2", None, 5, "3/4/2026"),
        ("I3", "V", Formula("=1/0", "#DIV/0!"), "2026-01-01"),
        (),
        ("I4", "V", 1, "2026-01-01"),
    ]
    found = await run(imports, "ap", workbook(tmp_path / "a.xlsx", rows, top=1, left=1))
    assert (found.total_rows, found.inserted, found.failed, found.errors_total) == (4, 1, 3, 5)
    assert reasons(found) == [
        (3, "amount: is not a number"),
        (3, "dueDate: is not a date: write it as 2026-12-31"),
        (4, "dueDate: can be read in two ways: say which comes first, day or month, or write 2026-12-31"),
        (4, "vendor: is required"),
        (5, "amount: holds the error #DIV/0!"),
    ]
    first = found.errors[0]
    assert (first.column, first.field, first.value, first.code) == ("AMOUNT", "amount", "abc", "not-a-number")
    assert found.unused == ["Other"]


async def test_a_mapping_that_is_given_wins(imports: Imports, tmp_path: Path) -> None:
    rows = [("Mail", "E-Mail", "Who"), ("x", "a@b.co", "Ann")]
    path = workbook(tmp_path / "a.xlsx", rows)
    found = await run(imports, "customers", path, mapping={"email": "E-Mail", "name": "Who"})
    assert (found.inserted, found.failed) == (1, 0)
    with pytest.raises(JobFailed, match=r"no column for name.*'Who'"):
        await run(imports, "customers", path, mapping={"email": "E-Mail"})
    with pytest.raises(JobFailed, match="the field 'phon'"):
        await run(imports, "customers", path, mapping={"phon": "Who"})


async def test_the_same_again_is_a_duplicate_unless_it_failed_or_is_forced(imports: Imports, tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [CUSTOMERS, *customers(3)])
    first = await started(imports, "customers", path)
    with pytest.raises(DuplicateJob) as caught:
        await started(imports, "customers", path)
    assert caught.value.existing == first.id
    async with working(imports.app):
        await first.result(timeout=20)
    with pytest.raises(DuplicateJob) as caught:
        await started(imports, "customers", path)
    assert caught.value.existing == first.id
    assert (await started(imports, "customers", path, mapping={"phone": ""})).created
    assert (await run(imports, "customers", path, force=True)).updated == 3

    wrong = workbook(tmp_path / "b.xlsx", [("Only",), ("x",)])
    with pytest.raises(JobFailed):
        await run(imports, "customers", wrong)
    assert (await started(imports, "customers", wrong)).created


async def test_a_dry_run_shows_what_would_be_stored_and_stores_nothing(imports: Imports, tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [PAYABLES, *payables(2), ("I", "V", "x")])
    await run(imports, "ap", path, dry_run=True)
    found = await run(imports, "ap", path, dry_run=True)  # as often as one likes
    assert (found.dry_run, found.applied, found.inserted, found.failed) == (True, False, 2, 1)
    assert found.preview[0] == {
        "invoiceNumber": "INV-000001",
        "vendor": "Vendor 1",
        "amount": "1.25",
        "dueDate": "2026-01-02",
        "status": "open",
    }
    assert await Database("sqlite", imports.address).rows(imports.handler("ap")) == []
    assert (await run(imports, "ap", path)).inserted == 2


async def test_a_dry_run_counts_as_the_import_will(imports: Imports, tmp_path: Path) -> None:
    """A key that comes twice counts one insert and one update, also where the two are far from each other."""
    path = workbook(tmp_path / "a.xlsx", [CUSTOMERS, *customers(25), *customers(5), *customers(3, 26)])
    tried = await run(imports, "customers", path, dry_run=True)
    done = await run(imports, "customers", path)
    assert (tried.inserted, tried.updated) == (done.inserted, done.updated) == (28, 5)


async def test_all_or_nothing(imports: Imports, tmp_path: Path) -> None:
    wrong = workbook(tmp_path / "a.xlsx", [CUSTOMERS, *customers(25), ("bad", "x")])
    found = await run(imports, "customers", wrong, atomic=True)
    assert (found.applied, found.inserted, found.failed) == (False, 0, 1)
    assert (await run(imports, "customers", wrong, atomic=True)).failed == 1  # nothing was imported: no duplicate
    right = workbook(tmp_path / "b.xlsx", [CUSTOMERS, *customers(25)])
    found = await run(imports, "customers", right, atomic=True)
    assert (found.applied, found.inserted, found.failed) == (True, 25, 0)


async def test_errors_are_capped_in_the_result_and_complete_beside_it(imports: Imports, tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [CUSTOMERS, *[("bad", f"n{i}") for i in range(150)]])
    handle = await started(imports, "customers", path)
    async with working(imports.app):
        found = await handle.result(timeout=20)
    assert (found.failed, len(found.errors), found.errors_total) == (150, 100, 150)
    assert len(await imports.target.refused(handle.id, 0, 1000)) == 150


async def test_however_much_is_wrong_the_result_has_room(imports: Imports, tmp_path: Path) -> None:
    class WideRow(ImportRow):
        code: str
        text: str

    class Wide(ImportHandler):
        import_type = "wide"
        row = WideRow
        key = ("code",)

    imports.add(Wide)
    header = ["Code", "Text", *[f"{n:03} " + "ü" * 60 for n in range(290)]]
    rows: list[Sequence[Any]] = [(f"c{n}" + "x" * 200, "ü" * 30_000) for n in range(30)]
    rows += [("x", None, "y" * 20_000)] * 300
    found = await run(imports, "wide", workbook(tmp_path / "a.xlsx", [header, *rows]), dry_run=True)
    assert (found.failed, found.errors_total, found.errors[0].reason) == (300, 300, "text: is required")
    assert len(found.preview) == 20
    assert len(str(found.preview[0]["text"])) < 300
    assert len(found.unused) == 50


async def test_a_hostile_file_fails_its_job_at_once_and_no_worker(imports: Imports, tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"not a workbook")
    handle = await started(imports, "customers", tmp_path / "a.xlsx")
    async with working(imports.app):
        job = await handle.wait(timeout=20)
    assert (job.status, job.attempts, job.crashes) == (Status.FAILED, 1, 0)
    assert job.error is not None
    assert "no workbook" in job.error.message


async def test_progress_is_told_while_it_runs(imports: Imports, tmp_path: Path) -> None:
    handle = await started(imports, "customers", workbook(tmp_path / "a.xlsx", [CUSTOMERS, *customers(50)]))
    async with working(imports.app):
        await handle.result(timeout=20)
    progress = (await handle.job()).progress
    assert progress is not None
    assert (progress.of, "good" in str(progress.note)) == (50, True)


async def test_a_file_that_was_sent_is_removed_once_it_is_imported(imports: Imports, tmp_path: Path) -> None:
    async def parts() -> AsyncGenerator[bytes, None]:
        yield workbook(tmp_path / "a.xlsx", [CUSTOMERS, *customers(3)]).read_bytes()

    async def send(name: str) -> str:
        return (await imports.uploads.take(parts(), owner="ann", filename=name, largest=10**6)).token

    token = await send("mine.xlsx")
    about = imports.uploads.about(token)
    assert (about.filename, about.owner) == ("mine.xlsx", "ann")
    order = Order(filename=about.filename, sha256=about.sha256, upload=token)
    handle = await imports.start("customers", order, owner="ann")
    async with working(imports.app):
        assert (await handle.result(timeout=20)).inserted == 3
    assert list((tmp_path / "uploads").iterdir()) == []

    cancelled = await send("mine.xlsx")
    waiting = await imports.start("customers", order.model_copy(update={"upload": cancelled}), owner="ann", force=True)
    await waiting.cancel()
    for path in (tmp_path / "uploads").iterdir():
        os.utime(path, (0, 0))
    assert await imports.sweep() == 1
    assert list((tmp_path / "uploads").iterdir()) == []


async def test_what_is_kept_of_an_import_goes_with_its_job(imports: Imports, tmp_path: Path) -> None:
    handle = await started(imports, "customers", workbook(tmp_path / "a.xlsx", [CUSTOMERS, ("bad", "x")]))
    async with working(imports.app):
        await handle.result(timeout=20)
    assert await imports.sweep() == 0
    await imports.app.jobs.delete(handle.id)
    assert await imports.sweep() == 1
    assert await imports.target.refused(handle.id, 0, 10) == []


def test_the_manifest_names_types_by_name_and_pattern(imports: Imports, tmp_path: Path) -> None:
    manifest = {
        "Accounts-Payable.xlsx": {"type": "ap", "sheetName": "AP Data"},
        "customers-*.csv": {"type": "customers"},
    }
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    exact, pattern = imports.looked_up("Accounts-Payable.xlsx"), imports.looked_up("Customers-2026.csv")
    assert exact is not None
    assert (exact.type, exact.sheet_name) == ("ap", "AP Data")
    assert pattern is not None
    assert pattern.type == "customers"
    assert imports.looked_up("other.xlsx") is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[", "is no JSON"),
        ("[]", "holds a list"),
        ('{"a.xlsx": {"type": "nope"}}', r"'a.xlsx' is of the type 'nope': known are ap, budgetForecast, customers"),
        ('{"a.xlsx": {"typ": "ap"}}', r"'a.xlsx': type"),
        ('{"a.xlsx": {"type": "ap", "mapping": {"x": "y"}}}', r"'a.xlsx' maps 'x'"),
    ],
)
def test_a_mistake_in_the_manifest_names_its_entry(imports: Imports, tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(SettingsError, match=told):
        imports.looked_up("a.xlsx")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../a.xlsx",
        "a/b.xlsx",
        "a\\b.xlsx",
        "..xlsx..",
        "/etc/passwd",
        "a.exe",
        "a.xlsx\0.exe",
        "con.xlsx",
        ".xlsx",
        "x" * 300 + ".xlsx",
        "C:a.xlsx",
        " a.xlsx",
    ],
)
def test_a_name_that_could_be_a_path_is_refused(name: str) -> None:
    with pytest.raises(SettingsError):
        check_filename(name)


async def test_a_link_in_the_folder_is_not_followed(imports: Imports, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "a.csv").symlink_to(tmp_path / "secret.txt")
    handle = await imports.start("customers", Order(filename="a.csv", sha256="x"), owner="ann")
    async with working(imports.app):
        job = await handle.wait(timeout=20)
    assert job.error is not None
    assert "there is no file" in job.error.message


async def test_a_type_of_ones_own(imports: Imports, tmp_path: Path) -> None:
    class PartRow(ImportRow):
        part_no: str
        stock: int = 0
        active: bool | None = None

    @imports.add
    class Parts(ImportHandler):
        import_type = "parts"
        row = PartRow
        key = ("part_no",)

    rows = [("Part No.", "STOCK", "Active?"), ("A-1", 5.0, "yes"), ("A-2", None, None), ("A-3", "1.5", "no")]
    found = await run(imports, "parts", workbook(tmp_path / "a.xlsx", rows))
    assert (found.inserted, reasons(found)) == (2, [(4, "stock: is not a whole number")])
    assert [row["stock"] for row in await Database("sqlite", imports.address).rows(Parts())] == [5, 0]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"import_type": "a b"}, "expected letters"),
        ({"key": ("nope",)}, "names 'nope'"),
        ({"key": ()}, "names"),
        ({"table": "Robert'); DROP"}, "expected lower-case letters"),
        ({"aliases": {"nope": ()}}, "names 'nope'"),
    ],
)
def test_a_handler_that_cannot_work_is_refused_when_it_is_declared(body: dict[str, Any], told: str) -> None:
    class Row(ImportRow):
        name: str

    with pytest.raises(SettingsError, match=told):
        type("Wrong", (ImportHandler,), {"import_type": "x", "row": Row, "key": ("name",), **body})


async def test_rows_cannot_go_to_redis_or_into_memory() -> None:
    from windlass.apps.imports.targets.places import target_at

    for url, told in (
        ("redis://x", "Redis"),
        ("sqlite:///:memory:", "memory"),
        ("mysql://x/y", "mysql"),
        ("mongodb://x", "names no database"),
    ):
        with pytest.raises(SettingsError, match=told):
            target_at(url)


async def test_a_deploy_in_the_middle_goes_on_at_the_last_batch_and_spends_no_attempt(
    imports: Imports, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["Email,Name", *(f"c{n}@example.org,Ann" for n in range(60_000)), "bad,x"]))
    handle = await started(imports, "customers", path)

    async def under_way() -> bool:
        progress = (await handle.job()).progress
        return progress is not None and progress.done > 0

    async with imports.app.worker(grace=0.05, poll=0.05):
        await until(under_way, "some rows are written")
    job = await handle.job()
    assert (job.status, job.attempts) == (Status.QUEUED, 0)
    written = len(await Database("sqlite", imports.address).rows(imports.handler("customers")))
    assert 0 < written < 60_000
    async with working(imports.app):
        found = await handle.result(timeout=30)
    assert (found.total_rows, found.inserted, found.updated, found.failed) == (60_001, 60_000, 0, 1)


async def test_files_go_after_a_failure_and_what_a_crash_has_left_goes_too(imports: Imports, tmp_path: Path) -> None:
    async def parts(content: bytes) -> AsyncGenerator[bytes, None]:
        yield content

    wrong = workbook(tmp_path / "a.xlsx", [CUSTOMERS, ("bad", "x")]).read_bytes()
    sent = [
        await imports.uploads.take(parts(content), owner="ann", filename="a.xlsx", largest=10**6)
        for content in (b"PK\x03\x04 broken", wrong)
    ]
    for one, atomic in zip(sent, (False, True), strict=True):
        order = Order(filename="a.xlsx", sha256=one.sha256, upload=one.token, atomic=atomic)
        handle = await imports.start("customers", order, owner="ann")
        async with working(imports.app):
            await handle.wait(timeout=20)
    (tmp_path / "uploads" / ("0" * 32)).write_bytes(b"half of a file, whose server was killed")
    assert len(list((tmp_path / "uploads").iterdir())) == 5
    for path in (tmp_path / "uploads").iterdir():
        os.utime(path, (0, 0))
    assert await imports.sweep() == 3
    assert list((tmp_path / "uploads").iterdir()) == []
