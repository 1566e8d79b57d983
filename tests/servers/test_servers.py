"""The servers that other tests stand on: they start, answer, survive a kill, and leave nothing behind."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest
from pymongo import MongoClient

from tests.support.processes import ended
from tests.support.servers import START, Server, main, start_mongo, start_postgres, start_redis, version
from tests.support.until import until_sync

pytestmark = [pytest.mark.xdist_group("servers"), pytest.mark.timeout(60)]

OWN: dict[str, Callable[[], Server]] = {
    "mongo": lambda: start_mongo(own=True),
    "postgres": lambda: start_postgres(own=True),
    "redis": lambda: start_redis(own=True),
}


async def write(server: Server, value: str) -> None:
    if server.name == "mongo":
        with mongo(server.url) as client:
            client["windlass"]["kept"].insert_one({"value": value})
    elif server.name == "postgres":
        connection = await asyncpg.connect(server.url)
        await connection.execute("create table kept (value text)")
        await connection.execute("insert into kept values ($1)", value)
        await connection.close()
    else:
        with redis(server.url) as client:
            client.set("kept", value)


async def read(server: Server) -> str:
    if server.name == "mongo":
        with mongo(server.url) as client:
            found = client["windlass"]["kept"].find_one()
            return str(found and found["value"])
    if server.name == "postgres":
        connection = await asyncpg.connect(server.url)
        value = await connection.fetchval("select value from kept")
        await connection.close()
        return str(value)
    with redis(server.url) as client:
        return str(client.get("kept"))


def mongo(url: str) -> MongoClient[dict[str, Any]]:
    return MongoClient(url, serverSelectionTimeoutMS=10_000)


def redis(url: str) -> Any:
    return importlib.import_module("redis").Redis.from_url(url, decode_responses=True)


@pytest.mark.parametrize("name", OWN)
def test_a_server_answers_through_its_driver_and_leaves_nothing_behind(name: str) -> None:
    with OWN[name]() as server:
        process, home = psutil.Process(server.pid), server.home
        family = process.children(recursive=True)
        assert version(server)[0].isdigit()
    assert all(map(ended, [process, *family]))
    assert home is not None
    assert not home.exists()
    server.stop()  # a second time is nothing


@pytest.mark.parametrize("name", OWN)
async def test_data_survives_a_kill_and_a_restart_on_the_same_port(name: str) -> None:
    with OWN[name]() as server:
        await write(server, "still here")
        first = server.pid
        server.kill()
        with pytest.raises(RuntimeError, match="not running"):
            _ = server.pid
        server.restart()
        assert server.pid != first
        assert await read(server) == "still here"


def test_a_replica_set_elects_another_primary_when_it_loses_the_first() -> None:
    with start_mongo(members=3) as server, mongo(server.url) as client:
        client["windlass"]["kept"].insert_one({"value": 1})
        assert client.primary is not None
        lost = client.primary[1]
        next(node for node in server.nodes if node.port == lost).kill()

        def moved() -> bool:
            return client.primary is not None and client.primary[1] != lost

        until_sync(moved, "another primary", within=30)
        assert client["windlass"]["kept"].count_documents({}) == 1


def test_servers_end_with_the_process_that_started_them_even_when_it_is_killed() -> None:
    script = (
        "import time; from tests.support.servers import start_redis; s = start_redis(own=True);"
        "print(s.pid, s.home, flush=True); time.sleep(60)"
    )
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert owner.stdout is not None
    pid, home = owner.stdout.readline().split()
    server = psutil.Process(int(pid))
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    until_sync(lambda: ended(server), "the orphaned server to end")
    until_sync(lambda: not Path(home).exists(), "its data to be removed")


@pytest.mark.parametrize("name", START)
def test_a_server_of_your_own_is_used_as_it_is_and_never_ended(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"WINDLASS_TEST_{name.upper()}_URL", "scheme://somewhere")
    with START[name]() as server:
        assert server.url == "scheme://somewhere"
        with pytest.raises(RuntimeError, match="not started here"):
            server.kill()
        with pytest.raises(RuntimeError, match="not started here"):
            server.restart()


def test_a_missing_program_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WINDLASS_TEST_MONGO_BIN", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"no mongod here: .*WINDLASS_TEST_MONGO_URL"):
        start_mongo(own=True)


def test_a_server_that_does_not_start_shows_its_own_words() -> None:
    with pytest.raises(RuntimeError, match=r"redis did not start: [^~]*no-such-option"):
        start_redis("--no-such-option", "1")


def test_the_command_starts_asks_and_stops(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDLASS_TEST_REDIS_URL", raising=False)
    assert main(["--once", "redis"]) == 0
    assert capsys.readouterr().out.startswith("redis ")


def test_the_command_prints_urls_and_stops_on_sigterm() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_TEST_")}
    command = [sys.executable, "-m", "tests.support.servers", "redis"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as running:
        assert running.stdout is not None
        line = running.stdout.readline().decode()
        assert line.startswith("export WINDLASS_TEST_REDIS_URL='redis://127.0.0.1:")
        url = line.split("'")[1]
        with redis(url) as client:
            assert client.ping()
        running.send_signal(signal.SIGTERM)
    assert running.returncode == 0
    with redis(url) as client, pytest.raises(importlib.import_module("redis").ConnectionError):
        client.ping()
