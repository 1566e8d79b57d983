from __future__ import annotations

import json
import signal

import pytest

from tests.cli.support import Shop
from windlass import __version__


@pytest.mark.timeout(60)
def test_a_worker_tells_what_it_is_and_ends_cleanly_on_sigterm(shop: Shop) -> None:
    child = shop.start("worker", "shop:app", "-q", "mail:3,default")
    shop.says("ready")
    log = shop.log
    assert f"windlass {__version__}  sqlite:///shop.db" in log
    assert "synchronous=FULL" in log
    assert "handlers    5: bad, endless, hello, nasty, steps" in log
    assert "queues      mail:3, default:20; 23 slots" in log
    child.send_signal(signal.SIGTERM)
    assert child.wait(10) == 0
    assert "stopped    0 attempts ended" in shop.log


@pytest.mark.timeout(60)
def test_a_second_signal_hands_back_what_runs(shop: Shop) -> None:
    job_id = shop.ok("enqueue", "endless")
    child = shop.start("worker", "shop:app")
    shop.says(f"started    endless {job_id}")
    child.send_signal(signal.SIGINT)
    shop.says("stopping   1 running")
    child.send_signal(signal.SIGINT)
    assert child.wait(10) == 0
    told = shop.call("job", job_id, "--json").fact
    assert (told["status"], told["attempts"], told["history"][-1]["happened"]) == ("queued", 0, "released")


@pytest.mark.timeout(60)
def test_draining_runs_what_is_due_and_ends(shop: Shop) -> None:
    ids = [shop.ok("enqueue", "hello", f"name=n{number}") for number in range(3)]
    later = shop.ok("enqueue", "hello", "--in", "1h")
    said = shop.process("worker", "shop:app", "--drain", "--log-format", "json")
    assert said.code == 0, said
    told = said.facts
    assert told[0]["event"] == "worker.started"
    assert {one["job"] for one in told if one["event"] == "job.succeeded"} == set(ids)
    assert told[-1]["event"] == "worker.stopped"
    assert shop.call("job", later, "--json").fact["status"] == "scheduled"


@pytest.mark.timeout(60)
def test_excluded_types_and_other_queues_are_left_alone(shop: Shop) -> None:
    shop.ok("enqueue", "hello", "-q", "mail")
    excluded = shop.ok("enqueue", "steps")
    elsewhere = shop.ok("enqueue", "hello", "-q", "slow")
    said = shop.process(
        "worker", "shop:app", "--drain", "--exclude", "steps", "-q", "mail", "-q", "default:1", "--quiet"
    )
    assert said.code == 0
    assert said.out == ""
    left = {one["id"] for one in shop.call("jobs", "--status", "queued", "--json").facts}
    assert left == {excluded, elsewhere}


@pytest.mark.timeout(60)
def test_another_store_may_be_given_to_an_application(shop: Shop) -> None:
    shop.process("enqueue", "hello", "--store", "sqlite:///else.db", "--namespace", "mine")
    said = shop.process("worker", "shop:app", "--drain", "--store", "sqlite:///else.db", "--namespace", "mine")
    assert "else.db" in said.out
    told = shop.process("jobs", "--json", "--store", "sqlite:///else.db", "--namespace", "mine").fact
    assert told["status"] == "succeeded"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere:app"], "there is no module 'nowhere'"),
        (["shop:nothing"], "module 'shop' has no 'nothing'"),
        (["shop:hello"], "'shop:hello' is a JobFunction"),
        (["empty"], "module 'empty' has no 'app'"),
        (["broken:app"], "SyntaxError"),
        (["raising:app"], "ZeroDivisionError"),
        (["shop:"], "expected module:app"),
        (["shop:app", "--lease", "soon"], "--lease is 'soon'"),
        (["shop:app", "--lease", "1s", "--heartbeat", "1s"], "lease must last two heartbeats"),
        (["shop:app", "-q", "mail:lots"], "NAME:SLOTS"),
        (["shop:app", "--concurrency", "0"], "concurrency is 0"),
        (["shop:app", "--processes", "0"], "--processes"),
        (["shop:app", "--processes", "2", "--lease", "soon"], "--lease is 'soon'"),
    ],
)
def test_a_worker_that_cannot_start_says_why_in_one_line(words: list[str], told: str, shop: Shop) -> None:
    (shop.home / "empty.py").write_text("x = 1\n")
    (shop.home / "broken.py").write_text("def (\n")
    (shop.home / "raising.py").write_text("1 / 0\n")
    said = shop.process("worker", *words)
    assert said.code == 2, said
    assert told in said.err
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1


def test_a_module_without_a_name_gives_the_only_application_in_it(shop: Shop) -> None:
    (shop.home / "other.py").write_text("from shop import app as mine\n")
    assert shop.process("worker", "other", "--drain").code == 0


def test_log_lines_are_json_with_json(shop: Shop) -> None:
    said = shop.process("worker", "shop:app", "--drain", "--json")
    assert all(set(json.loads(line)) >= {"at", "level", "event"} for line in said.out.splitlines())
