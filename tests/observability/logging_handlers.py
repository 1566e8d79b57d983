"""Handlers that log, of each kind; imported by processes of their own, too."""

from __future__ import annotations

import asyncio
import logging
import os
import threading

import structlog

from windlass import Windlass

app = Windlass(os.environ.get("LOGGING_URL", "sqlite:///:memory:"))
shop = logging.getLogger("shop.mail")
structured = structlog.wrap_logger(
    logging.getLogger("shop.structured"),
    processors=[structlog.contextvars.merge_contextvars, structlog.stdlib.render_to_log_kwargs],
    wrapper_class=structlog.stdlib.BoundLogger,
)


def _say(kind: str) -> None:
    shop.warning("from a %s", kind, extra={"kind": kind, "token": "hunter2hunter2"})
    try:
        raise ValueError("inside\nerror forged")
    except ValueError:
        shop.exception("failed \x1b[2J in a %s", kind)
    shop.debug("nobody asked for this")
    structured.warning("structured", kind=kind)


@app.job
async def coroutine() -> None:
    _say("coroutine")
    await asyncio.to_thread(shop.warning, "from its thread")


@app.job
def thread() -> None:
    _say("thread")


@app.job(process=True)
def process() -> None:
    _say("process")
    beside = threading.Thread(target=shop.warning, args=("beside",))
    beside.start()
    beside.join()
