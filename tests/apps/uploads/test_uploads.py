"""Files that are sent: names, kinds, beginnings, their size while they come, and that nothing stays of what fails."""

from __future__ import annotations

import io
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import UploadFile
from starlette.datastructures import Headers

from windlass import SettingsError
from windlass.apps.uploads.kept import NotThere, TooLarge, Uploads
from windlass.apps.uploads.names import Accepted
from windlass.apps.uploads.receiving import receive
from windlass.web import Refused

DOCUMENTS = Accepted(
    begins={".pdf": (b"%PDF-",), ".txt": ()}, media=frozenset({"application/pdf", "text/plain"}), what="a document"
)


def sent(name: str, content: bytes, media: str = "application/pdf") -> UploadFile:
    return UploadFile(io.BytesIO(content), filename=name, headers=Headers({"content-type": media}))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "1 to 200 characters"),
        ("a" * 200 + ".pdf", "1 to 200 characters"),
        ("../a.pdf", "no path"),
        ("a/b.pdf", "no path"),
        ("a\\b.pdf", "no path"),
        ("c:a.pdf", "no path"),
        ("a..pdf", "no path"),
        (".a.pdf", "characters that none may have"),
        ("a\x00.pdf", "characters that none may have"),
        ("a\u202efdp.pdf", "characters that none may have"),
        ("con.pdf", "characters that none may have"),
        (" a.pdf", "characters that none may have"),
        ("a.pdf.exe", "only .pdf, .txt can be taken"),
        ("pdf", "only .pdf, .txt can be taken"),
    ],
)
def test_names_that_none_may_have(name: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        DOCUMENTS.check_name(name)


async def test_a_file_is_kept_under_a_name_of_ours_and_private(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path / "up", DOCUMENTS)
    kept = await receive(uploads, sent("C:\\Me\\A.PDF", b"%PDF-1"), owner="ann", largest=100)
    assert (kept.filename, kept.size, kept.owner) == ("A.PDF", 6, "ann")
    assert uploads.about(kept.token) == kept
    with uploads.open(kept.token) as file:
        assert file.read() == b"%PDF-1"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "up").iterdir()}
    assert modes == {kept.token: 0o600, f"{kept.token}.json": 0o600}
    assert stat.S_IMODE((tmp_path / "up").stat().st_mode) == 0o700
    uploads.remove(kept.token)
    assert list((tmp_path / "up").iterdir()) == []
    for token in (kept.token, "../up", "x"):
        with pytest.raises(NotThere):
            uploads.open(token)


@pytest.mark.parametrize(
    ("name", "content", "media", "reason"),
    [
        ("a.pdf", b"MZ", "application/pdf", "its content is not that of a .pdf file"),
        ("a.pdf", b"%PDF-1", "text/html", "sent as text/html: expected a document"),
        ("a.pdf", b"%PDF-" + b"x" * 96, "application/pdf", "100 bytes"),
    ],
)
async def test_nothing_stays_of_what_is_refused(
    name: str, content: bytes, media: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(Refused, match=reason):
        await receive(Uploads(tmp_path, DOCUMENTS), sent(name, content, media), owner="ann", largest=100)
    assert list(tmp_path.iterdir()) == []


async def test_size_is_counted_while_it_comes(tmp_path: Path) -> None:
    given = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal given
        while True:
            given += 10
            yield b"x" * 10

    with pytest.raises(TooLarge):
        await Uploads(tmp_path, DOCUMENTS).take(endless(), owner="ann", filename="a.txt", largest=95)
    assert given == 100
    assert list(tmp_path.iterdir()) == []
