"""`windlass chaos`: a short trial as a user runs it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from tests.cli.support import Shop
from windlass.chaos.faults import Finding
from windlass.chaos.report import Report
from windlass.cli.chaos import _Show  # pyright: ignore[reportPrivateUsage]  # what it shows is for nobody else to call
from windlass.cli.output import Screen

pytestmark = pytest.mark.timeout(90)


def tables(shop: Shop) -> list[tuple[str]]:
    with closing(sqlite3.connect(shop.home / "shop.db")) as db:
        return db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()


def test_chaos_proves_that_nothing_is_lost_and_leaves_nothing_behind(shop: Shop) -> None:
    before = tables(shop)
    said = shop.process(
        "chaos", "--store", shop.url, "--faults", "kill", "--jobs", "12", "--seconds", "0", "--seed", "7", "--json"
    )
    assert said.code == 0, said
    fact = said.fact
    assert (fact["fault"], fact["seed"], fact["good"], fact["lost"], fact["violations"]) == ("kill", 7, True, 0, 0)
    assert fact["acknowledged"] > 0
    assert fact["faults"] == 1
    assert fact["bound"] == pytest.approx(min(1, 3 / fact["acknowledged"]), abs=1e-5)
    assert tables(shop) == before


def test_chaos_freezes_workers_with_children_and_keeps_the_store_from_them(shop: Shop) -> None:
    said = shop.process(
        "chaos",
        "--store",
        shop.url,
        "--faults",
        "child,away",
        "--jobs",
        "4",
        "--workers",
        "2",
        "--seconds",
        "0",
        "--json",
    )
    assert said.code == 0, said
    facts = [json.loads(line) for line in said.out.splitlines()]
    assert [(one["fault"], one["good"]) for one in facts] == [("child", True), ("away", True)]
    assert all(one["failed_unbegun"] == one["crashes_of_the_living"] == 0 for one in facts)


def test_a_fault_that_cannot_be_had_there_is_said_to_be_left_out(shop: Shop) -> None:
    said = shop.call("--store", "mongodb://a:1,b:2/shop", "chaos", "--faults", "away")
    assert "away was not tried: a proxy can stand before one server" in said.out
    assert (said.code, "nothing was proved" in said.err) == (1, True)
    said = shop.call("--json", "--store", "mongodb://a:1,b:2/shop", "chaos", "--faults", "away")
    assert json.loads(said.out)["skipped"].startswith("a proxy")


def test_an_unknown_fault_is_a_wrong_call(shop: Shop) -> None:
    said = shop.call("chaos", "--faults", "kill,earthquake")
    assert said.code == 2
    assert "expected some of kill, freeze" in said.err


def test_what_must_be_zero_and_is_not_is_shown_with_an_instance(capsys: pytest.CaptureFixture[str]) -> None:
    lost = Finding(fault="kill", report=Report(acknowledged=300, lost=("the lost one",), recovery=(1.0, 2.0)))
    fine = Finding(fault="term", report=Report(acknowledged=100))
    _Show(Screen(), 7).all("sqlite:///jobs.db", [lost, fine])
    said = capsys.readouterr().out
    first, second = (next(line for line in said.splitlines() if line.startswith(name)) for name in ("kill", "term"))
    assert first.split()[:5] == ["kill", "FAIL", "300", "0", "1"]
    assert first.endswith("1.00 / 2.00 / 2.00 s  0.01")
    assert second.split()[:5] == ["term", "PASS", "100", "0", "0"]
    assert "kill: lost: 1, as the lost one" in said
    assert (lost.open, fine.open) == (False, False)
    assert Finding(fault="x", report=fine.report, missing=("no job was hit: nothing was proved",)).open
    assert not Finding(fault="x", report=lost.report, missing=("nothing was proved",)).open
    assert (lost.good, fine.good, Finding(fault="x", report=fine.report, missing=("proof",)).good) == (
        False,
        True,
        False,
    )
