from __future__ import annotations

import os
import signal

import psutil
import pytest

from tests.cli.support import Shop
from tests.support.processes import descendants, ended
from tests.support.until import until_sync

pytestmark = pytest.mark.timeout(90)


def children(pid: int) -> list[psutil.Process]:
    return [one for one in descendants(pid) if not ended(one)]


def test_a_killed_child_is_started_again_and_all_end_together(shop: Shop) -> None:
    parent = shop.start("worker", "shop:app", "--processes", "2")
    shop.says("ready", times=2)
    first = children(parent.pid)
    assert len(first) == 2
    os.kill(first[0].pid, signal.SIGKILL)
    shop.says(f"(process {first[0].pid}) was ended by SIGKILL; starting another in")
    shop.says("ready", times=3)
    now = children(parent.pid)
    assert len(now) == 2
    assert first[1] in now
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(20) == 0
    until_sync(lambda: all(ended(one) for one in now), "the children to end")


def test_a_full_worker_makes_room_for_a_fresh_process(shop: Shop) -> None:
    # Not instant ones: a worker looks at how many it has begun some fifty times a second, and may begin more between.
    for _ in range(5):
        shop.ok("enqueue", "steps", "n=1")
    parent = shop.start("worker", "shop:app", "--max-jobs", "2", "--concurrency", "1")
    shop.says("was recycled; starting a fresh one", times=2)
    shop.says("succeeded", times=5)
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(20) == 0


def test_a_drained_child_is_not_started_again(shop: Shop) -> None:
    shop.ok("enqueue", "hello")
    said = shop.process("worker", "shop:app", "--processes", "2", "--drain")
    assert said.code == 0, said
    assert said.out.count("succeeded") == 1


def test_children_do_not_outlive_their_supervisor(shop: Shop) -> None:
    parent = shop.start("worker", "shop:app", "--processes", "2")
    shop.says("ready", times=2)
    orphans = children(parent.pid)
    parent.kill()
    parent.wait()
    until_sync(lambda: all(ended(one) for one in orphans), "the orphans to end", within=15)


def test_it_gives_up_when_the_children_cannot_start(shop: Shop) -> None:
    # The parent can import it, the children cannot: only they are given --child.
    (shop.home / "shy.py").write_text(
        "import sys\nfrom shop import app\nif '--child' in sys.argv:\n    raise RuntimeError('not here')\n"
    )
    said = shop.process("worker", "shy:app", "--processes", "2")
    assert said.code == 2, said
    assert "giving up" in said.out


def test_the_second_signal_reaches_the_children(shop: Shop) -> None:
    job_id = shop.ok("enqueue", "endless")
    parent = shop.start("worker", "shop:app", "--processes", "2")
    shop.says("started    endless")
    parent.send_signal(signal.SIGTERM)
    shop.says("stopping   1 running")
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(20) == 0
    assert shop.call("job", job_id, "--json").fact["history"][-1]["happened"] == "released"


def test_stuck_threads_end_the_process_so_that_a_fresh_one_is_started(shop: Shop) -> None:
    (shop.home / "mud.py").write_text(
        "import time\nfrom shop import app\n@app.job(retry=1)\ndef sink() -> None:\n    time.sleep(600)\n"
    )
    shop.ok("enqueue", "sink", "--timeout", "200ms")
    parent = shop.start("worker", "mud:app", "--max-stuck", "1", "--weight", "default=2")
    shop.says("1 of 20 slots is held by a handler that will not end: stopping, a fresh process has to take over")
    shop.says("was recycled; starting a fresh one")
    shop.says("ready", times=2)
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(20) == 0
