"""Replayed: what is kept of an answer under an idempotency key, and the same answer made of it again."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from fastapi.responses import Response

from windlass.stores.contract.requests import LARGEST_ANSWER
from windlass.web.problems import Kind, Refused

_KEPT_HEADERS = ("location", "etag", "content-type")
_LEFT_OUT = Kind(409, "answer-too-large", "This request was carried out; its answer was too large to be kept")


def kept(answer: Response) -> str:
    """Status, headers and body; a large body is packed, and one that is too large even so is left out."""
    headers = {name: answer.headers[name] for name in _KEPT_HEADERS if name in answer.headers}
    head: dict[str, Any] = {"status": answer.status_code, "headers": headers}
    body = bytes(answer.body)
    text = _text(head, body.decode())
    if len(text) > LARGEST_ANSWER:
        text = _text({**head, "packed": True}, base64.b85encode(zlib.compress(body)).decode())
    return text if len(text) <= LARGEST_ANSWER else _text({**head, "leftOut": True}, "")


def again(text: str) -> Response:
    """The answer, as it was given first."""
    first, _, body = text.partition("\n")
    head = json.loads(first)
    if head.get("leftOut"):
        facts = {"answered": head["status"], "location": head["headers"].get("location")}
        raise Refused(_LEFT_OUT, "look at what it has made", **facts)
    content = zlib.decompress(base64.b85decode(body)) if head.get("packed") else body
    return Response(content, head["status"], {**head["headers"], "Idempotent-Replayed": "true"})


def _text(head: dict[str, Any], body: str) -> str:
    return f"{json.dumps(head)}\n{body}"
