from __future__ import annotations

import json

import pytest

from tests.cli.support import Shop
from windlass import __version__
from windlass.cli.commands import COMMANDS
from windlass.cli.main import hoist, run


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"windlass {__version__}"


def test_help_lists_every_command_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"\n  {name} " in said for name in COMMANDS)
    assert "3 store unreachable" in said


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"Usage: windlass {name}")
    assert len(said.splitlines()) > 4
    assert "\x1b" not in said


def test_without_a_command_it_shows_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    assert "Commands:" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "words",
    [["nope"], ["jobs", "--nope"], ["job"], ["jobs", "--limit", "x"], ["worker", "--lease"], ["jobs", "--store"]],
)
def test_a_usage_error_is_one_line_and_code_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1


def test_shared_options_may_stand_anywhere_before_two_dashes() -> None:
    words = ["jobs", "--json", "--store", "u", "--limit", "3", "--app=a:b", "--", "--quiet"]
    assert hoist(words) == ["--json", "--store", "u", "--app=a:b", "jobs", "--limit", "3", "--", "--quiet"]


def test_a_bad_url_is_a_usage_error_without_its_password(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", "--store", "oracle://me:secret@db/jobs"]) == 2
    said = capsys.readouterr().err
    assert "oracle://" in said
    assert "secret" not in said


def test_a_store_that_is_not_there_is_unreachable_and_is_not_made(shop: Shop) -> None:
    said = shop.process("jobs", "--store", "sqlite:///typo.db")
    assert said.code == 3
    assert said.err.startswith("error: there is no store at sqlite:///typo.db")
    assert not (shop.home / "typo.db").exists()


def test_a_directory_that_is_not_there_is_unreachable(shop: Shop) -> None:
    said = shop.process("enqueue", "hello", "--store", "sqlite:///no/such/dir/jobs.db")
    assert said.code == 3, said
    assert said.err.count("\n") == 1


def test_a_file_that_is_no_store_is_told_in_one_line(shop: Shop) -> None:
    (shop.home / "text.db").write_text("this is not a database, but it is long enough to look like one\n" * 50)
    said = shop.process("jobs", "--store", "sqlite:///text.db")
    assert said.code in (1, 3), said
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1


def test_a_traceback_is_shown_only_on_request(shop: Shop) -> None:
    assert "Traceback" not in shop.process("jobs", "--store", "nope").err
    assert "Traceback" in shop.process("jobs", "--store", "nope", "--debug").err


def test_a_setting_from_outside_that_is_wrong_names_itself(shop: Shop) -> None:
    said = shop.process("jobs", env={"WINDLASS_CONCURRENCY": "many"})
    assert said.code == 2
    assert "WINDLASS_CONCURRENCY is 'many'" in said.err


def test_the_store_of_the_application_set_from_outside_is_used(shop: Shop) -> None:
    shop.ok("enqueue", "hello")
    said = shop.process("jobs", "--json", env={"WINDLASS_APP": "shop:app"})
    assert said.fact["type"] == "hello"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str, shop: Shop) -> None:
    assert "windlass" in shop.ok("completion", shell)
    assert shop.call("completion", shell, "--json").fact["shell"] == shell


def test_a_shell_gets_its_completions(shop: Shop) -> None:
    asked = {"_WINDLASS_COMPLETE": "complete_bash", "COMP_WORDS": "windlass sched", "COMP_CWORD": "1"}
    assert shop.process(env=asked).out.split() == ["schedules"]


def test_json_is_plain_ascii_on_one_line(shop: Shop) -> None:
    shop.ok("enqueue", "hello", json.dumps({"name": "é\u202e\x1b[2J\n"}))
    said = shop.call("jobs", "--json")
    assert said.out.isascii()
    assert said.out.count("\n") == 1
    assert "\x1b" not in said.out


def test_a_reader_that_has_enough_is_no_error(shop: Shop) -> None:
    for _ in range(3):
        shop.ok("enqueue", "hello")
    said = shop.process("jobs", "--store", shop.url, "--json")
    assert said.code == 0
