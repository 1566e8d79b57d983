"""A FastAPI application with jobs: its own sign-in for the API of jobs, an enqueue in a route, a worker beside it."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

import httpx
from fastapi import Depends, FastAPI, HTTPException, Request
from starlette.requests import HTTPConnection

from windlass import Windlass
from windlass.stores.contract import Scope
from windlass.web.callers import Caller

jobs = Windlass(os.environ.get("WINDLASS_URL", "sqlite:///shop.db"))
SESSIONS = {"cookie-of-ada": "ada", "cookie-of-grace": "grace"}  # in truth: your sessions


@jobs.job(queue="mail")
async def send_receipt(order_id: int, to: str) -> str:
    return f"receipt {order_id} for {to}"


def user_of(request: HTTPConnection) -> str | None:
    return SESSIONS.get(request.cookies.get("session", ""))


async def signed_in(request: HTTPConnection, _: object) -> Caller | None:
    """Who asks the API of jobs: the same people, who see their own jobs."""
    user = user_of(request)
    return None if user is None else Caller(f"user:{user}", user, frozenset({Scope.READ, Scope.OPERATE}))


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None, None]:
    async with jobs, jobs.worker():
        yield


def required(request: Request) -> str:
    user = user_of(request)
    if user is None:
        raise HTTPException(401)
    return user


site = FastAPI(lifespan=lifespan)
site.mount("/jobs", jobs.asgi(authenticate=signed_in))


@site.post("/orders/{order_id}", status_code=202)
async def order(order_id: int, user: Annotated[str, Depends(required)]) -> dict[str, str]:
    handle = await send_receipt.using(user=user).enqueue(order_id, f"{user}@example.org")
    return {"job": f"/jobs/api/v1/queue/{handle.id}"}


async def main() -> None:
    """What a browser would do; to serve it: uvicorn fastapi_app:site."""
    transport = httpx.ASGITransport(site)
    async with lifespan(site), httpx.AsyncClient(transport=transport, base_url="http://shop.example") as browser:
        print("a stranger:", (await browser.post("/orders/7")).status_code)
        browser.cookies.set("session", "cookie-of-ada")
        place = (await browser.post("/orders/7")).json()["job"]
        job = (await browser.get(place)).json()
        while job["status"] != "succeeded":
            await asyncio.sleep(0.05)
            job = (await browser.get(place)).json()
        print("ada:", job["result"], "of", job["userId"])
        browser.cookies.set("session", "cookie-of-grace")
        print("grace:", (await browser.get(place)).status_code)


if __name__ == "__main__":
    asyncio.run(main())
    jobs.close()
