"""Which node of a cluster is asked next."""

from __future__ import annotations

import pytest

from windlass.stores.redis.cluster import Nodes

GIVEN = "rediss://ann:s3cret@seed:7000/0?ssl_check_hostname=no"


@pytest.mark.parametrize(
    ("told", "at"),
    [
        ("2534 10.0.0.2:7001", "10.0.0.2:7001"),
        ("2534 node-2.example:7001", "node-2.example:7001"),
        ("2534 fe80::2:7001", "[fe80::2]:7001"),
        ("2534 :7001", "seed:7001"),
        ("2534 ?:7001", "seed:7001"),
    ],
)
def test_another_node_is_asked_with_the_same_user_and_options(told: str, at: str) -> None:
    nodes = Nodes(GIVEN)
    assert nodes.moved(told)
    assert nodes.at == f"rediss://ann:s3cret@{at}/0?ssl_check_hostname=no"
    assert not nodes.moved(told)


def test_every_known_node_has_its_turn_and_the_one_given_is_never_forgotten() -> None:
    nodes = Nodes("redis://a:1/0")
    nodes.learn([[0, 99, [b"b", 2, b"id"], [b"c", 3, b"id"]], [100, 200, [b"d", 4, b"id"]]])
    asked = [nodes.at]
    for _ in range(4):
        nodes.turn_from(nodes.at)
        asked.append(nodes.at)
    assert asked == ["redis://a:1/0", "redis://b:2/0", "redis://c:3/0", "redis://d:4/0", "redis://a:1/0"]


def test_who_was_slow_to_notice_does_not_turn_away_from_the_new_node() -> None:
    nodes = Nodes("redis://a:1/0")
    nodes.moved("7 b:2")
    nodes.turn_from("redis://a:1/0")
    assert nodes.at == "redis://b:2/0"


def test_outside_of_a_cluster_there_is_nobody_else_to_ask() -> None:
    nodes = Nodes("redis://a:1/0")
    nodes.turn_from("redis://a:1/0")
    assert nodes.at == "redis://a:1/0"
    assert not nodes.clustered
