from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator

import pytest

from windlass import SettingsError
from windlass.apps.blobs.blobs import BlobError, BlobMissing, Blobs, BlobTooLarge
from windlass.apps.blobs.places import blobs_at

MIB = 1024 * 1024


async def stream(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def all_of(blobs: Blobs) -> set[str]:
    return {blob.sha256 async for blob in blobs.older_than(0)}


async def test_what_is_put_is_read_under_its_sha256(blobs: Blobs) -> None:
    content = b"\x00\xff text \r\n" * 1000
    blob = await blobs.put(content, largest=MIB)
    assert (blob.sha256, blob.size) == (hashlib.sha256(content).hexdigest(), len(content))
    assert await blobs.get(blob.sha256) == content
    assert await blobs.size(blob.sha256) == len(content)
    assert b"".join([piece async for piece in blobs.open(blob.sha256)]) == content


async def test_nothing_is_a_blob_too(blobs: Blobs) -> None:
    blob = await blobs.put(b"", largest=0)
    assert blob == await blobs.put(stream(), largest=0)
    assert await blobs.get(blob.sha256) == b""
    assert [piece async for piece in blobs.open(blob.sha256)] == []


async def test_a_stream_is_put_piece_by_piece(blobs: Blobs) -> None:
    parts = [bytes([number]) * MIB for number in range(9)]  # at S3 more than one request has
    blob = await blobs.put(stream(*parts), largest=9 * MIB)
    assert blob.sha256 == hashlib.sha256(b"".join(parts)).hexdigest()
    pieces = [piece async for piece in blobs.open(blob.sha256)]
    assert len(pieces) > 1
    assert b"".join(pieces) == b"".join(parts)


async def test_a_range_is_read_alone(blobs: Blobs) -> None:
    blob = await blobs.put(bytes(range(256)), largest=256)
    assert await blobs.get(blob.sha256, 10, 20) == bytes(range(10, 20))
    assert await blobs.get(blob.sha256, 250) == bytes(range(250, 256))
    assert await blobs.get(blob.sha256, 250, 9999) == bytes(range(250, 256))
    assert await blobs.get(blob.sha256, 256) == b""


async def test_a_stream_that_is_too_long_leaves_nothing(blobs: Blobs) -> None:
    with pytest.raises(BlobTooLarge, match="1,000 bytes"):
        await blobs.put(stream(b"x" * 600, b"x" * 401), largest=1000)
    with pytest.raises(BlobTooLarge):
        await blobs.put(b"x" * 1001, largest=1000)
    assert await all_of(blobs) == set()


async def test_a_stream_that_breaks_off_leaves_nothing(blobs: Blobs) -> None:
    async def breaking() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await blobs.put(breaking(), largest=1000)
    assert await all_of(blobs) == set()


async def test_the_same_is_put_many_times_at_once_and_is_one_blob(blobs: Blobs) -> None:
    found = await asyncio.gather(*(blobs.put(b"the same", largest=100) for _ in range(20)))
    assert len(set(found)) == 1
    assert await all_of(blobs) == {found[0].sha256}
    assert await blobs.get(found[0].sha256) == b"the same"


async def test_a_blob_that_is_not_there_is_missing(blobs: Blobs) -> None:
    nothing = "0" * 64
    for ask in (blobs.get(nothing), blobs.size(nothing), blobs.touch(nothing)):
        with pytest.raises(BlobMissing):
            await ask
    with pytest.raises(BlobMissing):
        [piece async for piece in blobs.open(nothing)]
    assert not await blobs.collect(nothing, 0)


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "a" * 63, "A" * 64, "/" + "a" * 63, "a" * 64 + "\n"])
async def test_a_name_is_never_a_path(blobs: Blobs, name: str) -> None:
    for ask in (blobs.get(name), blobs.size(name), blobs.touch(name), blobs.collect(name, 0)):
        with pytest.raises(BlobMissing):
            await ask


async def test_only_what_is_old_is_listed_and_collected(blobs: Blobs) -> None:
    blob = await blobs.put(b"new", largest=100)
    assert [one async for one in blobs.older_than(60)] == []
    assert not await blobs.collect(blob.sha256, 60)
    assert await blobs.get(blob.sha256) == b"new"
    assert [one async for one in blobs.older_than(0)] == [blob]
    assert await blobs.collect(blob.sha256, 0)
    assert not await blobs.collect(blob.sha256, 0)
    with pytest.raises(BlobMissing):
        await blobs.get(blob.sha256)


async def test_rooms_have_nothing_in_common(address: str) -> None:
    one, other = blobs_at(address, "one"), blobs_at(address, "other")
    blob = await one.put(b"mine", largest=100)
    with pytest.raises(BlobMissing):
        await other.get(blob.sha256)
    assert await all_of(other) == set()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("ftp://host/path", "expected a folder or s3://bucket"),
        ("s3://", "no bucket is named"),
        ("s3://key:secret@bucket", "no place for a key"),
        ("s3://bucket?endpint=http://x", "unknown: endpint"),
    ],
)
def test_an_address_that_cannot_be_read_is_told(given: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        blobs_at(given, "room")


async def test_a_bucket_that_is_not_there_is_told_without_secrets(bucket: str) -> None:
    blobs = blobs_at(bucket.replace("s3://b", "s3://another-b"), "room")
    with pytest.raises(BlobError) as failed:
        await blobs.put(b"x", largest=10)
    assert "test" not in str(failed.value)
