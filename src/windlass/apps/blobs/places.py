"""Places: which blob store an address means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from windlass import SettingsError

if TYPE_CHECKING:
    from obstore.store import S3Config

    from windlass.apps.blobs.blobs import Blobs

_WORDS = ("endpoint", "region")


def blobs_at(address: str | Path, room: str) -> Blobs:
    """The blobs of one application: a folder, or `s3://bucket/prefix?endpoint=http://…&region=…`.

    The credentials of a bucket are found as AWS's own programs find theirs: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
    or the role of the machine. `room` is the application's own part of the place.
    """
    if isinstance(address, str) and address.lower().startswith("s3://"):
        return _s3(address, room)
    if isinstance(address, str) and "://" in address:
        raise SettingsError(f"blobs cannot go to {address.partition('://')[0]}://…: expected a folder or s3://bucket")
    from windlass.apps.blobs.local import LocalBlobs

    return LocalBlobs(Path(address) / room)


def _s3(address: str, room: str) -> Blobs:
    try:
        from obstore.store import S3Store

        from windlass.apps.blobs.s3 import S3Blobs
    except ImportError as error:
        raise SettingsError(f'blobs at S3 need pip install "windlass[s3]" ({error})') from None
    parts = urlsplit(address)
    if parts.username or parts.password:
        raise SettingsError("the address of a bucket has no place for a key: set AWS_ACCESS_KEY_ID and its secret")
    words = dict(parse_qsl(parts.query))
    unknown = words.keys() - set(_WORDS)
    if not parts.netloc or unknown:
        told = f"unknown: {', '.join(sorted(unknown))}" if unknown else "no bucket is named"
        raise SettingsError(f"blobs at S3: {told}; expected s3://bucket/prefix, with ?endpoint= and &region= if needed")
    prefix = "/".join([*parts.path.strip("/").split("/"), room]).strip("/")
    config: S3Config = {}
    if "endpoint" in words:
        config["endpoint"] = words["endpoint"]
    if "region" in words:
        config["region"] = words["region"]
    # Without TLS only where the address itself says so: a server on the same host.
    plain = words.get("endpoint", "").startswith("http://")
    return S3Blobs(S3Store(parts.netloc, prefix=prefix, config=config, client_options={"allow_http": plain}))
