"""A duration is seconds or a timedelta, wherever one is given."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from windlass import Ageing, Rate, Retention, Retry, SettingsError, Snooze, Windlass
from windlass.app.declaring import JobDecorator
from windlass.core.draft import Options
from windlass.worker.config import WorkerConfig

HOUR = timedelta(hours=1)


async def options(app: Windlass, **asked: Any) -> Options:
    declare = cast("JobDecorator", app.job(name=f"job{len(app.registry)}", **asked))

    @declare
    async def job() -> None: ...

    return job.options


@pytest.mark.parametrize("word", ["timeout", "delay", "expires", "longest_wait", "idempotent"])
async def test_options_take_either(app: Windlass, word: str) -> None:
    assert await options(app, **{word: 3600}) == await options(app, **{word: HOUR})


@pytest.mark.parametrize("word", ["lease", "heartbeat", "poll", "rescue", "grace"])
def test_a_worker_takes_either(app: Windlass, word: str) -> None:
    def config(value: Any) -> WorkerConfig:
        given: dict[str, Any] = {"worker_id": "w", "lease": 10_000, word: value}
        return app.worker(**given).config

    assert config(3600) == config(HOUR)


def test_policies_take_either() -> None:
    assert Retry(base=3600, cap=7200) == Retry(base=HOUR, cap=2 * HOUR)
    assert Retry(after=3600).asked == Retry(after=HOUR).asked
    assert Rate(5, per=3600) == Rate(5, per=HOUR)
    assert Ageing(3600) == Ageing(HOUR)
    assert Snooze(3600).for_ == Snooze(HOUR).for_


def test_an_application_takes_a_retention_of_either(path: Path) -> None:
    seconds: Any = 3600  # its class is declared with timedeltas
    audit = Retention(succeeded=seconds)
    given = Windlass(f"sqlite:///{path}", retention=Retention(failed=seconds, queues={"audit": audit})).retention
    assert given == Retention(failed=HOUR, queues={"audit": Retention(succeeded=HOUR)})
    wrong: Any
    for wrong in (-1, "1 day", None, True):
        with pytest.raises(SettingsError, match="the retention of failed jobs is"):
            Windlass(f"sqlite:///{path}", retention=Retention(failed=wrong))


async def test_waits_take_either(app: Windlass) -> None:
    for wait in (3600, HOUR):
        async with app.lock("either", ttl=wait, wait=wait) as lock:
            assert lock.name == "either"
    handle = await app.enqueue("nobody")
    for nothing in (0, timedelta(0)):
        with pytest.raises(TimeoutError):
            await handle.wait(timeout=nothing)
