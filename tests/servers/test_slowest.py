"""What script/test says of the slowest tests."""

from __future__ import annotations

from pathlib import Path

from tests.support.slowest import MOST, Case, slowest


def report(path: Path, *seconds: float) -> Path:
    cases = "".join(f'<testcase classname="{path.stem}" name="{n}" time="{s}"/>' for n, s in enumerate(seconds))
    path.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    return path


def test_they_are_the_slowest_of_all_reports(tmp_path: Path) -> None:
    quick = report(tmp_path / "quick.xml", *[0.1] * 20)
    slow = report(tmp_path / "slow.xml", 3, 100, 20)
    found = slowest([quick, slow])
    assert found[:3] == [Case(100, "slow::1"), Case(20, "slow::2"), Case(3, "slow::0")]
    assert len(found) == MOST
