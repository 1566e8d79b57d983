"""Documents that would harm: refused with a reason, in a child that may die; the next document is read."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import zipfile
from io import BytesIO
from pathlib import Path

import psutil
import pytest
from reportlab.lib.pdfencrypt import StandardEncryption  # type: ignore[import-untyped]  # it has no types

from tests.apps.resumes.test_extraction import DOCX, PDF, columns, drawn, saved_with_text
from tests.support.until import until
from windlass.apps.resumes.extraction.extract import extract
from windlass.apps.resumes.extraction.limits import MIB, Limits
from windlass.apps.resumes.extraction.pool import Pool
from windlass.apps.resumes.extraction.refused import DocumentRefused


def repacked(parts: dict[str, bytes], *, packed: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A DOCX with some of its parts replaced, and others added."""
    held = BytesIO()
    with zipfile.ZipFile(BytesIO(saved_with_text())) as old, zipfile.ZipFile(held, "w", packed) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, parts.get(entry.filename, old.read(entry)))
        for name in parts.keys() - set(old.namelist()):
            new.writestr(name, parts[name])
    return held.getvalue()


def bomb() -> bytes:
    return repacked({"word/media/a.png": bytes(40 * MIB)})


def text_bomb() -> bytes:
    said = b"<w:p><w:r><w:t>" + b"A" * (20 * MIB) + b"</w:t></w:r></w:p>"
    with zipfile.ZipFile(BytesIO(saved_with_text())) as old:
        return repacked(
            {"word/document.xml": old.read("word/document.xml").replace(b"<w:sectPr", said + b"<w:sectPr", 1)}
        )


def entities(name: str) -> bytes:
    lol = b'<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]><x>&lol2;</x>'
    return repacked({name: lol})


def many_parts() -> bytes:
    return repacked({f"word/x{at}.xml": b"<x/>" for at in range(1200)})


def lying_size() -> bytes:
    data = bytearray(repacked({"word/media/a.png": bytes(9 * MIB)}))
    at = data.find(b"PK\x01\x02", data.find(b"word/media/a.png") + 16)
    while at >= 0 and bytes(data[at + 46 : at + 62]) != b"word/media/a.png":
        at = data.find(b"PK\x01\x02", at + 4)
    data[at + 24 : at + 28] = struct.pack("<I", 10)
    return bytes(data)


def leading_elsewhere() -> bytes:
    return repacked({"../../etc/cron.d/x": b"x"})


