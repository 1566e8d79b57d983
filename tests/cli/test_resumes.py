"""`windlass resumes`: a user is forgotten with a word on what was deleted, a job is deleted with its records."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.apps.resumes.test_routes import here
from tests.cli.support import Said, Shop
from windlass import Windlass
from windlass.apps.resumes.resumes import Resumes, Seen, Sent, install
from windlass.apps.resumes.settings import ResumesSettings

PLANTED = b"Quillfeather"


def windlass(shop: Shop, *words: str) -> Said:
    """As a process: the application that ships is made once in each."""
    return shop.process("--store", shop.url, *words)


async def filled(folder: Path) -> list[Seen]:
    """Two resumes of ann, one of bob, processed."""
    app = Windlass(f"sqlite:///{folder / 'shop.db'}")
    resumes: Resumes = install(app, ResumesSettings(files=str(folder / "resumes")))
    resumes.read = here
    async with app:
        made: list[Seen] = []
        for user, data in (
            ("ann", b"Ada Quillfeather\n"),
            ("ann", b"A Quillfeather\nada@example.org\n"),
            ("bob", b"Bob"),
        ):
            made += await resumes.submit(user, Sent(name="cv.txt", media_type="text/plain", data=data))
        await app.worker(drain=True).run()
    app.close()
    return made


@pytest.mark.timeout(60)
def test_a_user_is_forgotten_and_it_is_said_what_was_deleted(shop: Shop) -> None:
    asyncio.run(filled(shop.home))
    unasked = windlass(shop, "resumes", "forget", "ann")
    assert (unasked.code, "add --yes" in unasked.err) == (5, True)
    (shop.home / "resumes").rename(shop.home / "elsewhere")
    mislaid = windlass(shop, "resumes", "forget", "ann", "--yes")
    assert mislaid.out.strip() == "deleted: 2 records, 0 files, 2 jobs with payloads, results and histories"
    assert (mislaid.code, "2 files had not been in 'resumes'" in mislaid.err) == (1, True)
    (shop.home / "elsewhere").rename(shop.home / "resumes")
    again = windlass(shop, "resumes", "forget", "ann", "--yes", "--json")
    assert again.fact == {"records": 0, "files": 2, "missing": 0, "jobs": 0, "running": []}
    left = [path for path in shop.home.rglob("*") if path.is_file()]
    assert [path.name for path in left if PLANTED in path.read_bytes()] == []
    assert any(path.read_bytes() == b"Bob" for path in left)
    assert "resumes.forget" in shop.ok("audit")


@pytest.mark.timeout(60)
def test_a_job_is_deleted_with_its_records_only_if_that_is_asked_for(shop: Shop) -> None:
    made = asyncio.run(filled(shop.home))
    first, second = [str(one.record.job_id) for one in made[:2]]
    assert windlass(shop, "resumes", "delete", first).out.startswith("deleted: 0 records, 0 files, 1 job ")
    cascaded = windlass(shop, "resumes", "delete", second, "--cascade")
    assert cascaded.out.startswith("deleted: 1 record, 1 file, 1 job ")
    assert windlass(shop, "resumes", "delete", second).code == 4
    listed = windlass(shop, "resumes", "--json").facts
    assert sorted((str(one["user"]), one["status"]) for one in listed) == [("ann", "completed"), ("bob", "completed")]


def test_what_is_asked_wrongly_is_told(shop: Shop) -> None:
    for words, told in ((["forget"], "whose?"), (["delete"], "which job?"), (["burn"], "burn")):
        done = shop.call("resumes", *words)
        assert (done.code, told in done.err) == (2, True), done.err
