"""Handlers at the top level of a module, where a job's own process can find them."""

from __future__ import annotations

import asyncio
import functools
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from windlass import Cancel, Ctx, JobFunction, Reject, Retry, Snooze, Windlass

jobs = Windlass("sqlite://")
QUICK = Retry(3, base=0.01, factor=1.0, jitter=False, never=(ValueError,))
ONCE = Retry(1)


@jobs.job(process=True)
def double(value: int) -> int:
    return value * 2


@jobs.job(process=True)
def where() -> list[Any]:
    return [os.getpid(), threading.current_thread().name]


@jobs.job(process=True, retry=QUICK)
def fail(message: str) -> None:
    raise RuntimeError(message)


@jobs.job(process=True, retry=QUICK)
def never_again() -> None:
    raise ValueError("this will not get better")


@jobs.job(process=True, retry=QUICK)
def signals(ctx: Ctx, what: str) -> str:
    if ctx.attempt > 1 or (what == "snooze" and _been_here(ctx)):
        return f"done in attempt {ctx.attempt}"
    match what:
        case "snooze":
            raise Snooze(0.01, "not yet")
        case "reject":
            raise Reject("no good")
        case "cancel":
            raise Cancel("not needed")
        case "after":
            raise Retry(after=3600)
        case _:
            raise Retry


def _been_here(ctx: Ctx) -> bool:
    # An attempt that was given back leaves its number, but not its token.
    return ctx.token > 1


@jobs.job(process=True)
def report(ctx: Ctx, marker: str) -> None:
    ctx.progress(3, of=7, note="half way")
    while not Path(marker).exists():
        time.sleep(0.01)  # a file cannot be waited for otherwise


@jobs.job(process=True, retry=ONCE)
def report_badly(ctx: Ctx, what: str) -> None:
    value: Any = {"object": object(), "nan": math.nan, "text": "many"}[what]
    ctx.progress(value)


@jobs.job(process=True)
def obey(ctx: Ctx, marker: str) -> str:
    """Runs until asked to stop."""
    Path(marker).write_text(str(os.getpid()))
    while not ctx.cancelled:
        time.sleep(0.01)  # its work
    ctx.check()
    return "not reached"


@jobs.job(process=True)
def stubborn(marker: str) -> None:
    """Never ends by itself."""
    Path(marker).write_text(str(os.getpid()))
    while True:
        time.sleep(0.05)  # its work


@jobs.job(process=True)
def parent(marker: str) -> None:
    """Starts another process, and never ends by itself."""
    child = subprocess.Popen(["sleep", "1000"])
    Path(marker).with_suffix(".new").write_text(f"{os.getpid()} {child.pid}")
    Path(marker).with_suffix(".new").rename(marker)
    while True:
        time.sleep(0.05)  # its work


@jobs.job(process=True)
def group() -> list[int]:
    return [os.getpid(), os.getpgrp(), os.getsid(0)]


@jobs.job(process=True)
def die(how: str) -> None:
    match how:
        case "exit":
            os._exit(0)
        case _:
            os.kill(os.getpid(), signal.SIGKILL)


class HostileStr(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class HostileRepr(Exception):
    def __repr__(self) -> str:
        raise RuntimeError("no shape")


class HostileBoth(Exception):
    def __str__(self) -> NoReturn:
        raise KeyboardInterrupt

    __repr__ = __str__


class OddSnooze(Snooze):
    """A signal that lacks what signals have."""

    def __init__(self) -> None:
        Exception.__init__(self, "odd")


RAISED: dict[str, Callable[[], BaseException]] = {
    "hostile str": HostileStr,
    "hostile repr": HostileRepr,
    "hostile both": HostileBoth,
    "base": BaseException,
    "interrupt": KeyboardInterrupt,
    "exit": lambda: SystemExit(3),
    "stop iteration": lambda: StopIteration(1),
    "cancelled": asyncio.CancelledError,
    "generator exit": GeneratorExit,
    "group": lambda: BaseExceptionGroup("several", [ValueError("one"), KeyboardInterrupt()]),
    "odd signal": OddSnooze,
    "reason of no text": lambda: Reject(object()),  # type: ignore[arg-type]  # what users do
    "NUL and half a character": lambda: RuntimeError("\x00 \ud800"),
    "long": lambda: RuntimeError("x" * 5_000_000),
}


@jobs.job(process=True, retry=ONCE)
def throw(what: str) -> None:
    error = RAISED[what]()
    raise error


def _cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


RETURNED: dict[str, Callable[[], Any]] = {
    "lock": threading.Lock,
    "generator": lambda: (n for n in range(3)),
    "nan": lambda: math.nan,
    "cyclic": _cyclic,
    "huge": lambda: "x" * 50_000_000,
    "object": object,
    "half a character": lambda: "\ud800",
    "beyond 64 bits": lambda: 2**64,
}


@jobs.job(process=True)
def give(what: str) -> Any:
    return RETURNED[what]()


@jobs.job(process=True)
def lie() -> int:
    return "many"  # type: ignore[return-value]  # the lie


def in_mode(app: Windlass, job: JobFunction[Any, Any], mode: str) -> JobFunction[Any, Any]:
    """The same handler for another application, run another way."""
    declaration = job.declaration
    function: Callable[..., Any] = declaration.call
    if mode == "coroutine":
        function = as_coroutine(function)
    decorated: JobFunction[Any, Any] = app.job(
        name=declaration.name, process=mode == "process", retry=declaration.policy
    )(function)
    return decorated


def as_coroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return run
