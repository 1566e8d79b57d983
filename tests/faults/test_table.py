"""The table of docs/reliability.md: a run replaces the lines of what it tried, and no others."""

from __future__ import annotations

from tests.faults.table import HEADS, Table


def line(trial: str, store: str, must_be_0: str = "0") -> list[str]:
    cells = dict.fromkeys(HEADS, "") | {"trial": trial, "store": store, "must be 0": must_be_0}
    return list(cells.values())


def test_a_line_stays_with_the_run_that_made_it_until_a_later_one_replaces_it() -> None:
    table = Table([], [])
    table.take("first", [line("M24", "redis", "**lost**"), line("M2", "mongo"), line("M2", "sqlite")])
    table = Table.read(str(table))
    table.take("second", [line("M24", "redis"), line("M1", "sqlite")])
    again = Table.read(str(table))
    assert (again.runs, again.lines) == (table.runs, table.lines)
    found = [(one[0], one[1], again.runs[int(one[2]) - 1]) for one in again.lines]
    assert found == [
        ("M1", "sqlite", "second"),
        ("M2", "sqlite", "first"),
        ("M2", "mongo", "first"),
        ("M24", "redis", "second"),
    ]
    assert "lost" not in str(again)


def test_a_run_of_which_nothing_is_left_is_not_told_of() -> None:
    table = Table([], [])
    table.take("first", [line("M1", "sqlite")])
    table.take("second", [line("M1", "sqlite")])
    assert table.runs == ["second"]
