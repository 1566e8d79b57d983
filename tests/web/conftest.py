"""An application with keys, asked over HTTP without a network."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from windlass import Windlass

Ask = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]
EVERYTHING = ("enqueue", "read", "operate")


def declare(app: Windlass) -> None:
    """The jobs that tests enqueue."""

    @app.job(name="mail.send", queue="mail")
    async def send(to: str, copies: int = 1) -> str:
        return f"{to} {copies}"

    @app.job(name="fail", retry=1)
    async def fail(secret: str = "") -> None:
        raise ValueError(f"it broke: {secret}")


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[Windlass, None]:
    made = Windlass(f"sqlite:///{tmp_path / 'web.db'}")
    declare(made)
    async with made:
        yield made
    made.close()


@pytest.fixture
def ask(app: Windlass) -> Ask:
    """A client of a key that is made for it: of an owner, with scopes and limits."""
    web = app.asgi()

    @asynccontextmanager
    async def asking(
        owner: str | None = "ann", scopes: tuple[str, ...] = EVERYTHING, **limits: list[str]
    ) -> AsyncGenerator[httpx.AsyncClient, None]:
        headers = {}
        if owner is not None:
            made = await app.keys.create("a test", owner=owner, scopes=scopes, **limits)  # type: ignore[arg-type]  # queues and types
            headers = {"Authorization": f"Bearer {made.secret}"}
        transport = httpx.ASGITransport(web, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://windlass/api/v1", headers=headers) as client:
            yield client

    return asking
