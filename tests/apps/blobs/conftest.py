"""Blob stores: a folder, and a bucket of a real S3 server on loopback."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from moto.server import ThreadedMotoServer

from windlass.apps.blobs.blobs import Blobs
from windlass.apps.blobs.places import blobs_at


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The address of an S3 server."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty bucket, as an address for blobs."""
    for name, value in (("ACCESS_KEY_ID", "test"), ("SECRET_ACCESS_KEY", "test"), ("DEFAULT_REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    name = f"b{uuid.uuid4().hex[:20]}"
    httpx.put(f"{s3}/{name}").raise_for_status()
    return f"s3://{name}/some/place?endpoint={s3}&region=us-east-1"


@pytest.fixture(params=["folder", "s3"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where blobs go."""
    return str(tmp_path / "blobs") if request.param == "folder" else str(request.getfixturevalue("bucket"))


@pytest.fixture
def blobs(address: str) -> Blobs:
    """An empty store of each kind."""
    return blobs_at(address, "room")
