"""The shape of the code: what is public, what may be imported where, and what must not be written at all."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import windlass

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "windlass"
MODULES = sorted(SOURCE.rglob("*.py"))
PUBLIC = set(
    """
Ageing AuditEntry AuditPage Band Batched Bound Bulk Cancel Charts Check ChildFailed Comparison Counts CreatedKey Cron
Ctx Declared DuplicateJob Entry Error Event Every Explanation Failure Flow FlowHandle Group Handle Handler
HandlerError HandlerExists HandlerNotFound Happened Holder Job JobContext JobError JobFailed JobFunction JobNotFound
JobTimeout JsonFormatter Key KeyKind LeaseLost Level Limit Lock LockHeld LockLost Logs MetricsReporter MoveRefused
Outgoing Overview PayloadInvalid PayloadUnfit Presence Progress QueueFull Rate Readiness Reject Retention Retry
RunFigures ScheduleNotFound SchemaMismatch Scope Secret SecretUnreadable SettingsError Signal SignalExists
SignalTooMuch Snooze StatsD Status StepInvalid StoreError StoreUnavailable Suspend TextFormatter TransactionRefused
TypeInfo TypeState Unique ValueRefused Why Windlass WindlassError WorkerState cron events every
""".split()  # noqa: SIM905  # forty names in a list would be forty lines
)
IMPURE = {
    "aiohttp", "asyncio", "concurrent", "http", "io", "logging", "multiprocessing", "os", "pathlib", "queue", "random",
    "secrets", "select", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "sys", "tempfile",
    "threading", "time", "urllib",
}  # fmt: skip


FORBIDDEN = (
    r"^\s*(import|from) (pickle|marshal|shelve)\b",
    r"(?<![\w.])eval\(",
    r"(?<![\w.])exec\(",
    r"yaml\.load",
    "innerHTML",
)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def parsed(path: Path) -> ast.Module:
    """Several rules read the same file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_the_public_names_are_these() -> None:
    assert set(windlass.__all__) == PUBLIC
    assert windlass.__all__ == sorted(windlass.__all__, key=lambda one: (one.lower() == one, one))
    assert [one for one in PUBLIC if not hasattr(windlass, one)] == []


def test_every_error_is_public() -> None:
    from windlass.core import errors

    named = {one for one, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert named <= set(windlass.__all__)
    for one in named:
        assert one in (errors.__doc__ or ""), f"{one} is missing from the tree in the docstring"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_module_says_what_lives_in_it(path: Path) -> None:
    text = ast.get_docstring(parsed(path))
    assert text, f"{name(path)} has no docstring"


@pytest.mark.parametrize("path", sorted((SOURCE / "core").rglob("*.py")), ids=name)
def test_the_law_is_pure(path: Path) -> None:
    for module in imported(path):
        top = module.split(".")[0]
        assert top not in IMPURE, f"{name(path)} imports {module}"
        assert top != "windlass" or module.startswith(("windlass.core", "windlass.core.")), f"{name(path)}: {module}"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_what_must_not_be_written_is_not(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for word in FORBIDDEN:
        assert not re.search(word, text, re.MULTILINE), f"{name(path)} has {word}"
    if not name(path).startswith("src/windlass/cli/"):
        calls = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
        assert not [one.lineno for one in calls if isinstance(one.func, ast.Name) and one.func.id == "print"]


def test_no_page_or_script_writes_html_by_hand() -> None:
    for path in SOURCE.rglob("*"):
        if path.suffix in (".js", ".html", ".ts"):
            assert "innerHTML" not in path.read_text(encoding="utf-8"), name(path)


# Whatever answers a question is a public name of the client; these work on the store itself.
AT_THE_STORE = {
    "benching.py": "takes away the schema that it made for itself",
    "chaos.py": "takes away the schema that it made for itself",
    "past.py": "goes through hours that have passed, on a clock of its own",
    "demo.py": "leaves a schedule as a stopped system would have",
    "upkeep.py": "migrates a schema before its store is opened, and prunes by hand as workers do",
}

GIVEN = ("given", "globals_of(ctx)")
"""the options of a call, whose `store` is a URL"""


@pytest.mark.parametrize("path", sorted((SOURCE / "cli").rglob("*.py")), ids=name)
def test_the_command_line_asks_the_client_and_not_the_store(path: Path) -> None:
    nodes = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Attribute)]
    used = [node for node in nodes if node.attr == "store" and ast.unparse(node.value) not in GIVEN]
    lines = [node.lineno for node in used]
    assert bool(lines) == (path.name in AT_THE_STORE), f"{name(path)} uses the store in lines {lines}"


