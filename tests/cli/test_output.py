from __future__ import annotations

import inspect

import pytest

from tests.cli.support import Shop
from windlass.cli.output import EXIT_CODES, REFUSED, Screen, exit_code
from windlass.core import errors


def test_every_error_of_the_tree_has_an_exit_code() -> None:
    tree = {one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, errors.WindlassError)}
    assert set(EXIT_CODES) == tree
    assert set(EXIT_CODES.values()) <= set(range(1, 7))


def test_an_error_made_elsewhere_has_the_code_of_its_kind() -> None:
    class Special(errors.DuplicateJob): ...

    assert exit_code(Special("id", "key")) == REFUSED


def test_a_piped_table_is_aligned_and_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().table(("id", "text"), [("1", "x" * 300), ("22", "a\x1b[31mb\nc")])
    assert capsys.readouterr().out == f"id  text\n1   {'x' * 300}\n22  a\ufffd[31mb c\n"


def test_markup_in_content_is_only_text(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().line("[bold red]x[/] :smile:", "green")
    assert capsys.readouterr().out == "[bold red]x[/] :smile:\n"


def test_a_terminal_gets_colour_unless_it_is_not_wanted(shop: Shop) -> None:
    job_id = shop.ok("enqueue", "send", "--entity", "[bold]x[/bold]:1", '{"text": "[red]y[/red] \\u001b]0;t\\u0007"}')
    shop.ok("cancel", job_id)
    colourful = shop.terminal("jobs").out
    assert "\x1b[" in colourful
    assert "[bold]x[/bold]:1" in colourful
    assert "[red]y[/red]" in shop.terminal("job", job_id).out
    for plain in (shop.terminal("jobs", "--no-color"), shop.terminal("jobs", env={"NO_COLOR": "1"})):
        assert "cancelled" in plain.out
        assert "\x1b" not in plain.out


def test_quiet_and_json_leave_out_the_talk(capsys: pytest.CaptureFixture[str]) -> None:
    Screen(quiet=True).say("talk")
    Screen(as_json=True).say("talk")
    with Screen().bar("no bar where nobody watches") as bar:
        bar(1, 2, "half")
    assert capsys.readouterr() == ("", "")
