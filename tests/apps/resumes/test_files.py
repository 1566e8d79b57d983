"""Files of resumes in a folder and at S3: each user's apart, found by what they are, all of a user removed at once."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from tests.apps.blobs.conftest import address, bucket, s3
from windlass.apps.resumes.files import FileGone, Files

__all__ = ["address", "bucket", "s3"]
CV = b"Ada Quillfeather"
NAME = sha256(CV).hexdigest()


async def test_each_user_has_files_of_their_own(address: str, tmp_path: Path) -> None:
    files = Files(address, 1000)
    for user in ("ann", "../bob", "ann"):
        await files.keep(user, CV)
    assert await files.read("ann", NAME) == CV
    assert await files.remove("ann", NAME) is True
    assert await files.remove("ann", NAME) is False
    with pytest.raises(FileGone, match="send it again"):
        await files.read("ann", NAME)
    assert await files.read("../bob", NAME) == CV


async def test_all_of_a_user_is_removed_also_what_no_record_names(address: str, tmp_path: Path) -> None:
    files = Files(address, 1000)
    for number in range(3):
        await files.keep("ann", CV + bytes([number]))
    await files.keep("bob", CV)
    assert await files.remove_of("ann") == 3
    assert await files.remove_of("ann") == 0
    assert await files.read("bob", NAME) == CV
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(left) == (0 if address.startswith("s3:") else 1)
