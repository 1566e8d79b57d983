"""`windlass top --once`, and the live view as a process on a terminal of its own."""

from __future__ import annotations

import sys

import pytest
from rich.cells import cell_len

from tests.cli.support import Shop

HOSTILE = "[bold]own[/]\x1b]0;owned\x07\x1b[2J\u202egnp"


def test_one_screen_is_printed_and_fits(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no queues yet" in shop.ok("top", "--once")
    shop.ok("enqueue", "nasty", f'{{"text": "{HOSTILE.encode("unicode_escape").decode()}"}}'.replace("\\x", "\\u00"))
    shop.ok("worker", "shop:app", "--drain")
    shop.ok("enqueue", "hello", "--queue", "later", "--delay", "1h")
    for columns in (60, 80, 120, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = shop.ok("top", "--once").splitlines()
        assert lines[0].startswith("windlass top")
        assert max(map(cell_len, lines)) <= columns
    page = shop.ok("top", "--once")
    assert shop.url in page
    for words in ("QUEUE", "default", "later", "FINGERPRINT", "Reject: [bold]own[/]", "nothing runs"):
        assert words in page
    assert not [one for one in page if one in "\x1b\x07\u202e"]


def test_its_figures_are_facts(shop: Shop) -> None:
    shop.ok("enqueue", "hello")
    shop.ok("enqueue", "bad", "--delay", "1h")
    fact = shop.call("--json", "top").fact
    assert {"at", "ok_per_second", "failed_per_second", "oldest_ms", "wait_p95_ms", "run_p95_ms"} <= fact.keys()
    assert (fact["counts"]["queued"], fact["counts"]["scheduled"], fact["exact"]) == (1, 1, True)
    [queue] = fact["queues"]
    assert (queue["name"], queue["slots"], queue["drain_ms"]) == ("default", 0, None)
    assert (fact["workers"], fact["running"]) == ([], [])


def test_a_namespace_other_than_the_default_is_named(shop: Shop) -> None:
    assert shop.ok("top", "--once").startswith("windlass top  sqlite:")
    assert shop.ok("--namespace", "other", "top", "--once").startswith("windlass top  namespace other, sqlite:")


def test_the_live_view_asks_for_a_terminal_its_extra_and_a_fair_interval(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = shop.call("top")
    assert (said.code, "needs a terminal" in said.err) == (2, True)
    said = shop.call("top", "--interval", "10ms")
    assert (said.code, "expected 200ms to 1h" in said.err) == (2, True)
    monkeypatch.setitem(sys.modules, "textual", None)
    said = shop.call("top")
    assert (said.code, 'pip install "windlass[top]"' in said.err) == (2, True)
    assert "no queues yet" in shop.ok("top", "--once")


@pytest.mark.timeout(60)
def test_the_live_view_leaves_the_terminal_as_it_was(shop: Shop) -> None:
    shop.ok("enqueue", "hello")
    said = shop.terminal("top", typed="q", env={"LINES": "24"})
    assert said.code == 0, said.out
    began, ended = said.out.find("\x1b[?1049h"), said.out.find("\x1b[?1049l")
    assert -1 < began < ended
    assert said.out.rindex("\x1b[?25h") > ended, "the cursor is shown again"
