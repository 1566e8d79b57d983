from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cli.support import SHOP, Shop
from windlass.worker.reloading import first_change, snapshot


@pytest.mark.timeout(90)
def test_a_changed_file_starts_the_worker_again_and_a_syntax_error_is_survived(shop: Shop) -> None:
    child = shop.start("dev", "shop:app")
    shop.says("ready")
    (shop.home / "shop.py").write_text(SHOP + "\n# touched\n")
    shop.says("shop.py changed; starting again")
    shop.says("ready", times=2)
    (shop.home / "shop.py").write_text("def (\n")
    shop.says("waiting for a change")
    assert "SyntaxError" in shop.log
    (shop.home / "shop.py").write_text(SHOP)
    shop.says("ready", times=3)
    child.send_signal(signal.SIGINT)
    assert child.wait(15) == 0


def test_it_watches_python_files_but_not_those_of_others(tmp_path: Path) -> None:
    for name in ("a.py", "b.txt", "pkg/c.py", ".venv/d.py", "node_modules/e.py", ".git/f.py", "__pycache__/g.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert {Path(one).name for one in snapshot(str(tmp_path))} == {"a.py", "c.py"}


def test_a_new_a_changed_and_a_missing_file_are_changes() -> None:
    assert first_change({"a": 1}, {"a": 1}) is None
    assert first_change({"a": 1}, {"a": 2}) == "a"
    assert first_change({"a": 1}, {"a": 1, "b": 1}) == "b"
    assert first_change({"a": 1, "b": 1}, {"a": 1}) == "b"
