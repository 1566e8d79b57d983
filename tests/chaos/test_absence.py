"""A store that is away: what its users meet meanwhile, and where that cannot be had."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from windlass.chaos.absence import NotHere, absence, through


def test_a_held_file_takes_no_writes_until_it_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as db:
        db.execute("CREATE TABLE t (n)")
        with absence(f"sqlite:///{path}?synchronous=OFF") as store:
            assert store.url == f"sqlite:///{path}?synchronous=OFF"
            for _ in range(2):
                store.begin()
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    db.execute("INSERT INTO t VALUES (1)")
                store.end()
                db.execute("INSERT INTO t VALUES (1)")


def test_a_server_says_nothing_until_it_is_back() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        with absence(f"redis://user:secret@127.0.0.1:{port}/3") as store:
            there = int(store.url.rpartition(":")[2].partition("/")[0])
            assert store.url == f"redis://user:secret@127.0.0.1:{there}/3"
            store.begin()
            with closing(socket.create_connection(("127.0.0.1", there))) as client:
                client.settimeout(0.2)
                client.sendall(b"PING")
                with pytest.raises(TimeoutError):
                    client.recv(1)
            store.end()
            with closing(socket.create_connection(("127.0.0.1", there))) as client:
                taken = [server.accept()[0] for _ in range(2)]  # the silent one was accepted, too
                taken[1].sendall(b"PONG")
                assert client.recv(4) == b"PONG"
                for one in taken:
                    one.close()


def test_a_replica_set_is_left_out_of_the_way_through_a_proxy() -> None:
    url = "mongodb://db.example/shop?replicaSet=rs0&timeout=3"
    assert through(url, 7) == "mongodb://127.0.0.1:7/shop?timeout=3&directConnection=true"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mongodb://a:1,b:2/shop?replicaSet=rs0", "one server"),
        ("mongodb+srv://cluster.example/shop", "one server"),
        ("rediss://cache.example/0", "one server"),
        ("postgresql:///shop?host=/run/postgresql", "one server"),
        ("postgresql://db.example/shop?sslmode=require", "encrypted"),
    ],
)
def test_where_no_proxy_can_stand_it_is_said(url: str, why: str) -> None:
    with pytest.raises(NotHere, match=why), absence(url):
        pass