PAGE = ROOT / "ARCHITECTURE.md"


def test_the_page_names_only_what_is_there() -> None:
    for path in re.findall(r"`((?:src|tests|script|docs|examples|bench)\b[\w./-]*)`", PAGE.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), f"ARCHITECTURE.md names {path}"


def mapped() -> set[Path]:
    """What the map names: a heading says in which folder its table is, the head of a column in which one below that."""
    text = PAGE.read_text(encoding="utf-8").partition("\n## Line → room\n")[2].partition("\n## ")[0]
    folder, columns, named = ROOT, list[Path](), set[Path]()
    for line in text.splitlines():
        if line.startswith("### "):
            folder, columns = ROOT / line.split("`")[1], []
            named.add(folder)
        elif line.startswith("|"):
            cells = line.strip("|").split("|")
            if not columns:
                columns = [folder / (cell.split("`")[1] if "`" in cell else "") for cell in cells]
                named.update(columns)
            for column, cell in zip(columns, cells, strict=True):
                named.update(column / path for path in re.findall(r"`([\w./-]+(?:\.py|\.lua|/))`", cell))
    return named


def test_the_map_names_only_what_is_there() -> None:
    assert sorted(name(path) for path in mapped() if not path.exists()) == []


def test_the_map_is_complete() -> None:
    """Every module, script and folder of migrations; a package's `__init__.py` goes by the name of its folder."""
    rooms = {path.parent if path.name == "__init__.py" else path for path in MODULES}
    rooms |= set(SOURCE.rglob("*.lua")) | {path.parent for path in SOURCE.rglob("*.sql")}
    missing = sorted(name(path) for path in rooms - mapped())
    assert missing == [], "give each a line in the map of ARCHITECTURE.md"


IMPORT = """
import sys, time  # the processor's time: other programs may run on this machine, too
began = time.process_time()
import asyncio, pydantic; from pydantic import BaseModel, TypeAdapter
ground = time.process_time() - began
import windlass
took = time.process_time() - began
heavy = {"typer", "rich", "asyncpg", "pymongo", "redis", "fastapi", "starlette", "uvicorn", "jinja2", "sqlalchemy"}
print(took / ground, ",".join(sorted(heavy & set(sys.modules))))
"""


@pytest.mark.timeout(60)
@pytest.mark.xdist_group("typing")  # alone: it measures time
def test_importing_windlass_is_quick_and_loads_nothing_optional() -> None:
    """As a ratio to what it stands on (asyncio and pydantic) in the same process: seconds would measure the machine.

    Measured: 2.6, the ground 0.06 to 0.17 s of it. The first run may compile, the others do not: as for a user.
    """
    env = {**os.environ, "PYTHONPATH": str(SOURCE.parent), "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-c", IMPORT]
    runs = [
        subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.split() for _ in range(7)
    ]
    assert [run[1:] for run in runs] == [[]] * 7
    assert min(float(run[0]) for run in runs) <= 3.2


WAITS = ROOT / "tests" / "support" / "until.py"


def sleeps(path: Path) -> list[int]:
    """The lines that sleep for some time and do not say why, on the same line or the one above."""
    text = path.read_text(encoding="utf-8")
    if "sleep(" not in text:
        return []
    lines = ["", *text.splitlines()]
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    asleep = [call for call in calls if ast.unparse(call.func) in ("asyncio.sleep", "time.sleep", "sleep")]
    timed = [call.lineno for call in asleep if [ast.unparse(given) for given in call.args] != ["0"]]
    return [at for at in timed if "#" not in lines[at] and not lines[at - 1].lstrip().startswith("#")]


def test_no_test_sleeps_without_a_reason() -> None:
    """Waiting is `until(…)` or an event; where a duration is the very subject, a comment beside it says so."""
    asleep = [f"{name(path)}:{at}" for path in sorted((ROOT / "tests").rglob("*.py")) for at in sleeps(path)]
    assert [at for at in asleep if not at.startswith(name(WAITS))] == [], "use until(), or say beside it why it sleeps"
