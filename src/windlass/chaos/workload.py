"""The application that the worker processes of a trial run: jobs that take a while, fail, hold keys, and misbehave.

Every handler leaves lines in the trial's history, and returns the token it ran under, so that a result accepted from
the wrong attempt can be told.
"""

from __future__ import annotations

import asyncio
import ctypes
import mmap
import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from windlass import Ctx, Limit, Retry, Windlass
from windlass.chaos.history import PULSE, History, What, pulse
from windlass.chaos.place import Place
from windlass.stores.contract import Store

LIMIT = 2
"""how many `limited` jobs of one key may run at once"""
_SOON = Retry(50, base=0.05, cap=0.2)
_BRIEF = 0.1
_MEGABYTE = 1 << 20
_BALLOON = 96 * _MEGABYTE


@cache
def witness() -> History:
    """The pen of this process for the history of its trial, and from now on its pulse."""
    made = History(Place.told().folder)
    pulse(made)
    return made


@contextmanager
def running(ctx: Ctx, note: str | None = None) -> Generator[None, None, None]:
    """Tell when a handler begins, and how it left."""
    told = {"job": ctx.id, "token": ctx.token}
    witness().tell(What.BEGUN, pid=os.getpid(), note=note, **told)
    try:
        yield
    except BaseException:
        witness().tell(What.STOPPED, pid=os.getpid(), **told)
        raise
    witness().tell(What.ENDED, pid=os.getpid(), **told)


async def work(ctx: Ctx, name: str, seconds: float) -> int:
    """Take a while and have one effect."""
    with running(ctx):
        await asyncio.sleep(seconds)
        witness().effect(ctx.id, ctx.token)
    return ctx.token


def labour(ctx: Ctx, name: str, seconds: float) -> int:
    """The same in a thread that stops when it is told to."""
    with running(ctx):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            ctx.check()
            time.sleep(0.01)
        witness().effect(ctx.id, ctx.token)
    return ctx.token


async def flaky(ctx: Ctx, name: str, failures: int) -> int:
    """Fail so many attempts, then succeed."""
    with running(ctx):
        await asyncio.sleep(0.01)
        if ctx.attempt <= failures:
            raise ConnectionError(f"failure {ctx.attempt} of {failures}")
        witness().effect(ctx.id, ctx.token)
    return ctx.token


async def keyed(ctx: Ctx, name: str, key: str, seconds: float) -> int:
    """One live job of a key at a time."""
    return await work(ctx, name, seconds)


async def limited(ctx: Ctx, name: str, key: str, seconds: float) -> int:
    """At most two running jobs of a key at a time."""
    return await work(ctx, name, seconds)


async def poison(ctx: Ctx, name: str, kind: str, seconds: float) -> int:
    """Kill the worker that runs it: `kill`, `segfault` or `memory`."""
    with running(ctx):
        await asyncio.sleep(seconds)
        _limit("RLIMIT_CORE", 0)  # its remains are of no interest
        _DEATHS[kind]()
    return ctx.token


async def block(ctx: Ctx, name: str, seconds: float) -> int:
    """Block the event loop."""
    with running(ctx):
        time.sleep(seconds)  # noqa: ASYNC251  # that is its purpose
        witness().effect(ctx.id, ctx.token)
    return ctx.token


def hold_gil(ctx: Ctx, name: str, seconds: float) -> int:
    """Hold the interpreter's lock, the first time it runs: no thread of this process can do anything meanwhile."""
    with running(ctx):
        if witness().first(name):
            ctypes.PyDLL(None).usleep(ctypes.c_uint(round(seconds * 1e6)))
        witness().effect(ctx.id, ctx.token)
    return ctx.token


async def stop_at_the_end(ctx: Ctx, name: str) -> int:
    """Stop the whole process between this handler's last act and the writing of its end, the first time it runs."""
    with running(ctx):
        witness().effect(ctx.id, ctx.token)
    if witness().first(name):
        witness().tell(What.FAULT, pid=os.getpid(), name="freeze", job=ctx.id)
        os.kill(os.getpid(), signal.SIGSTOP)
    return ctx.token


_declaring = Windlass("sqlite://")
"""never opened: a handler with a process of its own is looked up there as what a decorator made of it"""


@_declaring.job(retry=_SOON, process=True)
def offspring(ctx: Ctx, name: str, seconds: float) -> int:
    """Be at it in a process of its own, long the first time; tell so all the while, for it may end without a word."""
    with running(ctx, note=str(os.getppid())):
        until = time.monotonic() + (seconds if witness().first(name) else _BRIEF)
        while time.monotonic() < until:
            witness().tell(What.ACTED, pid=os.getpid(), job=ctx.id, token=ctx.token)
            time.sleep(PULSE)
        witness().effect(ctx.id, ctx.token)
    return ctx.token


def _limit(of: str, most: int) -> None:
    import resource  # not every system has it, and the command line lists this module's command on all of them

    kind = getattr(resource, of)
    resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _segfault() -> None:
    ctypes.string_at(0)


def _exhaust() -> None:
    """Take memory until there is none, and die of it as the kernel would let it."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        _limit("RLIMIT_AS", int(statm.read_text(encoding="ascii").split()[0]) * mmap.PAGESIZE + _BALLOON)
    held: list[bytearray] = []
    with suppress(MemoryError):
        # Bounded also where the system cannot limit a process: this runs on people's own machines.
        while len(held) * _MEGABYTE < 2 * _BALLOON:
            held.append(bytearray(_MEGABYTE))
    _die()


_DEATHS = {"kill": _die, "segfault": _segfault, "memory": _exhaust}
KINDS = tuple(_DEATHS)


def application(place: Place, store: Store | None = None) -> Windlass:
    """The application at a place; on another store than the place's own where one is given."""
    made = Windlass(place.url, namespace=place.namespace, store=store)
    for function in (work, labour, flaky, poison, block, hold_gil, stop_at_the_end):
        made.job(retry=_SOON)(function)
    made.registry.add(offspring.declaration)
    made.job(retry=_SOON, unique="chaos:{key}")(keyed)
    made.job(retry=_SOON, limit=Limit("chaos:{key}", LIMIT))(limited)
    return made


app = application(Place.told())
