"""A process that is killed between insert and answer: python -m tests.web.dying URL NAMESPACE SECRET BODY."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx

from tests.web.conftest import declare
from windlass import Windlass
from windlass.client.requests import RequestsRoom
from windlass.client.surrounding import Outgoing


async def die(url: str, namespace: str, secret: str, body: str) -> None:
    app = Windlass(url, namespace=namespace)
    declare(app)

    @app.around_enqueue
    async def killed(_: Outgoing) -> AsyncIterator[None]:
        yield
        os.kill(os.getpid(), signal.SIGKILL)

    async with app:
        app.__dict__["requests"] = RequestsRoom(app.client, hold=timedelta(milliseconds=1))
        headers = {"Authorization": f"Bearer {secret}", "Idempotency-Key": "k"}
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://w/api/v1", headers=headers) as client:
            await client.post("/queue/enqueue", json=json.loads(body))


if __name__ == "__main__":
    asyncio.run(die(*sys.argv[1:]))