def external_relation() -> bytes:
    """Of the kind that fetches a template from elsewhere: read, and nothing is fetched."""
    kind = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships/attachedTemplate"
    relation = (
        b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" '
        b'Type="' + kind + b'" Target="http://169.254.169.254/x" TargetMode="External"/></Relationships>'
    )
    return repacked({"word/_rels/settings.xml.rels": relation})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bomb, "packed far more"),
        (text_bomb, "packed far more"),
        (lambda: entities("word/document.xml"), "declares entities"),
        (lambda: entities("_rels/.rels"), "declares entities"),
        (lambda: entities("[Content_Types].xml"), "declares entities"),
        (many_parts, "parts"),
        (lying_size, "broken DOCX|packed far more"),
        (leading_elsewhere, "leads elsewhere"),
        (lambda: saved_with_text()[:-200], "broken DOCX"),
        (lambda: repacked({"word/document.xml": b"<w:nothing"}), "broken DOCX"),
        (lambda: repacked({"word/document.xml": b"<x/>"}), "broken DOCX|no text"),
        (lambda: repacked({"word/styles.xml": b"\xff\xfe<\0x\0/\0>\0"}), "entities|broken"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_hostile_docx_files_are_refused_with_a_reason(data: object, reason: str) -> None:
    with pytest.raises(DocumentRefused, match=reason):
        extract(data(), DOCX)  # type: ignore[operator]  # one of the functions above


def test_a_docx_that_names_addresses_is_read_and_nothing_is_fetched() -> None:
    assert "Ada Visible" in extract(external_relation(), DOCX).text


def test_a_pdf_with_a_password_says_so() -> None:
    locked = drawn(columns, encrypt=StandardEncryption("secret", ownerPassword="owner"))
    with pytest.raises(DocumentRefused, match="protected with a password"):
        extract(locked, PDF)


def test_a_pdf_that_only_its_owner_may_change_is_read() -> None:
    assert "Ada Visible" in extract(drawn(columns, encrypt=StandardEncryption("", ownerPassword="owner")), PDF).text


def test_many_pages_and_characters_are_bounded_and_noted() -> None:
    def draw(canvas: object) -> None:
        for _ in range(40):
            canvas.showPage()  # type: ignore[attr-defined]  # reportlab has no types
            canvas.drawString(60, 700, "another page of words")  # type: ignore[attr-defined]  # the same

    found = extract(drawn(draw), PDF, Limits(pages=3, characters=60))
    assert len(found.pages) == 3
    assert "only the first 3 of 41 pages were read" in found.facts.notes
    assert any("60 characters" in note for note in found.facts.notes)


async def test_a_document_larger_than_may_be_is_refused_before_a_child_sees_it() -> None:
    async with Pool(1, Limits(largest=1000)) as pool:
        with pytest.raises(DocumentRefused, match="1,000 may be"):
            await pool.extract(b"x" * 1001, "text/plain")
        assert pool.pids == []


async def test_children_stay_warm_and_end_with_the_pool() -> None:
    async with Pool(1) as pool:
        assert "Ada Visible" in (await pool.extract(drawn(columns), PDF)).text
        first = pool.pids
        with pytest.raises(DocumentRefused, match="broken PDF"):
            await pool.extract(b"%PDF-1.4 nothing", PDF)
        await pool.extract(saved_with_text(), DOCX)
        assert pool.pids == first
    await until(lambda: not psutil.pid_exists(first[0]), "the child has ended")


async def test_a_document_that_kills_its_child_is_refused_and_the_next_one_is_read() -> None:
    async with Pool(1, Limits(seconds=30)) as pool:
        await pool.extract(b"Ada Visible", "text/plain")
        [child] = pool.pids
        os.kill(child, signal.SIGSTOP)
        reading = asyncio.create_task(pool.extract(drawn(columns), PDF))
        await asyncio.sleep(0)
        os.kill(child, signal.SIGKILL)
        with pytest.raises(DocumentRefused, match="breaks its reader"):
            await reading
        assert "Ada" in (await pool.extract(b"Ada Visible", "text/plain")).text
        assert pool.pids != [child]


async def test_a_child_that_takes_too_long_is_ended() -> None:
    async with Pool(1, Limits(seconds=1.5, recognised=0)) as pool:
        await pool.extract(b"Ada Visible", "text/plain")
        [child] = pool.pids
        os.kill(child, signal.SIGSTOP)
        with pytest.raises(DocumentRefused, match="more memory or time"):
            await pool.extract(drawn(columns), PDF)
        await until(lambda: not psutil.pid_exists(child), "the child has ended")


async def test_a_reading_that_is_given_up_ends_its_child() -> None:
    async with Pool(1) as pool:
        await pool.extract(b"Ada Visible", "text/plain")
        [child] = pool.pids
        os.kill(child, signal.SIGSTOP)
        reading = asyncio.create_task(pool.extract(drawn(columns), PDF))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await until(lambda: not psutil.pid_exists(child), "the child has ended")
        assert "Ada" in (await pool.extract(b"Ada Visible", "text/plain")).text


async def test_a_child_has_no_more_memory_than_its_limit() -> None:
    with zipfile.ZipFile(BytesIO(saved_with_text())) as old:
        body = old.read("word/document.xml")
    paragraphs = b"<w:p><w:r><w:t>word</w:t></w:r></w:p>" * 300_000
    large = repacked({"word/document.xml": body.replace(b"<w:sectPr", paragraphs + b"<w:sectPr", 1)})
    async with Pool(1, Limits(memory=200 * MIB, ratio=100_000, seconds=15)) as pool:
        with pytest.raises(DocumentRefused, match="memory"):
            await pool.extract(large, DOCX)
        assert "Ada" in (await pool.extract(b"Ada Visible", "text/plain")).text


async def test_a_child_writes_no_files_and_is_told_nothing_of_its_parent(tmp_path: Path) -> None:
    async with Pool(1) as pool:
        await pool.extract(b"Ada Visible", "text/plain")
        child = psutil.Process(pool.pids[0])
        assert set(child.environ()) <= {"PATH", "LANG", "LC_CTYPE"}
        assert Path(f"/proc/{child.pid}/limits").read_text().split("Max file size")[1].split()[0] == "0"
