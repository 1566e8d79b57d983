"""Trials: how workers are told of their place, and that none outlives its trial."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.until import until
from windlass.chaos.history import What
from windlass.chaos.place import Pace, Place
from windlass.chaos.trial import Trial

pytestmark = pytest.mark.timeout(60)


def test_a_place_is_told_through_the_environment_and_read_back() -> None:
    place = Place(url="redis://:secret@host/1", namespace="chaos_x", folder=Path("/tmp/x"), control="wrong")
    assert Place.told(place.environment()) == place
    assert Place.told({}) == Place()


def test_a_pace_is_said_in_the_words_of_the_command_line() -> None:
    pace = Pace(lease=1.5, slots=3)
    assert pace.arguments() == [
        "--lease=1500ms",
        "--heartbeat=200ms",
        "--poll=200ms",
        "--grace=300ms",
        "--concurrency=3",
    ]
    assert pace.recovery == pytest.approx(1.5 + 0.2 + 0.2)


PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from windlass.chaos.place import Place
from windlass.chaos.trial import Trial

async def main():
    folder = Path(sys.argv[1])
    async with Trial(Place(url=f"sqlite:///{folder}/jobs.db", folder=folder)) as trial:
        await trial.ready(1)
        print(trial.hands[0].pid, flush=True)
        os._exit(1)

asyncio.run(main())
"""


async def test_a_worker_ends_when_its_trial_is_gone_without_a_word(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=False)
    pid = int(done.stdout)

    def gone() -> bool:
        return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE

    await until(gone, "the worker to end", within=20)


async def test_a_worker_that_cannot_start_is_told_of_at_once(tmp_path: Path) -> None:
    place = Place(url=f"sqlite:///{tmp_path}/jobs.db", folder=tmp_path / "trial")
    async with Trial(place, pace=Pace(slots=0)) as trial:
        with pytest.raises(RuntimeError, match="could not start"):
            await trial.ready(1)


async def test_producers_go_on_while_others_look(tmp_path: Path) -> None:
    place = Place(url=f"sqlite:///{tmp_path}/jobs.db?synchronous=OFF", folder=tmp_path / "trial")
    async with Trial(place) as trial:
        trial.fault("outage")
        async with trial.producing(0.01, pause=0.001):
            await until(lambda: len(trial.history.lines()) > 40, "some jobs to be enqueued")
        trial.healed("outage")
        evidence = await trial.evidence()
        assert len(evidence.jobs) == len(set(evidence.acknowledged().values()))
        assert [line.name for line in evidence.of(What.FAULT, What.HEALED)] == ["outage", "outage"]
        await trial.empty()
        assert not (await trial.evidence()).jobs
