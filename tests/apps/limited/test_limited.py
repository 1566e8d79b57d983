"""Children under limits: what they are told and tell, and that each of their deaths is a refusal with a reason."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.until import until
from windlass.apps.limited import child
from windlass.apps.limited.bounds import MIB, Bounds
from windlass.apps.limited.child import LimitedChild
from windlass.apps.limited.refused import FileRefused


@pytest.fixture(autouse=True)
def of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of the tests may be named."""
    monkeypatch.setattr(child, "_START", Path(__file__).parent / "started.py")


def limited(do: str, bounds: Bounds | None = None, **more: Any) -> LimitedChild:
    return LimitedChild("tests.apps.limited.served", {"do": do, **more}, bounds or Bounds())


async def test_a_file_is_its_standard_input_and_nothing_of_ours_is_around_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words")
    os.environ["WINDLASS_SECRET_OF_OURS"] = "x"
    try:
        with (tmp_path / "a.txt").open("rb") as file:
            asked = {"do": "tell"}
            async with LimitedChild("tests.apps.limited.served", asked, Bounds(), file=file) as told:
                frame = await told.frame()
    finally:
        del os.environ["WINDLASS_SECRET_OF_OURS"]
    assert frame["content"] == "words"
    assert set(frame["environment"]) <= {"PATH", "LANG", "LC_CTYPE"}


async def test_a_warm_child_answers_again_and_again_without_the_engine() -> None:
    async with limited("answer") as told:
        for length in (0, 5, 3_000_000):
            await told.send(b"x" * length)
            frame = await told.frame()
            assert (frame["length"], frame["loaded"], told.alive) == (length, [], True)


async def test_a_refusal_is_told_in_its_own_words() -> None:
    async with limited("refuse") as told:
        with pytest.raises(FileRefused, match="it is no file of mine"):
            await told.frame()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGXCPU])
async def test_a_death_by_a_signal_is_a_refusal(how: signal.Signals) -> None:
    async with limited("die", signal=int(how)) as told:
        with pytest.raises(FileRefused, match="split it"):
            await told.frame()
        assert not told.alive
        await told.send(b"x" * MIB)  # into a pipe that nobody reads


async def test_what_a_parser_says_of_itself_is_told_to_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    async with limited("break") as told:
        with pytest.raises(FileRefused) as caught:
            await told.frame()
    assert "it breaks the reader" in str(caught.value)
    assert "secret" not in str(caught.value) + "".join(capfd.readouterr())


async def test_memory_is_bounded() -> None:
    async with limited("hoard", Bounds(memory=256 * MIB), bytes=300 * MIB) as told:
        with pytest.raises(FileRefused, match="needs more memory"):
            await told.frame()
    async with limited("hoard", Bounds(memory=512 * MIB), bytes=300 * MIB) as told:
        assert (await told.frame())["bytes"] == 300 * MIB


async def test_time_is_bounded_by_the_processor_and_by_the_clock() -> None:
    async with limited("spin", Bounds(cpu=1)) as told:
        with pytest.raises(FileRefused, match="took more time"):
            await told.frame()
    async with limited("wait") as told:
        with pytest.raises(FileRefused, match=r"within 0\.05 seconds"):
            await told.frame(within=0.05)
        pid = told.pid
    assert not psutil.pid_exists(pid)


async def test_it_writes_no_file_unless_it_may(tmp_path: Path) -> None:
    async with limited("write", to=str(tmp_path / "a")) as told:
        assert (await told.frame())["error"] == "OSError"
    async with limited("write", Bounds(written=MIB), to=str(tmp_path / "b")) as told:
        with pytest.raises(FileRefused):
            await told.frame()  # it says nothing and ends
    assert (tmp_path / "b").read_text() == "x"


async def test_few_files_are_open_at_once() -> None:
    async with limited("open", Bounds(opened=20)) as told:
        assert 0 < (await told.frame())["opened"] < 20


PARENT = """
import asyncio, sys
from pathlib import Path
from windlass.apps.limited import child
from windlass.apps.limited.bounds import Bounds
child._START = Path(sys.argv[1])
async def main():
    async with child.LimitedChild("tests.apps.limited.served", {"do": "spin"}, Bounds()) as one:
        print(one.pid, flush=True)
        await one.frame()
asyncio.run(main())
"""


async def test_it_ends_with_its_parent() -> None:
    start = str(Path(__file__).parent / "started.py")
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, start), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    spinning = psutil.Process(int(await parent.stdout.readline()))
    # Until it has asked the kernel to follow its parent, which it does before it spins.
    await until(lambda: spinning.cpu_times().user > 0.3, "the child spins")
    parent.kill()
    await parent.wait()
    await until(lambda: not spinning.is_running() or spinning.status() == psutil.STATUS_ZOMBIE, "the child is gone")
